"""Indexes of documents of four topics, in every layout, with a copy and an empty document."""

from __future__ import annotations

import pytest

from klsa_search import build
from tests.support.worlds import as_if_large, topic_documents

LAYOUTS = ("dense", "factored", "sparse", "large")
"""How D is kept; a large index that keeps it cut has no eigenvectors beside it."""
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
def layouts(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    # The titles only number the documents.
    options = {"home": home, "dimensions": 8, "latent_dimensions": 4, "search": "title,text"}
    opened = {
        layout: build(documents(), name=layout, expansion=layout, **options)
        for layout in LAYOUTS[:-1]
    }
    with as_if_large():
        opened["large"] = build(documents(), name="large", expansion="sparse", **options)
    yield opened
    for index in opened.values():
        index.close()


@pytest.fixture(params=LAYOUTS)
def index(request, layouts):
    return layouts[request.param]


@pytest.fixture(scope="session")
def without_latent(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with_none = build(documents(), name="none", home=home, preset="paper", dimensions=4)
    yield with_none
    with_none.close()
