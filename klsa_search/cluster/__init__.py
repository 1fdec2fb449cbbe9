"""Cluster: one collection built and searched by many processes, on one machine or on many."""

__all__: list[str] = []
