"""Metadata fields as columns: one value, or some, a document."""
