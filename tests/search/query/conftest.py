"""Documents of few words, including stop words, so that phrases occur by chance."""

import random

import pytest

from klsa_search import build
from klsa_search.search.query import corrections

WORDS = ["wing", "wings", "drag", "flow", "networks", "network", "netting", "the", "of", "wi", "fi"]
KINDS = ["Dry", "Wet Roads", "wing"]


def documents():
    made = random.Random(3)
    return [
        {
            "id": str(number),
            "title": " ".join(made.choices(WORDS, k=made.randrange(4))),
            "text": " ".join(made.choices(WORDS, k=made.randrange(1, 9))),
            "kind": made.choice(KINDS),
        }
        for number in range(60)
    ]


@pytest.fixture(autouse=True)
def few_documents_are_many(monkeypatch):
    """Correct words by the few documents of these tests, too."""
    monkeypatch.setattr(corrections, "MIN_DOCUMENTS", 1)


@pytest.fixture(scope="package")
def few_words(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    given = {"fields": ("kind:keyword",), "dimensions": 4, "z": 3}
    with_later = build(documents()[:50], name="few", home=home, **given)
    with_later.add(documents()[50:])
    with_later.delete(["3", "51"])
    yield with_later
    with_later.close()
