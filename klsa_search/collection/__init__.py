"""Read collections: documents, queries and judgements in the formats they come in."""

from klsa_search.collection.beside import read_queries
from klsa_search.collection.datasets import find_dataset
from klsa_search.collection.fetch import fetch
from klsa_search.collection.ionosphere import LabelledPoints, read_ionosphere
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
from klsa_search.collection.opening import open_collection
from klsa_search.collection.qrels import read_qrels
from klsa_search.collection.recognise import FORMATS
from klsa_search.collection.reuters import Story, read_reuters
from klsa_search.collection.trec import read_topics

__all__ = [
    "COLLECTIONS",
    "FORMATS",
    "Collection",
    "Document",
    "Judgement",
    "LabelledPoints",
    "OpenedCollection",
    "Problems",
    "Query",
    "Story",
    "Unread",
    "fetch",
    "find_dataset",
    "open_collection",
    "read_ionosphere",
    "read_qrels",
    "read_queries",
    "read_reuters",
    "read_topics",
]
