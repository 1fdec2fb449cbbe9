"""Filters, facets, sorting, pages and fields over HTTP equal those of `Index.search`."""

from itertools import chain

import pytest

from klsa_search import build
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.conftest import failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

YEARS = {"a": 2019, "b": 2021, "c": 2023, "d": None, "e": 2021}
KINDS = {"a": "report", "b": "note", "c": "report", "d": "note", "e": "draft, old"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("wishes")
    documents = [
        {"id": id_, "title": id_.upper(), "text": f"Coolant leaks {'and leaks ' * number}here.",
         "metadata": {"year": year, "kind": KINDS[id_]}}
        for number, (id_, year) in enumerate(YEARS.items())
    ]  # fmt: skip
    build(documents, name="one", home=home).close()
    return home


@pytest.fixture(scope="module")
def client(home):
    with OpenIndexes(home, interval=0) as open_indexes:
        yield AppClient(app_of_indexes(open_indexes), raise_server_exceptions=False)


def ids(answer):
    return [hit["id"] for hit in answer["hits"]]


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        ({"q": "leaks", "filter": "year >= 2021"}, {"filter": {"field": "year", ">=": 2021}}),
        ({"q": "leaks", "sort": "year:desc,kind", "k": 2, "offset": 1},
         {"sort": ["year:desc", "kind"]}),
        ({"q": "leaks", "facets": "kind,year", "max_facet_values": 1},
         {"facets": ["kind", "year"]}),
        ({"q": "the unheard lea", "match": "most", "prefix": "last", "spelling": "off"}, {}),
        ({"filter": "kind = report", "fields": "title,year"}, {"fields": ["title", "year"]}),
        ({"q": "leaks", "highlight": True, "snippet_length": 20}, {}),
        ({"q": "leaks", "quality": True}, {}),
        ({"q": "leaks", "explain": True, "fields": "title"}, {"fields": ["title"]}),
        ({"q": "leaks", "distinct": "kind", "min_score": 0.01, "page": 2, "hits_per_page": 2}, {}),
    ],
)  # fmt: skip
def test_every_door_answers_the_same(client, asked, same):
    got = client.get("/search", params=asked).json()
    posted = client.post("/search", json=asked | same).json()
    named = client.post("/indexes/one/search", json=asked | same).json()
    for answer in (got, posted, named):
        assert answer.pop("time_ms") >= 0
    assert got == posted == named
    assert got["hits"]


def test_a_page_says_which_it_is_and_how_many_there_are(client):
    answer = client.get("/search?q=leaks&page=2&hits_per_page=2").json()
    assert (answer["page"], answer["hits_per_page"], answer["total_pages"]) == (2, 2, 3)
    assert (answer["offset"], answer["total"]) == (2, 5)
    assert [hit["rank"] for hit in answer["hits"]] == [3, 4]
    assert "page" not in client.get("/search?q=leaks&limit=2").json()
    every = [ids(client.get(f"/search?q=leaks&page={page}&hits_per_page=2").json())
             for page in (1, 2, 3, 4)]  # fmt: skip
    assert sorted(chain.from_iterable(every)) == sorted(YEARS)
    assert every[3] == []


def test_fields_choose_the_parts_of_a_response(client):
    def names(fields):
        hit = client.get(f"/search?q=leaks&k=1&fields={fields}").json()["hits"][0]
        return sorted(hit), hit.get("metadata")

    always = ["id", "rank", "score"]
    assert names("title") == (sorted([*always, "title"]), None)
    assert names("snippet,text")[0] == sorted([*always, "snippet", "text"])
    assert names("kind") == (sorted([*always, "metadata"]), {"kind": "draft, old"})
    assert "title" not in names("id,rank,score,quality,page")[0]
    assert set(names("metadata")[1]) == {"kind", "year"}


@pytest.mark.parametrize(
    ("asked", "field", "reason"),
    [
        ({}, "q", "q is missing: add it, or a filter or sort"),
        ({"q": "x", "k": 1, "limit": 2}, "k", "limit is given as well"),
        ({"q": "x", "page": 1, "offset": 2}, "page", "offset is given as well"),
        ({"q": "x", "hits_per_page": 1, "k": 2}, "hits_per_page", "k is given as well"),
        ({"q": "x", "offset": 9_995}, "offset", "hit 10,005 is beyond the last, 10,000"),
        ({"q": "x", "page": 1_001}, "page", "hit 10,010"),
        ({"q": "x", "snippet_length": 1_001}, "snippet_length", "1000"),
        ({"q": "x", "k": 101, "explain": True}, "explain", "at most 100"),
        ({"q": "x", "filter": "year >"}, "filter", "incomplete"),
        ({"q": "x", "filter": "nothing = 1"}, "filter", "unknown field 'nothing'"),
        ({"q": "x", "min_score": "much"}, "min_score", "number"),
        ({"q": "x", "fields": ["nope"]}, "fields", "no document has a field 'nope'; choose from"),
        ({"q": "x", "fields": ["title", "kin"]}, "fields", "no document has a field 'kin'"),
        ({"q": "x", "index": "two"}, "index", "differs from 'one' in the path"),
    ],
)
def test_invalid_options_are_explained(client, asked, field, reason):
    error = failure_of(client.post("/indexes/one/search", json=asked), 422)
    assert (error["code"], error["field"]) == ("bad_query", field)
    assert reason in error["message"]
