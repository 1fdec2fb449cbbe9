"""What is read by one pattern is read as h11 reads it, and answered with the same bytes."""

import json
import re
import threading

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES

from klsa_search.service import serving as desk
from klsa_search.service.protocol.plain import plain, written
from tests.support.waiting import PATIENCE, wait_until

from .sockets import LONG, serving

PIECES = st.sampled_from(
    [
        "GET ", "POST ", "/search", "/", "?q=a", "?", "#", "%20", "+", " ", "\t",
        "\r\n", "\n", "\r", " HTTP/1.1\r\n", " HTTP/1.0\r\n",
        "Host: a\r\n", "host:b\r\n", "HOST:\r\n", "Accept: */*\r\n",
        "Connection: keep-alive\r\n", "Connection: close\r\n", "connection : keep-alive\r\n",
        "Content-Length: 0\r\n", "Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\n", "Upgrade: h2c\r\n", "X-Upgrade: 1\r\n", "X: \x7f\r\n",
        "X: \x00\r\n", "X: a\tb \r\n", "X: caf\xe9\r\n", " folded\r\n", "http://a/search",
    ]
)  # fmt: skip
HEADS = st.lists(PIECES, max_size=6).map("".join)
REQUESTS = st.one_of(
    st.lists(PIECES, max_size=12).map("".join),
    HEADS.map("GET /search?q=a HTTP/1.1\r\nHost: a\r\n{}\r\n".format),
    st.text(st.characters(max_codepoint=255), max_size=60),
)  # fmt: skip


def read_by_h11(data):
    """Target and headers of a GET that h11 reads, whole and with nothing after it; else None."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    try:
        request, end = connection.next_event(), connection.next_event()
    except h11.RemoteProtocolError:
        return None
    whole = isinstance(request, h11.Request) and isinstance(end, h11.EndOfMessage)
    if not whole or connection.trailing_data != (b"", False):
        return None
    kept = connection.their_state is h11.DONE and not connection.they_are_waiting_for_100_continue
    if not kept or (request.method, request.http_version) != (b"GET", b"1.1"):
        return None
    return request.target, list(request.headers)


@given(REQUESTS)
@example("GET /search?q=a%20b HTTP/1.1\r\nHost: a\r\nX-Request-ID:  x \r\n\r\n")
@example("GET /search HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
def test_what_is_read_is_read_as_h11_does(text):
    data = text.encode("latin-1")
    found = plain(data)
    if found is not None:
        target = found.path.encode() + (b"?" + found.query if found.query else b"")
        by_h11 = read_by_h11(data)
        assert by_h11 is not None
        assert (by_h11[0].removesuffix(b"?"), by_h11[1]) == (target, found.headers)


@pytest.mark.parametrize(
    ("head", "is_plain"),
    [
        ("Host: a\r\n", True),
        ("Host: a\r\nUser-Agent: curl/8\r\nAccept: */*\r\n", True),
        ("Host: a\r\nConnection: keep-alive\r\nUpgrade-Insecure-Requests: 1\r\n", True),
        ("Host: a\r\nHost: a\r\n", False),
        ("Accept: */*\r\n", False),
        ("Host: a\r\nCONTENT-LENGTH: 0\r\n", False),
        ("Host: a\r\nTransfer-Encoding: chunked\r\n", False),
        ("Host: a\r\nConnection: close\r\n", False),
        ("Host: a\r\nConnection: keep-alive, Upgrade\r\n", False),
        ("Host: a\r\nUpgrade: h2c\r\n", False),
        ("Host: a\r\nExpect: 100-continue\r\n", False),
        ("Host: a\r\nX: a\r\n b\r\n", False),
        ("Host: a\nX: a\r\n", False),
    ],
)
def test_what_says_something_special_is_for_h11(head, is_plain):
    found = plain(f"GET /search?q=wing HTTP/1.1\r\n{head}\r\n".encode())
    assert (found is not None) == is_plain
    if found is not None:
        assert (found.path, found.query) == ("/search", b"q=wing")


@pytest.mark.parametrize("status", [200, 422, 503])
def test_an_answer_is_written_as_h11_does(status):
    body, headers = b'{"a":1}', [(b"server", b"x"), (b"content-length", b"7"), (b"x-y", b"z")]
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.next_event()
    start = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
    events = (start, h11.Data(data=body), h11.EndOfMessage())
    assert written(status, headers, body) == b"".join(map(connection.send, events))


@pytest.mark.parametrize("value", [b"a\r\nX: b", b"a\nb", b"a\rb"])
def test_no_header_ends_its_line(value):
    with pytest.raises(ValueError, match="line end"):
        written(200, [(b"x", value)], b"")


@pytest.fixture
def served(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home), hosts={"localhost"}) as served:
        yield served


def answered(client):
    """All bytes of the next answer, but for what the time tells."""
    head = b"".join(iter(client.file.readline, b"\r\n"))
    body = client.file.read(int(re.search(rb"content-length: (\d+)", head)[1]))
    return re.sub(rb"\r\ndate:[^\r]*|content-length:[^\r]*", b"", head), re.sub(
        rb'"time_ms":[\d.]+', b"", body
    )


@pytest.mark.parametrize(
    "query", ["q=wing", "q=wing&k=0", "q=wing&nothing=1", "", "q=%00%ff", "q=wing&index=none"]
)
def test_both_ways_answer_with_the_same_bytes(served, query):
    request = f"GET /search?{query} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: me\r\n"
    with served.client() as client:
        client.send(f"{request}\r\n")
        straight = answered(client)
        client.send(f"{request}Content-Length: 0\r\n\r\n")  # which is for h11
        assert answered(client) == straight


def test_get_and_post_give_one_answer(served):
    body = json.dumps({"q": "wing", "k": 2})
    with served.client() as client:
        _, found = client.get("/search?q=wing&k=2")
        client.send(
            "POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
        _, _, posted = client.answer()
    assert {**found, "time_ms": 0} == {**posted, "time_ms": 0}
    assert found["hits"]


def test_gates_stand_before_it(served):
    with served.client() as client:
        client.send("GET /search?q=wing HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert client.answer()[0] == 421


def test_what_comes_while_it_is_answered_waits_for_its_turn(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home), running=1) as served, served.client() as client:
        going, begun = threading.Event(), threading.Event()
        served.admission._pool.submit(lambda: (begun.set(), going.wait(PATIENCE)))
        begun.wait(PATIENCE)
        client.ask("/search?q=wing")
        wait_until(lambda: len(served.server._connections))
        (connection,) = served.server._connections._open
        wait_until(lambda: connection.cycle is not None)
        client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /sea")
        wait_until(lambda: connection._ahead)
        going.set()
        assert "hits" in client.answer()[2]
        assert client.answer()[2]["ok"]
        client.send("rch?q=ice HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.answer()[2]["hits"][0]["id"] == "3"


def test_who_leaves_is_not_answered(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home), running=1) as served:
        going, begun = threading.Event(), threading.Event()
        served.admission._pool.submit(lambda: (begun.set(), going.wait(PATIENCE)))
        begun.wait(PATIENCE)
        with served.client() as client:
            client.ask("/search?q=wing")
            wait_until(lambda: served.server.server_state.tasks)
        going.set()
        wait_until(lambda: not served.server.server_state.tasks)
        assert served.get("/search?q=wing")[0] == 200
        wait_until(lambda: not len(served.server._connections))
        assert served.server._connections._waiting == 0


@pytest.fixture
def at_once(catalog_of, tiny_home):
    """A service that answers short searches in its loop, and whose only thread is taken."""
    with serving(catalog_of(tiny_home), running=1, at_once=LONG) as served:
        going, begun = threading.Event(), threading.Event()
        served.admission._pool.submit(lambda: (begun.set(), going.wait(PATIENCE)))
        begun.wait(PATIENCE)
        served.going = going
        yield served
        going.set()


@pytest.mark.parametrize("query", ["q=wing", "q=wing+ice&k=2&index=tiny", "q="])
def test_a_short_search_needs_no_thread_and_has_the_same_answer(at_once, served, query):
    (status, found), (_, expected) = (each.get(f"/search?{query}") for each in (at_once, served))
    assert status == 200
    assert {**found, "time_ms": 0} == {**expected, "time_ms": 0}


@pytest.mark.parametrize(
    "query", ["q=wing+-ice", "q=wnig", "q=wing&k=21", "q=wing&highlight=true", "q=" + 100 * "wing+"]
)
def test_what_may_take_longer_goes_to_a_thread(at_once, query):
    with at_once.client() as client:
        client.ask(f"/search?{query}")
        wait_until(lambda: at_once.admission.load() == (0, 1))
        assert at_once.get("/health")[0] == 200
        assert at_once.get("/search?q=wing")[0] == 200
        at_once.going.set()
        assert client.answer()[0] == 200


def test_where_many_wait_the_loop_has_other_things_to_do(at_once, monkeypatch):
    monkeypatch.setattr(desk, "CALM", 0)
    with at_once.client() as client:
        client.ask("/search?q=wing")
        wait_until(lambda: at_once.admission.load() == (0, 1))
        at_once.going.set()
        assert client.answer()[0] == 200
