"""Embedders, which turn texts into vectors, and rerankers, which score the first hits again.

Each kind of embedder is an optional extra, and imported when it is opened.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder as Embedder
    from klsa_search.embedding.model import Reranker as Reranker
    from klsa_search.embedding.opening import open_embedder as open_embedder
    from klsa_search.embedding.opening import open_reranker as open_reranker
else:
    from klsa_search.core.lazy import lazy_exports

    _NAMES = {
        "embedding.model": "Embedder Reranker",
        "embedding.opening": "open_embedder open_reranker",
    }
    __all__, __getattr__, __dir__ = lazy_exports(globals(), _NAMES)
