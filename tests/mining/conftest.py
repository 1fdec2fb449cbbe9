"""Indexes of documents of four topics, with a copy and an empty document."""

import pytest

from klsa_search import build
from tests.support.worlds import as_if_large, topic_documents

INDEXES = ("small", "large", "squashing", "two")
"""A large index stores no eigenvectors, `squashing` stores D; the last one has two partitions."""
TOPICS, EACH = 4, 12


def documents():
    """Documents 0 to 47, twelve a topic; then a copy of document 5, and an empty one."""
    texts = topic_documents(TOPICS, EACH)
    texts += [texts[5], ""]
    titles = [f"title {number}" for number in range(TOPICS * EACH)] + ["title 5", ""]
    return [
        {"id": f"d{number}", "title": title, "text": text}
        for number, (title, text) in enumerate(zip(titles, texts, strict=True))
    ]


def topic_of(identifier):
    number = int(identifier[1:])
    return 0 if number == TOPICS * EACH else number // EACH


@pytest.fixture(scope="session")
def indexes(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    # The titles only number the documents.
    options = {"home": home, "dimensions": 8, "latent_dimensions": 4, "search": "title,text"}
    opened = {
        "small": build(documents(), name="small", **options),
        "squashing": build(documents(), name="squashing", spectral="squashing", **options),
    }
    with as_if_large():
        opened["large"] = build(documents(), name="large", **options)
    opened["two"] = build(documents(), name="two", partitions=2, workers=1, **options)
    yield opened
    for index in opened.values():
        index.close()


@pytest.fixture(params=INDEXES)
def index(request, indexes):
    return indexes[request.param]
