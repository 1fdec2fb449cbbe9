"""Build: a collection → an index on disk."""

from klsa_search.indexing.build import build

__all__ = ["build"]
