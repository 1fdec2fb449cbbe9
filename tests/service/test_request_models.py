"""Parameters parsed by their model equal those parsed and described by FastAPI."""

import json
import re
from typing import Annotated

import pytest
from fastapi import FastAPI, Query, Request

from klsa_search.search.filters.parser import MAX_CHARACTERS
from klsa_search.service.routes.mining import RelatedRequest, SimilarRequest
from klsa_search.service.schemas import errors
from klsa_search.service.schemas.base import documented_parameters, read_parameters
from klsa_search.service.schemas.documents import DocumentRequest
from klsa_search.service.schemas.search_requests import SearchRequest
from tests.support.client import AppClient

from .conftest import failure_of

MODELS = [DocumentRequest, RelatedRequest, SearchRequest, SimilarRequest]


def apps_of(model):
    """An application that reads the model by itself, and one that has FastAPI do it."""
    ours, theirs = (FastAPI(exception_handlers=errors.HANDLERS) for _ in range(2))
    lax = type(model.__name__, (model,), {}, strict=False)

    @ours.get("/", openapi_extra=documented_parameters(model))
    def ask(request: Request) -> dict:
        return read_parameters(request, model).model_dump()

    @theirs.get("/")
    def ask_query(asked: Annotated[lax, Query()]) -> dict:
        return asked.model_dump()

    return ours, theirs


def without_null(parameter):
    """What FastAPI tells of a parameter that may be null, which in a URL none is."""
    kinds = [kind for kind in parameter["schema"].get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return parameter
    rest = {name: part for name, part in parameter["schema"].items() if name != "anyOf"}
    told = {"description": kinds[0]["description"]} if "description" in kinds[0] else {}
    return {**parameter, "schema": rest | kinds[0], **told}


@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_described_as_fastapi_does(model):
    one, other = (app.openapi()["paths"]["/"]["get"]["parameters"] for app in apps_of(model))
    # FastAPI takes a list as a name that is repeated, and tells of null and objects in a URL.
    other = [each for each in other if each["name"] != "vector"]
    lists = {each["name"] for each in one if each["schema"].get("type") == "array"} | {
        "filter",
        "boosts",
    }
    assert [each for each in one if each["name"] not in lists] == [
        without_null(each) for each in other if each["name"] not in lists
    ]
    assert {each["name"] for each in one} == model.model_fields.keys() - {"vector"}


@pytest.fixture(scope="module")
def clients():
    return [AppClient(app) for app in apps_of(SearchRequest)]


@pytest.mark.parametrize(
    "query",
    [
        "q=wing+heat&k=3&alpha=.5&exact=true&ranker=klsa",
        "q=%C3%84rger%20%E9%9B%AA&index=tiny",
        "q=",
        "q=%FF%00",
        "",
        "k=3",
        "q=wing&k=",
        "q=wing&k=1.5&alpha=2",
        "q=wing&alpha=NaN",
        "q=wing&ranker=tfidf",
        "q=wing&depth=3",
        "q=wing&depth=3&depth=4",
        "q=wing&depth=3&k=0",
        "q=wing&%FF=1",
        "=&&&q=wing",
        "q=wing&exact=perhaps",
    ],
)
def test_requests_are_read_and_refused_as_by_fastapi(clients, query):
    one, other = (client.get(f"/?{query}") for client in clients)
    assert one.status_code == other.status_code
    assert one.json() == other.json()


def test_only_lists_may_be_repeated_on_any_route(client, schema):
    read = set()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] != "query":
                    continue
                read.add(path)
                name, is_list = parameter["name"], parameter["schema"].get("type") == "array"
                address = re.sub(r"\{[^}]*\}", "1", path.replace("{name}", "tiny"))
                answer = client.request(method, f"{address}?{name}=1&{name}=2")
                repeated = f"{name} is given 2 times" in answer.text
                assert repeated != is_list, (path, name, answer.text)
                if repeated:
                    assert failure_of(answer, 422)["field"] == name
    assert {"/search", "/suggest", "/documents/{id}"} <= read


def test_a_vector_is_refused_in_a_url(client):
    for path in ("/search?q=wing&", "/indexes/tiny/explain/1?q=wing&"):
        error = failure_of(client.get(path + "vector=1"), 422)
        assert (error["code"], error["field"]) == ("bad_query", "vector")
        assert "send it with POST" in error["message"]


def test_repeated_lists_are_joined(client):
    joined = client.get("/search?q=wing&facets=year&fields=title,text").json()
    repeated = client.get("/search?q=wing&facets=year&fields=title&fields=text").json()
    assert set(repeated["hits"][0]) == {"rank", "id", "score", "title", "text"}
    for answer in (joined, repeated):
        del answer["time_ms"]
    assert repeated == joined


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
@pytest.mark.parametrize(
    ("name", "advice"),
    [("alhpa", "did you mean `alpha`?"), ("colour", "q, index, k, limit, offset")],
)
def test_unknown_parameter_is_refused_with_the_nearest_or_all(client, method, name, advice):
    asked = {"q": "wing", name: 1}
    given = {"params": asked} if method == "get" else {"json": asked}
    error = failure_of(getattr(client, method)("/search", **given), 422)
    assert error["field"] == name
    assert advice in error["message"]


def test_unknown_parameter_of_a_document_is_refused(client):
    error = failure_of(client.get("/documents/1", params={"colour": "red"}), 422)
    assert error["field"] == "colour"
    assert error["message"].endswith(": span, page, vectors, index")


@pytest.mark.parametrize("name", ["\ud800", "q\x00", "{name}"])
def test_unknown_parameter_of_any_name_is_refused(client, name):
    body = json.dumps({"q": "wing", name: 1})
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert failure_of(response, 422)["field"] == name.encode(errors="backslashreplace").decode()
