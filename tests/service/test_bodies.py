"""Invalid and compressed request bodies."""

import gzip
import json
import threading

import pytest

from klsa_search.errors import BodyTooSlow
from klsa_search.search.index import Index
from klsa_search.service.admission import Writes
from klsa_search.service.middleware.bodies import RequestBody
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

from .conftest import build_tiny, failure_of


@pytest.mark.parametrize("body", ["{", "", "{'q': 1}", '{"q": "wing"} x', "[" * 100_000, b"\xff{}"])
def test_broken_json(client, body):
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    if not body:
        assert failure_of(response, 422)["field"] is None
    else:
        assert failure_of(response, 400)["code"] == "bad_json"


@pytest.mark.parametrize("body", ["[]", '"wing"', "3", "null"])
def test_json_other_than_an_object_is_refused(client, body):
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    error = failure_of(response, 422)
    assert error["field"] is None
    assert "object" in error["message"]


def test_body_that_does_not_say_it_is_json(client):
    response = client.post("/search", content='{"q": "wing"}', headers={"Content-Type": "text/x"})
    assert "Content-Type: application/json" in failure_of(response, 422)["message"]


def test_body_that_comes_too_slowly(client, monkeypatch):
    async def slow(self):
        raise BodyTooSlow("arrived too slowly")

    monkeypatch.setattr(RequestBody, "__call__", slow)
    response = client.post("/search", json={"q": "wing"})
    assert failure_of(response, 408)["code"] == "body_too_slow"
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize("announced", [True, False])
def test_body_too_long(client, announced):
    body = json.dumps({"q": "x" * 2**20}).encode()
    content = body if announced else iter([body[:1000], body[1000:]])
    response = client.post("/search", content=content, headers={"Content-Type": "application/json"})
    assert failure_of(response, 413)["message"] == (
        "the body is larger than 1,048,576 bytes; shorten it, or send less at a time"
    )


@pytest.mark.parametrize("path", ["synonyms", "rules"])
def test_synonyms_and_rules_may_be_larger_than_a_search(indexes_of, tmp_path, path):
    """Ten thousand words with a few synonyms do not fit into the body of a search."""
    build_tiny(tmp_path)
    client = AppClient(app_of_indexes(indexes_of(tmp_path), writes=Writes()))
    url = f"/indexes/tiny/{path}"
    body = json.dumps({"synonyms": {f"{'word' * 20}{n}": ["x" * 90] for n in range(6_000)}})
    assert 2**20 < len(body) < 2**22
    answer = client.put(url, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == (200 if path == "synonyms" else 422)
    for content_type in ("application/json", "application/x-ndjson"):
        content, headers = b" " * (2**22 + 1), {"Content-Type": content_type}
        assert failure_of(client.put(url, content=content, headers=headers), 413)["message"] == (
            "the body is larger than 4,194,304 bytes; send fewer at a time"
        )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("rules", {"rules": [{"id": "a", "then": {"pin": [{}]}}] * 100_000}),
        ("rules/a", {"then": {"pin": [{}] * 1_000_000}}),
        ("synonyms", {"synonyms": [1] * 1_000_000}),
    ],
)
def test_rules_and_synonyms_are_checked_outside_of_the_event_loop(
    indexes_of, tmp_path, path, body, monkeypatch
):
    threads = []

    def noted(change):
        def method(self, value):
            threads.append(threading.current_thread().name)
            change(self, value)

        return method

    for name in ("set_rules", "put_rule", "set_synonyms"):
        monkeypatch.setattr(Index, name, noted(getattr(Index, name)))
    build_tiny(tmp_path)
    client = AppClient(app_of_indexes(indexes_of(tmp_path), writes=Writes()))
    error = failure_of(client.put(f"/indexes/tiny/{path}", json=body), 422)
    assert error["field"] == path.partition("/")[0]
    assert threads[0].startswith("klsa-request")


GZIP = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
QUERY = gzip.compress(b'{"q": "wing"}', mtime=0)


@pytest.mark.parametrize(
    "body",
    [
        QUERY,
        gzip.compress(b'{"q":', mtime=0) + gzip.compress(b' "wing"}', mtime=0),
        gzip.compress(b'{"q": "wing"' + 600_000 * b" " + b"}", mtime=0),
    ],
)
@pytest.mark.parametrize("size", [7, 10**6])
def test_gzip_bodies_are_decompressed(client, body, size):
    pieces = [body[first : first + size] for first in range(0, len(body), size)]
    answer = client.post("/search", content=iter(pieces), headers=GZIP)
    assert answer.json()["hits"] == client.get("/search?q=wing").json()["hits"]


def test_a_stream_of_lines_may_be_compressed(indexes_of, tmp_path):
    build_tiny(tmp_path)
    client = AppClient(app_of_indexes(indexes_of(tmp_path), writes=Writes()))
    lines = b"".join(b'{"id": "n%d", "text": "a flamingo"}\n' % number for number in range(2000))
    headers = GZIP | {"Content-Type": "application/x-ndjson"}
    answer = client.post("/indexes/tiny/documents", content=gzip.compress(lines), headers=headers)
    assert answer.text.count('"ok":true') == 2000
    assert client.get("/search?q=flamingo").json()["total"] == 2000


@pytest.mark.parametrize("body", [b"{}", QUERY[:-1], QUERY[:5], QUERY + b"x", b""])
def test_a_body_that_is_not_gzip_is_refused(client, body):
    answer = client.post("/search", content=body, headers=GZIP)
    assert "gzip" in failure_of(answer, 422)["message"]


@pytest.mark.parametrize("encoding", ["zstd", "deflate", "gzip, gzip"])
def test_other_encodings_are_refused_by_name(client, encoding):
    headers = GZIP | {"Content-Encoding": encoding}
    error = failure_of(client.post("/search", content=QUERY, headers=headers), 415)
    assert error["code"] == "unsupported_media_type"
    assert f"Content-Encoding: {encoding}" in error["message"]


def test_large_answers_are_compressed_for_clients_that_accept_it(client):
    answers = [
        client.get("/openapi.json", headers={"Accept-Encoding": encoding})
        for encoding in (
            *("gzip, zstd", "br, gzip;Q=0.5", "identity"),
            *("gzip; q=0, br", "gzip;q=0.00", "gzip;Q=0", "GZIP; Q=0.0"),
        )
    ]
    encodings = [answer.headers.get("content-encoding") for answer in answers]
    assert encodings == ["gzip", "gzip", *[None] * 5]
    assert answers[0].headers["vary"] == "Accept-Encoding"
    assert len({answer.content for answer in answers}) == 1
    small = client.get("/health", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers
