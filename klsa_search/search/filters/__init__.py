"""Filters: what the metadata of a document must be, read from text or JSON, as masks."""
