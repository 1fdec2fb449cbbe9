"""Valid parameters of requests, and errors for invalid ones."""

import json

import pytest

from klsa_search.search.filters.conditions import MAX_CHARACTERS

from .conftest import failure_of


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 1.01),
        ("alpha", "NaN"),
        ("alpha", ""),
        ("k", 10_001),
        ("k", "9" * 5000),
        ("dimensions", 4),
    ],
)
def test_parameter_outside_its_limits_is_named(client, field, value):
    error = failure_of(client.get("/search", params={"q": "wing", field: value}), 422)
    assert (error["code"], error["field"]) == ("bad_query", field)
    assert error["message"].startswith(f"{field} = ")
    assert len(error["message"]) < 250


@pytest.mark.parametrize(
    ("field", "most"), [("q", 10_000), ("index", 100), ("filter", MAX_CHARACTERS)]
)
def test_a_text_that_is_too_long_gets_the_limit(client, field, most):
    error = failure_of(client.get("/search", params={"q": "wing", field: "x" * (most + 1)}), 422)
    assert error["field"] == field
    assert error["message"].endswith(f"at most {most} characters")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", "0.5"),
        ("alpha", True),
        ("k", 1.5),
        ("q", None),
        ("q", "half a pair: \ud83d"),
        ("ranker", ["klsa"]),
    ],
)
def test_json_parameter_of_another_kind_is_named(client, field, value):
    body = json.dumps({"q": "wing", field: value})
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    error = failure_of(response, 422)
    assert (error["code"], error["field"]) == ("bad_query", field)


def test_json_nan_is_named(client):
    body = '{"q": "wing", "alpha": NaN}'
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert failure_of(response, 422)["field"] == "alpha"


@pytest.mark.parametrize("method", ["get", "post"])
def test_unknown_parameter_is_refused_with_the_known_ones(client, method):
    asked = {"q": "wing", "alhpa": 1}
    given = {"params": asked} if method == "get" else {"json": asked}
    error = failure_of(getattr(client, method)("/search", **given), 422)
    assert error["field"] == "alhpa"
    assert "q, index, k, limit, offset" in error["message"]


def test_unknown_parameter_of_a_document_is_refused(client):
    error = failure_of(client.get("/documents/1", params={"idx": "tiny"}), 422)
    assert error["field"] == "idx"
    assert error["message"].endswith(": span, page, vectors, index")


@pytest.mark.parametrize("name", ["\ud800", "q\x00", "{name}"])
def test_unknown_parameter_of_any_name_is_refused(client, name):
    body = json.dumps({"q": "wing", name: 1})
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert failure_of(response, 422)["field"] == name.encode(errors="backslashreplace").decode()
