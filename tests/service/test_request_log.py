"""The JSON log has one line for each request, which no request can forge."""

import io
import json
import logging
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from klsa_search.service.admission import Writes
from klsa_search.service.keys import KeyUses, add_key, read_keys, revoke_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.request_log import JsonLog
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

FORGED = 'x\n{"time": "now", "level": "info", "status": 200}\r\x1b[2J\u2028\u0085 é'


@pytest.fixture
def stream():
    return io.StringIO()


@pytest.fixture(autouse=True)
def _logged(stream):
    handler = JsonLog(stream)
    logger = logging.getLogger("klsa_search")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.fixture
def lines(stream):
    """What was written since they were read last."""

    def read():
        text = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        assert text.isascii()
        assert all(each.isprintable() for each in text.split("\n"))
        return [json.loads(line) for line in text.splitlines()]

    return read


@pytest.fixture
def client_with(home):
    with OpenIndexes(home, interval=0) as open_indexes:

        def client(**options):
            app = app_of_indexes(open_indexes, writes=Writes(), **options)
            return AppClient(app, raise_server_exceptions=False)

        yield client


def test_a_line_has_what_is_needed_and_no_query(client_with, lines, tmp_path):
    token = add_key(tmp_path / "keys.json", "web", ["search"])
    client = client_with(keys=Keys(tmp_path / "keys.json", ()))
    headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "abc"}
    assert client.get("/search?q=private&index=first", headers=headers).status_code == 200
    assert client.get("/search?q=private").status_code == 401
    found, refused = lines()
    assert datetime.fromisoformat(found.pop("time")).tzinfo is not None
    assert found.pop("ms") > 0
    assert found == {
        "level": "info",
        "request": "abc",
        "method": "GET",
        "path": "/search",
        "status": 200,
        "index": "first",
        "key": "web",
        "client": "testclient",
        "logger": "klsa_search.requests",
    }
    assert (refused["status"], refused["key"], refused["index"]) == (401, None, None)
    assert token not in json.dumps([found, refused])


def test_queries_are_logged_with_an_option(client_with, lines):
    client_with(log_queries=True).get("/search?q=wing&index=first")
    assert lines()[0]["query"] == "q=wing&index=first"


def test_every_kind_of_request_has_its_line(client_with, lines, monkeypatch):
    client = client_with()
    client.put("/indexes/second/documents/lamp", json={"text": "A lamp."})
    client.head("/health")
    client.get("/nothing")

    def slip(*_, **__):
        raise RuntimeError("a slip")

    monkeypatch.setattr("klsa_search.search.index.Index.search", slip)
    client.get("/search?q=wing&index=first")
    told = [
        (each["method"], each["path"], each["status"], each["index"])
        for each in lines()
        if "method" in each  # the error has a line too
    ]
    assert told == [
        ("PUT", "/indexes/second/documents/lamp", 200, "second"),
        ("HEAD", "/health", 200, None),
        ("GET", "/nothing", 404, None),
        ("GET", "/search", 500, "first"),
    ]


@pytest.mark.parametrize("queries", [False, True])
def test_no_line_can_be_forged(client_with, lines, queries):
    client = client_with(log_queries=queries)
    client.get(f"/documents/{quote(FORGED)}", params={"q": FORGED, "index": FORGED})
    client.get("/health", headers={"X-Request-ID": "a b {}", "Host": 'a"b'})
    first, second = lines()
    assert first["path"] == f"/documents/{FORGED}"
    assert " " not in second["request"]


def test_a_long_path_is_cut(client_with, lines):
    client_with().get("/documents/" + "x" * 5000)
    assert len(lines()[0]["path"]) == 1000


def test_warnings_and_errors_are_lines_too(stream, lines):
    log = logging.Logger("some.room")
    log.addHandler(JsonLog(stream))
    log.warning("%s is broken", "it\nforged")
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("failed")
    warning, error = lines()
    assert (warning["level"], warning["message"]) == ("warning", "it\nforged is broken")
    assert (warning["logger"], error["level"]) == ("some.room", "error")
    assert "ValueError: why" in error["traceback"]


def test_a_full_disk_keeps_no_request_from_its_answer(client_with, stream, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stream, "write", full, raising=False)
    assert client_with().get("/search?q=wing&index=first").status_code == 200


def test_lines_name_the_index_that_was_created_or_deleted(client_with, lines):
    client = client_with()
    assert client.post("/indexes", json={"name": "made"}).status_code == 201
    assert client.delete("/indexes/made").status_code == 200
    assert [line["index"] for line in lines()] == ["made", "made"]


def test_changes_are_in_the_audit_log_refused_or_not(client_with, lines, tmp_path):
    file = tmp_path / "keys.json"
    reader, writer = add_key(file, "reader", ["search"]), add_key(file, "writer", ["write"])
    client = client_with(keys=Keys(file, ()))
    url = "/indexes/second/documents/lamp"
    for token in (writer, reader):
        client.put(url, json={"text": "A lamp."}, headers={"Authorization": f"Bearer {token}"})
    client.get("/indexes", headers={"Authorization": f"Bearer {reader}"})
    names = ("logger", "method", "path", "index", "key", "client", "status")
    put = ("klsa_search.changes", "PUT", url, "second")
    assert [tuple(line[name] for name in names) for line in lines()] == [
        (*put, "writer", "testclient", 200),
        (*put, "reader", "testclient", 403),
        ("klsa_search.requests", "GET", "/indexes", None, "reader", "testclient", 200),
    ]


def test_changes_of_keys_are_in_the_audit_log(client_with, lines, tmp_path):
    file = tmp_path / "keys.json"
    add_key(file, "first", ["search"])
    client = client_with(keys=Keys(file, ()))
    add_key(file, "second", ["search"])
    revoke_key(file, "first")
    client.get("/health")
    added, revoked, _ = lines()
    assert added["logger"] == revoked["logger"] == "klsa_search.changes"
    assert added["message"] == "API key second was added"
    assert revoked["message"] == "API key first was revoked"


def test_the_last_use_of_a_key_is_noted(client_with, tmp_path):
    file = tmp_path / "keys.json"
    token = add_key(file, "used", ["search"])
    add_key(file, "unused", ["search"])
    client = client_with(keys=Keys(file, ()))
    before = datetime.now(UTC) - timedelta(minutes=1)
    for sent in (token, token, f"{token}x"):
        client.get("/health", headers={"X-API-Key": sent})
    used, unused = (KeyUses(file).last(key) for key in read_keys(file))
    assert before <= used <= datetime.now(UTC)
    assert unused is None
    revoke_key(file, "used")
    assert list(KeyUses(file).folder.iterdir()) == []
