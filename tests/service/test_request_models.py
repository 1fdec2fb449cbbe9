"""Parameters parsed by their model equal those parsed and described by FastAPI."""

import re
from typing import Annotated

import pytest
from fastapi import FastAPI, Query, Request

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


def test_only_lists_may_be_repeated_on_any_route(client):
    read = set()
    for path, methods in client.get("/openapi.json").json()["paths"].items():
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
