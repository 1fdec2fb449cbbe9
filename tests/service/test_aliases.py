"""Aliases over HTTP: search, write, change in one step, scopes."""

import pytest

from klsa_search.service.admission import Writes
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.storage.aliases import set_alias

from .conftest import bearing, failure_of


@pytest.fixture
def guarded(home, client_of, file):
    add_key(file, "first-of-all", ["search"])
    return client_of(home, writes=Writes(), keys=Keys(file, ["search"]))


def put(writer, name, index, **more):
    return writer.put(f"/aliases/{name}", json={"index": index}, **more)


def index_of(writer, name, **more):
    answer = writer.get("/search", params={"q": "wing", "index": name}, **more)
    return answer.json()["index"] if answer.status_code == 200 else answer.status_code


def test_an_alias_is_taken_wherever_a_name_is(writer):
    assert put(writer, "live", "first").json() == {"name": "live", "index": "first"}
    assert index_of(writer, "live") == "first"
    assert put(writer, "live", "second").status_code == 200
    assert index_of(writer, "live") == "second"
    lamp = {"title": "Lamp", "text": "A lamp."}
    assert writer.put("/indexes/live/documents/lamp", json=lamp).json()["index"] == "second"
    lines = {"content": b"", "headers": {"Content-Type": "application/x-ndjson"}}
    synced = writer.post("/indexes/live/sync?dry_run=true&max_delete=100%25", **lines)
    assert synced.json()["index"] == "second"
    assert writer.get("/documents/lamp?index=second").json()["title"] == "Lamp"
    assert writer.get("/indexes/live").json()["name"] == "second"
    assert writer.get("/indexes/live/suggest?q=la").json()["index"] == "second"
    assert writer.post("/indexes/live/search", json={"q": "lamp"}).json()["index"] == "second"
    assert writer.get("/aliases").json() == {"aliases": [{"name": "live", "index": "second"}]}
    assert writer.delete("/aliases/live").json() == {"aliases": []}
    assert index_of(writer, "live") == 404


def test_an_alias_set_by_a_command_is_loaded(writer, home):
    assert index_of(writer, "live") == 404
    set_alias(home, "live", "first")
    assert index_of(writer, "live") == "first"


def test_invalid_aliases_are_refused(writer):
    for name, index, status, field in (
        ("live", "third", 404, "index"),
        ("second", "first", 422, "name"),
        (".x", "first", 422, "name"),
        ("-x", "first", 422, "name"),
        ("live", "../first", 422, "name"),
    ):
        assert failure_of(put(writer, name, index), status)["field"] == field
    assert writer.get("/aliases").json() == {"aliases": []}


def test_invalid_bodies_and_missing_aliases_are_errors(writer):
    assert writer.put("/aliases/live", json={}).status_code == 422
    assert writer.put("/aliases/live", content=b"{").status_code in (400, 422)
    assert failure_of(writer.delete("/aliases/first"), 404)["field"] == "name"


@pytest.mark.parametrize(
    ("method", "name", "index"),
    [("PUT", "a", "none"), ("PUT", "first", "second"), ("DELETE", "none", None)],
)
def test_errors_name_no_path_of_the_service(client, home, method, name, index):
    answer = client.request(method, f"/aliases/{name}", json={"index": index})
    assert not answer.is_success
    assert str(home) not in answer.text


def test_a_service_without_writes_changes_none(client_of, home):
    assert put(client_of(home), "live", "first").status_code == 403


def test_a_key_for_the_alias_or_for_its_index_will_do(guarded, file, home):
    set_alias(home, "live", "first")
    by_alias = bearing(add_key(file, "alias", ["search"], ["live"]))
    by_index = bearing(add_key(file, "index", ["search"], ["first"]))
    other = bearing(add_key(file, "other", ["search"], ["second"]))
    assert index_of(guarded, "live", headers=by_alias) == "first"
    assert index_of(guarded, "first", headers=by_alias) == 403
    assert guarded.get("/search?q=wing", headers=by_alias).json()["index"] == "first"
    assert index_of(guarded, "live", headers=by_index) == "first"
    assert index_of(guarded, "live", headers=other) == 403
    assert guarded.get("/aliases", headers=other).json() == {"aliases": []}
    assert guarded.get("/indexes/live", headers=by_alias).status_code == 200
    assert guarded.get("/indexes/live", headers=other).status_code == 404
    set_alias(home, "live", "second")
    assert index_of(guarded, "live", headers=by_alias) == "second"
    assert index_of(guarded, "live", headers=by_index) == 403
    assert index_of(guarded, "live", headers=other) == "second"


def test_a_key_for_some_indexes_points_no_alias(guarded, file):
    narrow = bearing(add_key(file, "narrow", ["search", "write"], ["first", "live"]))
    reader = bearing(add_key(file, "reader", ["search"]))
    writer = bearing(add_key(file, "writer", ["search", "write"]))
    for headers in (narrow, reader):
        assert failure_of(put(guarded, "live", "second", headers=headers), 403)
        assert guarded.delete("/aliases/live", headers=headers).status_code == 403
    assert put(guarded, "live", "second", headers=writer).status_code == 200


def test_an_alias_that_cannot_be_written_is_reported(writer, home):
    (home / "catalog.db").mkdir()
    error = failure_of(put(writer, "live", "first"), 503)
    assert error["code"] == "index_unusable"
    assert "catalog.db" in error["message"]
    assert "check its owner" in error["message"]


def test_a_damaged_catalogue_keeps_indexes_without_rows_served(writer, home):
    assert put(writer, "live", "first").status_code == 200
    assert index_of(writer, "live") == "first"
    (home / "catalog.db").write_bytes(b"no database at all, but as long as one" * 99)
    assert index_of(writer, "live") == "first"  # as it was read before
    assert index_of(writer, "first") == "first"
    assert "move this file away" in failure_of(put(writer, "more", "first"), 503)["message"]
