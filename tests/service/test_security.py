"""Attacks on the service.

Elsewhere: keys in test_keys.py, hosts and origins in test_hosts.py and test_cors.py, forged log
lines in test_request_log.py, slow and silent clients in test_connections.py and
tests/campaigns/faults, cross-site writes in test_documents.py.
"""

import gzip
import http.client
import json
import os
import socket
from json import dumps
from urllib.parse import quote, urlencode

import httpx2
import pytest

from klsa_search.service.admission import Writes
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.endpoints import ENDPOINTS
from tests.support.waiting import PATIENCE

from .conftest import DOCUMENTS, build_tiny, failure_of
from .sockets import serving

JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}
LAMP = {"text": "A lamp."}
SYNC = "/indexes/first/sync"  # takes lines of JSON only
BODIES = [
    path
    for each in ENDPOINTS
    if each.method == "POST"
    and "body" in each.example
    and (path := each.path.replace("{name}", "first")) != SYNC
]
"""Paths of the endpoints that read JSON."""

INJECTION = [
    "' OR '1'='1", "1'; DROP TABLE documents; --", '" OR 1=1 --', "1 UNION SELECT * FROM documents",
    "%' --", "year' IS NOT NULL OR 'a'='a", "?1", ":id", "x'; ATTACH DATABASE '/tmp/x' AS x; --",
]  # fmt: skip


class Raw:
    """A client that sends a target as it is given: others make a path of `..` shorter first."""

    def __init__(self, address):
        self.address = address

    def request(self, method, target, *, json=None, content=None, headers=None):
        if json is not None:
            content, headers = dumps(json), {**JSON, **(headers or {})}
        line = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        line.request(method, target, content, headers or {})
        answer = line.getresponse()
        text = answer.read().decode()
        line.close()
        return httpx2.Response(answer.status, headers=dict(answer.headers), text=text)

    def get(self, target, *, params=None):
        return self.request("GET", target + ("?" + urlencode(params) if params else ""))

    def put(self, target, **given):
        return self.request("PUT", target, **given)

    def post(self, target, **given):
        return self.request("POST", target, **given)

    def delete(self, target):
        return self.request("DELETE", target)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with `first` and `second`, beside a file that nobody may reach; left as it is."""
    home = tmp_path_factory.mktemp("harm") / "home"
    build_tiny(home, "first")
    build_tiny(home, "second", DOCUMENTS[:2])
    (home.parent / "secret").write_text("confidential")
    return home


@pytest.fixture(scope="module")
def writer(home):
    """A client of a service over a socket that may be written to."""
    with (
        OpenIndexes(home, interval=0) as open_indexes,
        serving(open_indexes, writes=Writes()) as served,
    ):
        yield Raw(served.address)


def below(folder):
    """Every file and folder, without those in which SQLite shares a log between its readers."""
    return {
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        for name in (*names, "")
        if not name.endswith(("-wal", "-shm"))
    }


def test_a_name_that_is_a_path_reaches_no_file_by_any_route(writer, home):
    """What `index_path` refuses: tests/storage/test_generations.py."""
    before, name = below(home.parent), "../secret"
    for endpoint in ENDPOINTS:
        if "{name}" not in endpoint.path:
            continue
        target = endpoint.path.replace("{name}", quote(name, safe=""))
        for part in ("{id}", "{docid}", "{term}"):
            target = target.replace(part, "1")
        answer = writer.request(endpoint.method, target, json=endpoint.example.get("body"))
        assert 400 <= answer.status_code < 500, (endpoint, target, answer.text)
        assert "confidential" not in answer.text
    for asked in ({"q": "wing", "index": name}, {"queries": [{"q": "wing", "index": name}]}):
        answer = writer.post("/multi-search" if "queries" in asked else "/search", json=asked)
        assert answer.status_code in (404, 422)
    assert writer.put("/aliases/live", json={"index": name}).status_code in (404, 422)
    made = below(home.parent) - before
    assert {os.path.basename(path) for path in made} <= {"catalog.db"}  # empty, for the aliases


@pytest.mark.parametrize(
    "id_", ["..", "first/../second", "%2e%2e%2f", "..\\..\\etc", "\0", "a" * 5000, *INJECTION[:2]]
)
def test_an_id_is_an_id_whatever_it_looks_like(writer, home, id_):
    """It may be put in, found, replaced and deleted, and nothing else happens."""
    target = f"/indexes/first/documents/{quote(id_, safe='')}"
    others = {each: writer.get(f"/documents/{each}?index=first").json() for each in ("1", "3")}
    folders = {name for name in below(home.parent) if name.endswith(os.sep)}
    put = writer.put(target, json=LAMP)
    if "\0" in id_ or len(id_) > 512:
        assert failure_of(put, 422)["code"] == "bad_document"
        return
    assert put.json()["added"] == 1
    found = writer.get(f"/documents/{quote(id_, safe='')}?index=first").json()
    assert (found["id"], found["text"]) == (id_, LAMP["text"])
    assert writer.delete(target).json()["deleted"] == 1
    assert {each: writer.get(f"/documents/{each}?index=first").json() for each in others} == others
    assert {name for name in below(home.parent) if name.endswith(os.sep)} == folders


def test_no_filter_is_sql(writer):
    asked = {"q": "wing", "index": "first"}
    for value in INJECTION:
        quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        answer = writer.get("/search", params={**asked, "filter": f"year = {quoted}"})
        assert answer.status_code == 422  # as year has numbers
        body = {**asked, "filter": {"field": value, "=": value}}
        assert failure_of(writer.post("/search", json=body), 422)["field"] == "filter"
    for name in ("filter", "sort", "facets", "distinct", "fields"):
        answer = writer.get("/search", params={**asked, name: INJECTION[0]})
        assert answer.status_code in (200, 422)
        assert "sqlite" not in answer.text.lower()
    assert writer.get("/documents/1?index=first").status_code == 200


@pytest.mark.parametrize(
    "markup",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "<mark>wing</mark>",
     "</mark><script>wing</script>", "&lt;b&gt; & 'wing' \"wing\"", "<!-- wing -->",
     "wing<svg/onload=wing>"],
)  # fmt: skip
def test_html_of_a_document_is_text(writer, markup):
    document = {"title": markup, "text": f"A wing. {markup}", "metadata": {"kind": markup}}
    writer.put("/indexes/first/documents/html", json=document)
    answer = writer.post(
        "/indexes/first/search", json={"q": f"wing {markup}", "highlight": True, "k": 20}
    )
    assert answer.headers["content-type"] == "application/json"
    (hit,) = (each for each in answer.json()["hits"] if each["id"] == "html")
    assert hit["title"] == markup
    for part in hit["highlight"].values():
        bare = part["html"].replace("<mark>", "").replace("</mark>", "")
        assert not set(bare) & set("<>\"'")
        assert part["html"].count("<mark>") == len(part["marks"])


def test_no_header_can_be_put_into_an_answer(indexes_of, tiny_home):
    """Sent as it is, and through what a client may have echoed: a request id, a path, a key."""
    with serving(indexes_of(tiny_home)) as served:
        for name in ("a\r\nSet-Cookie: x=1", "a\nb", "a\x00b", "a\u0085b", "a\x1b[2J"):
            for head in (f"X-Request-ID: {name}", f"Authorization: Bearer {name}"):
                with served.client() as client:
                    client.send(f"GET /nope HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n")
                    status, answered, _ = client.answer()
                assert status in (400, 404)
                assert "set-cookie" not in answered
                assert name not in answered.values()
            with served.client() as client:
                client.ask(f"/documents/{quote(name)}")
                status, answered, _ = client.answer()
            assert status == 404
            assert "set-cookie" not in answered
            assert all(each.isprintable() for each in answered.values())


@pytest.mark.slow
def test_json_as_deep_as_a_body_is_long(writer):
    openings = [("/search", '{"a":'), ("/multi-search", '{"queries":['),
                ("/search", '{"q":"x","filter":{"not":')]  # fmt: skip
    for path, opening in (*((path, "[") for path in BODIES), *openings):
        answer = writer.post(path, content=opening * (900_000 // len(opening)), headers=JSON)
        # The service has no keys, so it refuses users before it reads them.
        refusals = (403,) if path == "/users" else (400, 422)
        assert answer.status_code in refusals, (path, opening)


@pytest.mark.parametrize("depth", [101, 50_000])
def test_whole_json_that_is_too_deep(writer, depth):
    nested = '{"not":' * depth + '{"field":"year","=":1}' + "}" * depth
    body = f'{{"q": "wing", "index": "first", "filter": {nested}}}'
    answer = writer.post("/search", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    text = "(" * 4_000 + "year = 1" + ")" * 4_000
    asked = {"q": "wing", "index": "first", "filter": text}
    assert writer.post("/search", json=asked).status_code in (200, 422)
    document = '{"text":"x","metadata":' + '{"a":' * depth + "1" + "}" * depth + "}"
    target = "/indexes/first/documents/deep"
    assert writer.put(target, content=document, headers=JSON).status_code in (400, 422)


def test_whole_json_that_is_deep_enough(writer):
    metadata = "[" * 98 + "]" * 98
    document = f'{{"text":"deep wing","metadata":{{"a":{{"b":{metadata}}}}}}}'
    target = "/indexes/first/documents/deep"
    assert writer.put(target, content=document, headers=JSON).status_code == 200
    assert writer.get("/documents/deep?index=first").status_code == 200
    found = writer.post("/search", json={"q": "deep", "index": "first"})
    assert "deep" in [hit["id"] for hit in found.json()["hits"]]
    assert writer.delete(target).status_code == 200


def test_no_bomb_is_unpacked(writer):
    """A body has its limits unpacked, and is unpacked in pieces."""
    bomb = gzip.compress(json.dumps({"q": "x" * 2**24}).encode())
    assert len(bomb) < 2**20
    headers = {**JSON, "Content-Encoding": "gzip"}
    assert writer.post("/search", content=bomb, headers=headers).status_code == 413
    headers = {**LINES, "Content-Encoding": "gzip"}
    answer = writer.post("/indexes/first/documents", content=bomb, headers=headers)
    assert not any(json.loads(line)["ok"] for line in answer.text.splitlines())
    assert failure_of(writer.post(SYNC, content=bomb, headers=headers), 422)


def test_lines_of_a_sync_that_are_too_deep_or_no_json(writer):
    for line in ("[" * 900_000, '{"a":' * 180_000, '{"id": "1", "text": ', "\0"):
        failure_of(writer.post(SYNC, content=line, headers=LINES), 422)


def test_every_way_of_writing_a_path_needs_a_key(home, tmp_path):
    file = tmp_path / "keys.json"
    add_key(file, "web", ["search", "write"])
    with (
        OpenIndexes(home, interval=0) as open_indexes,
        serving(open_indexes, writes=Writes(), keys=Keys(file, ())) as served,
    ):
        client = Raw(served.address)
        for path in ("/search%00", "//search?q=wing", "/SEARCH?q=wing", "/./search?q=wing",
                     "/health/../search?q=wing", "/docs/../search?q=wing"):  # fmt: skip
            assert client.request("GET", path).status_code == 401


def test_a_socket_that_breaks_off_leaves_the_service_well(indexes_of, tiny_home):
    with serving(indexes_of(tiny_home)) as served:
        body = b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"
        for part in (b"", b"G", b"GET / HTTP/1.1\r\n", body, b"\x16\x03\x01\x02", b"\xff" * 999):
            with socket.create_connection(served.address) as broken:
                broken.sendall(part)
        assert served.get("/health")[0] == 200
        assert served.get("/search?q=wing")[0] == 200
