"""Metrics and log of the service."""
