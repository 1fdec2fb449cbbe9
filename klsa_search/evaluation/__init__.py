"""Measure and compare rankings, record and replay runs, and tune settings."""
