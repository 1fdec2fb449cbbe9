"""Embedders, which turn texts into vectors, and rerankers, which score the first hits again.

Each kind of embedder is an optional extra, and imported when it is opened.
"""

from klsa_search.embedding.model import Embedder, Reranker
from klsa_search.embedding.opening import open_embedder, open_reranker

__all__ = ["Embedder", "Reranker", "open_embedder", "open_reranker"]
