"""Collections whose last documents are folded into an index of the first."""

from collections.abc import Sequence

from klsa_search import Index
from klsa_search.collection import Document
from klsa_search.delta.statistics import BuildStatistics, open_statistics
from tests.support.worlds import random_documents, topic_documents

PLAIN = {"stop_words": "none", "stemmer": "none"}


def random_world(size: int, terms: int = 60, seed: int = 0) -> list[Document]:
    return documents(random_documents(size, terms, seed))


def topic_world() -> list[Document]:
    return documents(topic_documents())


def documents(texts: Sequence[str]) -> list[Document]:
    return [Document(id=f"d{number:03d}", text=text) for number, text in enumerate(texts)]


def epoch_of(index: Index) -> BuildStatistics:
    arrays = index.arrays
    return open_statistics(index.path, index.settings, arrays.vocabulary, arrays.forward)
