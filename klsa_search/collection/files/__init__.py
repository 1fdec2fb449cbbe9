"""Readers of document files, one module for each format."""
