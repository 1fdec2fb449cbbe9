"""Embedders, which turn texts into vectors, and rerankers, which score the first hits again.

Each kind of embedder is an optional extra, and imported when it is opened.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder, Reranker
    from klsa_search.embedding.opening import open_embedder, open_reranker
else:
    _MODULES = {
        "Embedder": "klsa_search.embedding.model",
        "Reranker": "klsa_search.embedding.model",
        "open_embedder": "klsa_search.embedding.opening",
        "open_reranker": "klsa_search.embedding.opening",
    }

    def __getattr__(name: str) -> Any:
        """Import a name at its first use (PEP 562): a search without models needs none."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})


__all__ = ["Embedder", "Reranker", "open_embedder", "open_reranker"]
