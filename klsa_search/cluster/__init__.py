"""Serve the partitions of an index by processes of several machines."""

__all__: list[str] = []
