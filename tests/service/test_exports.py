"""Exports over HTTP and by the clients equal those of the index."""

import pytest

from klsa_search.search.index import open_index
from klsa_search.service.routes import search

from .conftest import failure_of

OPTIONS = {"columns": ["id", "title"], "match": "any", "filter": "id IN [1, 2, 3]"}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_are_those_of_the_index(client, tiny_home, kind):
    with open_index(tiny_home / "tiny") as index:
        expected = b"".join(index.export("wing", format=kind, **OPTIONS))
    given = {"q": "wing", "format": kind, **OPTIONS}
    path = "/indexes/tiny/export"
    for answer in (
        client.get(path, params={**given, "columns": "id,title"}),
        client.post(path, json=given),
    ):
        assert answer.content == expected
        assert f"tiny.{kind}" in answer.headers["content-disposition"]
        assert answer.headers["content-type"].startswith(("text/csv", "application/x-ndjson"))


def test_faults_are_answered_before_the_first_row(client, monkeypatch):
    path = "/indexes/tiny/export"
    for given, field in (
        ({"columns": ["colour"]}, "columns"),
        ({"format": "xls"}, "format"),
        ({"limit": 10_001}, "limit"),
        ({"filter": "year >"}, "filter"),
        ({"facets": ["year"]}, "facets"),
    ):
        assert failure_of(client.post(path, json={"q": "wing", **given}), 422)["field"] == field
    assert client.get("/indexes/none/export?q=wing").status_code == 404
    monkeypatch.setattr(search, "MAX_WINDOW", 1)
    assert failure_of(client.get(f"{path}?q=wing"), 422)["field"] == "limit"
    assert len(client.get(f"{path}?q=wing&limit=1&format=jsonl").content.splitlines()) == 1
