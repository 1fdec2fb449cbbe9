"""Readers of documents, queries and judgements in all supported formats."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klsa_search.collection.detection import FORMATS
    from klsa_search.collection.download import fetch
    from klsa_search.collection.model import (
        Collection,
        Document,
        Judgement,
        Problems,
        Topic,
        Unread,
    )
    from klsa_search.collection.opened_collection import OpenedCollection
    from klsa_search.collection.opening import open_collection
    from klsa_search.collection.public_collections import COLLECTIONS
    from klsa_search.collection.queries import read_qrels, read_queries
    from klsa_search.collection.reading_options import Reading
    from klsa_search.collection.trec import read_topics
else:
    from klsa_search.core.lazy_exports import lazy_exports

    _MODULES = {
        "COLLECTIONS": "klsa_search.collection.public_collections",
        "Collection": "klsa_search.collection.model",
        "Document": "klsa_search.collection.model",
        "FORMATS": "klsa_search.collection.detection",
        "Judgement": "klsa_search.collection.model",
        "OpenedCollection": "klsa_search.collection.opened_collection",
        "Problems": "klsa_search.collection.model",
        "Topic": "klsa_search.collection.model",
        "Reading": "klsa_search.collection.reading_options",
        "Unread": "klsa_search.collection.model",
        "fetch": "klsa_search.collection.download",
        "open_collection": "klsa_search.collection.opening",
        "read_qrels": "klsa_search.collection.queries",
        "read_queries": "klsa_search.collection.queries",
        "read_topics": "klsa_search.collection.trec",
    }
    __getattr__, __dir__ = lazy_exports(globals(), _MODULES)


__all__ = [
    "COLLECTIONS",
    "FORMATS",
    "Collection",
    "Document",
    "Judgement",
    "OpenedCollection",
    "Problems",
    "Reading",
    "Topic",
    "Unread",
    "fetch",
    "open_collection",
    "read_qrels",
    "read_queries",
    "read_topics",
]
