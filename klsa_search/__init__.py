"""Search that learns the meaning of words from your own documents.

import klsa_search as klsa

index = klsa.build("reports.jsonl", name="reports")
for hit in index.search("engines that overheat", k=5):
    print(hit.rank, hit.title, hit.snippet)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klsa_search.collection.model import Document
    from klsa_search.errors import KlsaError
    from klsa_search.indexing.build import build
    from klsa_search.search import Hit, Index, Results, list_indexes, open_index

    __version__: str

__all__ = [
    "Document",
    "Hit",
    "Index",
    "KlsaError",
    "Results",
    "__version__",
    "build",
    "list_indexes",
    "open_index",
]

_ROOMS = {
    "Document": "klsa_search.collection.model",
    "Hit": "klsa_search.search",
    "Index": "klsa_search.search",
    "KlsaError": "klsa_search.errors",
    "Results": "klsa_search.search",
    "build": "klsa_search.indexing",
    "list_indexes": "klsa_search.search",
    "open_index": "klsa_search.search",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for, so that commands start without SciPy."""
    if name == "__version__":
        return import_module("importlib.metadata").version("klsa-search")
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
