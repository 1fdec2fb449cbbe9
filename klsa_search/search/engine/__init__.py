"""The query engine: compiled BM25, exact, for one query or many."""

from klsa_search.search.engine.engine import Engine, warm_up

__all__ = ["Engine", "warm_up"]
