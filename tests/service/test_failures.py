"""Missing indexes, damaged indexes, and internal errors."""

import errno

import pytest

from klsa_search.errors import StoreError
from klsa_search.search.index import Index

from .conftest import build_tiny, failure_of


def test_no_such_index(client):
    for path in ("/search?q=wing&index=nope", "/documents/1?index=nope", "/indexes/nope"):
        error = failure_of(client.get(path), 404)
        assert error["code"] == "index_not_found"
        assert "nope" in error["message"]
    error = failure_of(client.get("/search?q=wing&index=nope"), 404)
    assert error["message"] == "no index `nope`; choose from tiny"
    error = failure_of(client.get("/search?q=wing&index=tinny"), 404)
    assert error["message"] == "no index `tinny`; did you mean `tiny`? choose from tiny"


def test_no_such_document(client):
    for path in ("/documents/nope", "/documents/%00", "/documents/..%2F..%2Fetc", "/documents/"):
        assert failure_of(client.get(path), 404)["code"] == "document_not_found"


def test_errors_name_paths_within_the_index_directory(client, tiny_home, monkeypatch):
    def fail(*_):
        raise StoreError(f"cannot read `{tiny_home}/tiny/000001/x` in `{tiny_home}`; free space")

    monkeypatch.setattr(Index, "search", fail)
    error = failure_of(client.get("/search?q=wing"), 503)
    assert error["message"] == "cannot read `tiny/000001/x` in the index directory; free space"


def test_no_such_path(client):
    for path in ("/nope", "/search/", "/indexes/", "/indexes/a/b"):
        assert failure_of(client.get(path), 404)["code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/health", "GET, HEAD"),
        ("DELETE", "/search", "GET, HEAD, POST"),
        ("OPTIONS", "/search", "GET, HEAD, POST"),
        ("POST", "/documents/a/b", "GET, HEAD"),
        ("GET", "/indexes/tiny/classify", "POST"),
        ("PUT", "/docs", "GET, HEAD"),
    ],
)
def test_wrong_method_names_the_right_ones(client, method, path, allowed):
    response = client.request(method, path)
    error = failure_of(response, 405)
    assert error["code"] == "method_not_allowed"
    assert error["message"].startswith(f"{method} is not allowed for {path}")
    assert error["message"].endswith(f"use {allowed}")
    assert response.headers["allow"] == allowed


def test_head_is_get_without_a_body(client):
    health = ("/health", "/health/live", "/health/ready")
    for path in ("/", *health, "/search?q=wing", "/indexes/tiny", "/docs", "/nope", "/search"):
        get, head = client.get(path), client.head(path)
        assert head.status_code == get.status_code
        assert head.content == b""
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/indexes/tiny/classify").status_code == 405


def test_an_internal_error_reveals_no_secrets(client, monkeypatch, caplog):
    def search(*_, **__):
        raise RuntimeError("secret")

    monkeypatch.setattr(Index, "search", search)
    response = client.get("/search?q=wing", headers={"X-Request-ID": "mine"})
    error = failure_of(response, 500)
    assert error["code"] == "internal"
    assert "mine" in error["message"]
    assert response.headers["x-request-id"] == "mine"
    assert "secret" not in response.text
    assert "Traceback" not in response.text
    assert "mine" in caplog.text
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/secret/file"), "Too many open files"),
        (OSError(errno.ENOSPC, "No space left on device", "/secret/file"), "No space left"),
        (MemoryError(), "out of memory"),
    ],
)
def test_an_error_of_the_system_is_not_a_bug(client, monkeypatch, caplog, failure, reason):
    def search(*_, **__):
        raise failure

    monkeypatch.setattr(Index, "search", search)
    response = client.get("/search?q=wing", headers={"X-Request-ID": "mine"})
    error = failure_of(response, 503)
    assert error["code"] == "index_unusable"
    assert reason in error["message"]
    assert "secret" not in response.text
    assert "request mine failed" in caplog.text


def test_home_without_an_index(client_of, tmp_path):
    client = client_of(tmp_path)
    for path in ("/search?q=wing", "/documents/1"):
        error = failure_of(client.get(path), 503)
        assert "klsa-index build" in error["message"]
    listed = client.get("/indexes").json()
    assert listed == {"indexes": [], "writable": False, "follow": None}
    health = client.get("/health")
    assert (health.status_code, health.json()["ok"]) == (200, True)


def test_damaged_index_does_not_keep_the_others_from_being_served(client_of, home):
    (home / "first" / "000001" / "manifest.json").write_text("{")
    client = client_of(home)
    first, second = client.get("/indexes").json()["indexes"]
    assert (first["ok"], first["generation"], first["documents"]) == (False, None, None)
    assert "manifest.json" in first["error"]
    assert second["ok"] is True
    assert client.get("/health").status_code == 200
    assert client.get("/indexes/first").json()["settings"] is None
    assert failure_of(client.get("/search?q=wing&index=first"), 503)["field"] == "index"
    assert client.get("/search?q=wing&index=second").status_code == 200


def test_only_index_is_damaged(client_of, tmp_path):
    build_tiny(tmp_path)
    (tmp_path / "tiny" / "CURRENT").write_text("000009\n")
    client = client_of(tmp_path)
    assert client.get("/health").status_code == 503
    assert failure_of(client.get("/search?q=wing"), 503)["code"] == "index_unusable"
