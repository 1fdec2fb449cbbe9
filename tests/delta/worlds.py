"""Collections whose last documents are folded into an index of the first."""

from klsa_search.collection import Document
from klsa_search.delta.statistics import open_statistics
from tests.support.worlds import random_documents, topic_documents

PLAIN = {"stop_words": "none", "stemmer": "none"}


def random_world(size, terms=60, seed=0):
    return documents(random_documents(size, terms, seed))


def topic_world():
    return documents(topic_documents())


def documents(texts):
    return [Document(id=f"d{number:03d}", text=text) for number, text in enumerate(texts)]


def epoch_of(index):
    arrays = index.arrays
    return open_statistics(index.path, index.settings, arrays.vocabulary, arrays.forward)
