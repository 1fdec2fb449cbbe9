"""Analysis of a text over HTTP."""

import pytest

from klsa_search import open_index
from klsa_search.service.schemas.base import MAX_QUERY

from .conftest import failure_of

TEXT = "The wings of C++ Zürich"


def test_analysis_returns_the_tokens_of_the_index(client, tiny_home):
    told = client.post("/indexes/tiny/analyze", json={"text": TEXT}).json()
    with open_index(tiny_home / "tiny") as index:
        tokens = index.analyzer.tokens(TEXT)
    assert [tuple(each.values()) for each in told["tokens"]] == [tuple(token) for token in tokens]
    assert [TEXT[each["start"] : each["end"]] for each in told["tokens"]] == [
        "wings",
        "C",
        "Zürich",
    ]


@pytest.mark.parametrize("text", ["", "the of", "\x00"])
def test_some_texts_have_no_tokens(client, text):
    assert client.post("/indexes/tiny/analyze", json={"text": text}).json()["tokens"] == []


def test_invalid_requests_are_refused(client):
    too_long = client.post("/indexes/tiny/analyze", json={"text": "w" * (MAX_QUERY + 1)})
    assert failure_of(too_long, 422)["field"] == "text"
    assert client.post("/indexes/none/analyze", json={"text": "w"}).status_code == 404
