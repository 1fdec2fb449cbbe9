"""Suggestions over HTTP equal those of the index."""

import pytest

from klsa_search.indexing.build import build
from klsa_search.search.index import open_index

from .conftest import failure_of


@pytest.mark.parametrize("path", ["/suggest", "/indexes/tiny/suggest"])
def test_the_same_as_in_python(client, tiny_home, path):
    with open_index(tiny_home / "tiny") as index:
        for typed in ("w", "boundary la", "Zür", "", "lyer"):
            answer = client.get(path, params={"q": typed, "k": 5}).json()
            assert (answer["q"], answer["index"], answer["generation"]) == (typed, "tiny", "000001")
            assert [tuple(each.values()) for each in answer["suggestions"]] == [
                (each.kind, each.text, each.query, each.documents)
                for each in index.suggest(typed, 5)
            ]
        restricted = {"filter": "id IN [1, 2, 3]", "match": "any"}
        wanted = index.suggest("w", **restricted)
        body = {"q": "w", **restricted}
        for answer in (
            client.get(path, params=body),
            client.post("/indexes/tiny/suggest", json=body),
        ):
            told = [each["documents"] for each in answer.json()["suggestions"]]
            assert told == [each.documents for each in wanted] != []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/suggest", "q"),
        ("/suggest?q=w&k=21", "k"),
        ("/suggest?q=w&k=0", "k"),
        ("/indexes/tiny/suggest?q=w&index=tiny", "index"),
        (f"/suggest?q={'w' * 10_001}", "q"),
    ],
)
def test_invalid_requests_are_refused(client, path, field):
    assert failure_of(client.get(path), 422)["field"] == field


def test_an_index_that_is_not_there(client):
    assert client.get("/indexes/none/suggest?q=w").status_code == 404
    assert client.get("/suggest?q=w&index=none").status_code == 404


def test_the_values_of_a_facet_are_searched(client_of, tmp_path):
    documents = [
        {"id": str(n), "text": f"Item {n}.", "brand": brand, "price": n}
        for n, brand in enumerate(["North Wind", "north sea", "South", "Great Northern"])
    ]
    build(documents, name="shop", home=tmp_path).close()
    client = client_of(tmp_path)
    path = "/indexes/shop/facet-search"
    answer = client.post(path, json={"field": "brand", "facet_query": "NORTH", "k": 2}).json()
    assert (answer["index"], answer["field"], answer["facet_query"]) == ("shop", "brand", "NORTH")
    assert answer["values"] == [
        {"value": "North Wind", "count": 1}, {"value": "north sea", "count": 1},
    ]  # fmt: skip
    assert answer["other_count"] == 1
    given = {"field": "brand", "facet_query": "north", "q": "item", "filter": "price > 1"}
    assert client.post(path, json=given).json()["values"] == [
        {"value": "Great Northern", "count": 1}
    ]
    for given, field in (
        ({"field": "colour"}, "field"),
        ({"facet_query": "north"}, "field"),
        ({"field": "brand", "filter": "price >"}, "filter"),
        ({"field": "brand", "k": 0}, "k"),
    ):
        assert failure_of(client.post(path, json=given), 422)["field"] == field
