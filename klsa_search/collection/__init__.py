"""Read sources: documents, queries and judgements, in all supported formats."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

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
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "sidecars": "read_queries",
            "fetching": "fetch",
            "known": "COLLECTIONS",
            "model": "Collection Document Judgement Problems Query Unread",
            "opened": "OpenedCollection",
            "opening": "Reading open_collection",
            "qrels": "read_qrels",
            "recognise": "FORMATS",
            "trec": "read_topics",
        },
    )

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
