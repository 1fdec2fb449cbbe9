"""Parameters read by their model alone: as FastAPI would read and describe them."""

from typing import Annotated

import pytest
from fastapi import FastAPI, Query, Request
from starlette.testclient import TestClient

from klsa_search.service import failures
from klsa_search.service.querying import asked_of, described
from klsa_search.service.requests import (
    DocumentRequest,
    RelatedRequest,
    SearchRequest,
    SimilarRequest,
)

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


@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_described_as_fastapi_does(model):
    one, other = (app.openapi()["paths"]["/"]["get"]["parameters"] for app in apps_of(model))
    # FastAPI takes a list as a name that is repeated, and knows no objects in a URL.
    told = [each for each in one if each["name"] not in {"filter", "sort", "facets", "fields"}]
    assert told == [each for each in other if each in told]
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
