"""Parameters read by their model alone: as FastAPI would read and describe them."""

from typing import Annotated

import pytest
from fastapi import FastAPI, Query, Request
from starlette.testclient import TestClient

from klsa_search.service.messages import failures
from klsa_search.service.messages.mining import RelatedRequest, SimilarRequest
from klsa_search.service.messages.querying import asked_of, described
from klsa_search.service.messages.requests import DocumentRequest
from klsa_search.service.messages.searching import SearchRequest

MODELS = [DocumentRequest, RelatedRequest, SearchRequest, SimilarRequest]


def apps_of(model):
    """An application that reads the model by itself, and one that has FastAPI do it."""
    ours, theirs = FastAPI(), FastAPI()

    @ours.get("/", openapi_extra=described(model))
    def ask(request: Request) -> dict:
        return asked_of(request, model).model_dump()

    @theirs.get("/")
    def ask_query(asked: Annotated[model, Query()]) -> dict:
        return asked.model_dump()

    for app in (ours, theirs):
        failures.install(app, app.routes)
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
    lists = {each["name"] for each in one if each["schema"].get("type") == "array"} | {"filter"}
    assert [each for each in one if each["name"] not in lists] == [
        without_null(each) for each in other if each["name"] not in lists
    ]
    assert len(one) == len(model.model_fields)


@pytest.mark.parametrize(
    "query",
    [
        "q=wing",
        "q=wing+heat&k=3&alpha=.5&exact=true&ranker=klsa",
        "q=%C3%84rger%20%E9%9B%AA&index=tiny",
        "q=one&q=two&k=1&k=2",
        "q=",
        "q=%FF%00",
        "",
        "k=3",
        "q=wing&k=0",
        "q=wing&k=",
        "q=wing&k=1.5&alpha=2",
        "q=wing&alpha=NaN",
        "q=wing&ranker=tfidf",
        "q=wing&depth=3",
        "q=wing&depth=3&depth=4",
        "q=wing&%FF=1",
        "=&&&q=wing",
        "q=wing&exact=perhaps",
    ],
)
def test_what_is_asked_is_read_and_refused_as_fastapi_does(query):
    one, other = (TestClient(app).get(f"/?{query}") for app in apps_of(SearchRequest))
    assert one.status_code == other.status_code
    assert one.json() == other.json()
