"""Readers of documents, queries and judgements in all supported formats."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klsa_search.collection.model import Collection as Collection
    from klsa_search.collection.model import Document as Document
    from klsa_search.collection.model import Judgement as Judgement
    from klsa_search.collection.model import Problems as Problems
    from klsa_search.collection.model import Topic as Topic
    from klsa_search.collection.model import Unread as Unread
    from klsa_search.collection.opened_collection import OpenedCollection as OpenedCollection
    from klsa_search.collection.opening import open_collection as open_collection
    from klsa_search.collection.public_collections import COLLECTIONS as COLLECTIONS
    from klsa_search.collection.public_collections import fetch as fetch
    from klsa_search.collection.queries import read_qrels as read_qrels
    from klsa_search.collection.queries import read_queries as read_queries
    from klsa_search.collection.queries import read_topics as read_topics
    from klsa_search.collection.reading_options import FORMATS as FORMATS
    from klsa_search.collection.reading_options import ReadingOptions as ReadingOptions
else:
    from klsa_search.core.lazy import lazy_exports

    _NAMES = {
        "collection.model": "Collection Document Judgement Problems Topic Unread",
        "collection.opened_collection": "OpenedCollection",
        "collection.opening": "open_collection",
        "collection.public_collections": "COLLECTIONS fetch",
        "collection.queries": "read_qrels read_queries read_topics",
        "collection.reading_options": "FORMATS ReadingOptions",
    }
    __all__, __getattr__, __dir__ = lazy_exports(globals(), _NAMES)
