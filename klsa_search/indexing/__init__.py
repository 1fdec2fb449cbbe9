"""Build: a collection → an index on disk."""

from klsa_search.indexing.build import Progress, build

__all__ = ["Progress", "build"]
