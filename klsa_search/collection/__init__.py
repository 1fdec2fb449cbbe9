"""Read sources: documents, queries and judgements, in all supported formats."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klsa_search.collection.fetching import fetch
    from klsa_search.collection.known import COLLECTIONS
    from klsa_search.collection.model import (
        Collection,
        Document,
        Judgement,
        Problems,
        Query,
        Unread,
    )
    from klsa_search.collection.opened import OpenedCollection
    from klsa_search.collection.opening import Reading, open_collection
    from klsa_search.collection.qrels import read_qrels
    from klsa_search.collection.recognise import FORMATS
    from klsa_search.collection.sidecars import read_queries
    from klsa_search.collection.trec import read_topics
else:
    _MODULES = {
        "COLLECTIONS": "known",
        "Collection": "model",
        "Document": "model",
        "FORMATS": "recognise",
        "Judgement": "model",
        "OpenedCollection": "opened",
        "Problems": "model",
        "Query": "model",
        "Reading": "opening",
        "Unread": "model",
        "fetch": "fetching",
        "open_collection": "opening",
        "read_qrels": "qrels",
        "read_queries": "sidecars",
        "read_topics": "trec",
    }

    def __getattr__(name: str) -> Any:
        """Import a name at its first use (PEP 562): commands load only what they need."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})


__all__ = [
    "COLLECTIONS",
    "FORMATS",
    "Collection",
    "Document",
    "Judgement",
    "OpenedCollection",
    "Problems",
    "Query",
    "Reading",
    "Unread",
    "fetch",
    "open_collection",
    "read_qrels",
    "read_queries",
    "read_topics",
]
