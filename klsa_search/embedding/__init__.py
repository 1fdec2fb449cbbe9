"""Embedders, which turn texts into vectors, and rerankers, which score the first hits again.

Each kind of embedder is an optional extra, and imported when it is opened.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder, Reranker
    from klsa_search.embedding.opening import open_embedder, open_reranker
else:
    from klsa_search.core.lazy_exports import lazy_exports

    _MODULES = {
        "Embedder": "klsa_search.embedding.model",
        "Reranker": "klsa_search.embedding.model",
        "open_embedder": "klsa_search.embedding.opening",
        "open_reranker": "klsa_search.embedding.opening",
    }
    __getattr__, __dir__ = lazy_exports(globals(), _MODULES)


__all__ = ["Embedder", "Reranker", "open_embedder", "open_reranker"]
