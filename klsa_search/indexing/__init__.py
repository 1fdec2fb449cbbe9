"""Build: a collection → an index on disk."""

from klsa_search.indexing.build import build
from klsa_search.indexing.rebuild import build_like, rebuild

__all__ = ["build", "build_like", "rebuild"]
