"""Clients that dawdle, over real sockets."""

import errno
import http.client

import pytest

from klsa_search.service.protocol import connections
from klsa_search.service.protocol.connection import PIECE, Waiting
from klsa_search.service.protocol.connections import Bounds, Connections
from klsa_search.service.protocol.descriptors import FEWEST
from tests.support.waiting import wait_until

from .conftest import build_tiny
from .sockets import Client, serving


@pytest.fixture
def served(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home)) as served:
        yield served


def too_late(served, client, part):
    """Send a part of a request, and let the time for the rest of it pass."""
    client.send(part)
    wait_until(served.begun)
    served.let_time_pass()


def refused(client, status, code):
    """The head of the answer in the shape of all failures, after which the connection ends."""
    found, head, content = client.answer()
    assert (found, content["error"]["code"]) == (status, code)
    assert list(content["error"]) == ["code", "message", "field"]
    assert head["content-type"] == "application/json"
    assert head["connection"] == "close"
    assert client.is_ended()
    return head


@pytest.mark.parametrize(
    "part",
    [
        "GET /health HT",
        "GET /health HTTP/1.1\r\nHost: x\r\n",
        "POST /search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        'Content-Length: 100\r\n\r\n{"q": ',
    ],
)
def test_half_a_request_is_answered_408(served, part):
    with served.client() as client:
        too_late(served, client, part)
        refused(client, 408, "request_timeout")
    with served.client() as client:  # and so after a whole one
        assert client.get("/health")[0] == 200
        too_late(served, client, part)
        refused(client, 408, "request_timeout")
    assert served.get("/search?q=wing")[0] == 200


def test_silence_is_ended_without_a_word(served):
    with served.client() as client:
        wait_until(lambda: len(served.connections) == 1)
        served.let_time_pass()
        assert client.is_ended()


def test_rest_of_a_body_that_nobody_wants_is_not_awaited_for_ever(served):
    with served.client() as client:
        client.send("GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
        assert client.answer()[0] == 200
        served.let_time_pass()
        assert client.is_ended()


def test_connection_between_requests_is_kept(served):
    with served.client() as client:
        assert client.get("/health")[0] == 200
        with served.client() as other:
            wait_until(lambda: len(served.connections) == 2)
            served.let_time_pass()
            assert other.is_ended()
        assert client.get("/health")[0] == 200


@pytest.mark.parametrize("garbage", ["\r\r\r\n\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_refused_in_the_one_shape(served, garbage):
    with served.client() as client:
        client.send(garbage)
        refused(client, 400, "bad_request")


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("GET / HTTP/1.1\r\n\r\n", "Host"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "Host"),
        ("GET / HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n", "header"),
        ("GET /?q=" + "x" * 200_000, "its head has more than 131072 bytes"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(served, request_, said):
    with served.client() as client:
        client.send(request_)
        status, _, content = client.answer()
        assert status == 400
        assert said in content["error"]["message"]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost/health", 200),
        ("HTTP://localhost:8000/documents/a%2Fb%20c%3F%25", 200),
        ("http://[::1]/search?q=wing", 200),
        ("https://localhost", 200),
        ("http://localhost?x=1", 200),
        ("http://localhost/documents/http://localhost/", 404),
        ("http://evil.example/health", 421),
        ("http:///health", 421),
    ],
)
def test_a_target_may_be_a_whole_address(catalog_of, tiny_home, target, status):
    with serving(catalog_of(tiny_home), hosts=()) as served, served.client() as client:
        client.ask(target)
        found, _, content = client.answer()
        assert found == status
        if status == 404:
            assert content["error"]["code"] == "document_not_found"


class Descriptors:
    """How many connections there may be, as long as anybody can tell."""

    def __init__(self, most):
        self.most = most

    def __call__(self, _):
        if self.most is None:
            raise OSError(errno.EMFILE, "too many open files")
        return self.most


def test_without_a_descriptor_to_count_them_connections_are_looked_after(catalog_of, tiny_home):
    most = Descriptors(1000)
    with serving(catalog_of(tiny_home), most=most) as served:
        most.most = None
        for _ in range(2):
            with served.client() as client:
                too_late(served, client, "GET /health HT")
                refused(client, 408, "request_timeout")


def test_where_descriptors_are_not_listed_there_is_room_for_the_fewest():
    connections = Connections(Descriptors(None))
    connections.look()
    assert connections._room == FEWEST


def test_a_slip_does_not_end_the_watch(catalog_of, tiny_home, monkeypatch, caplog):
    slips = [ZeroDivisionError("a slip")] * 2
    look = Connections.look

    def slipping(self):
        if slips:
            raise slips.pop()
        look(self)

    monkeypatch.setattr(Connections, "look", slipping)
    with serving(catalog_of(tiny_home)) as served, served.client() as client:
        too_late(served, client, "GET /health HT")
        refused(client, 408, "request_timeout")
    assert "could not be checked" in caplog.text


def test_head_without_an_end_is_refused(served):
    with served.client() as client:
        client.send("GET /search?q=" + "x" * 200_000)
        assert client.answer()[0] == 400


def test_longest_query_is_answered(served):
    with served.client() as client:
        query = "%F0%9F%9B%A9" * 10_000
        for part in (f"GET /search?q={query[:60_000]}", query[60_000:], " HTTP/1.1\r\n"):
            client.send(part)
        client.send("Host: x\r\n\r\n")
        assert client.answer()[0] == 200


def test_requests_in_one_piece_are_answered_in_turn(served):
    with served.client() as client:
        client.send("GET /documents/1 HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        for _ in range(3):
            assert client.answer()[2]["title"] == "Wings"


def test_head_is_answered_without_a_body(served):
    with served.client() as client:
        for path in ("/", "/health", "/search?q=wing", "/docs", "/documents/nope"):
            client.ask(path, "HEAD")
            status, head, content = client.answer("HEAD")
            assert (status, content) == (404 if "nope" in path else 200, None)
            assert int(head["content-length"]) > 0
        assert client.get("/health")[0] == 200


def test_who_is_idle_for_longest_makes_room(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home), most=3) as served:
        first, second, third = (served.client() for _ in range(3))
        for client in (first, second, third):
            assert client.get("/health")[0] == 200
        served.let_time_pass()
        for client in (third, first):
            assert client.get("/health")[0] == 200
        with served.client() as fourth:
            assert fourth.get("/search?q=wing")[0] == 200
            assert second.is_ended()
            for client in (first, third, fourth):
                assert client.get("/health")[0] == 200
        for client in (first, second, third):
            client.close()


def test_who_was_answered_a_moment_ago_is_not_cut_off(catalog_of, tiny_home, monkeypatch):
    """He may have asked again; who comes new is told at once that there is no room."""
    monkeypatch.setattr(connections, "MOMENT", 1e9)
    with serving(catalog_of(tiny_home), most=2) as served:
        clients = [served.client() for _ in range(2)]
        for client in clients:
            assert client.get("/health")[0] == 200
        with served.client() as third:
            status, content = third.get("/search?q=wing")
            assert (status, content["error"]["code"]) == (503, "busy")
        for client in clients:
            assert client.get("/health")[0] == 200
            client.close()


def test_many_that_do_nothing_do_not_end_the_service(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home), most=4) as served:
        idle = [served.client() for _ in range(20)]
        half = [served.client() for _ in range(20)]
        for client in half:
            client.send("GET /health HTTP/1.1\r\n")
        assert served.get("/search?q=wing")[0] == 200
        for client in (*idle, *half):
            client.close()


def test_who_does_not_take_his_answer_holds_no_thread_and_is_dropped(catalog_of, tmp_path):
    build_tiny(tmp_path, documents=[{"id": "1", "text": "wing", "notes": "x" * 12_000_000}])
    with (
        serving(catalog_of(tmp_path), running=1) as served,
        Client(served.address, receive_buffer=4096) as client,
    ):
        client.ask("/documents/1")
        assert client.file.read(8) == b"HTTP/1.1"
        assert served.get("/search?q=wing")[0] == 200
        assert not served.admission.at_work

        def gone():  # more than once: until it is full the system takes a little more
            served.let_time_pass()
            return not served.server.server_state.connections

        wait_until(gone)


def test_answers_that_nobody_takes_are_bounded_together(catalog_of, tmp_path):
    build_tiny(tmp_path, documents=[{"id": "1", "text": "wing", "notes": "x" * 12_000_000}])
    with serving(catalog_of(tmp_path), bounds=Bounds(unsent=15_000_000)) as served:
        clients = [Client(served.address, receive_buffer=4096) for _ in range(3)]
        for client in clients:
            client.ask("/documents/1")
            assert client.file.read(8) == b"HTTP/1.1"
        wait_until(lambda: len(served.server.server_state.connections) <= 1)
        assert served.get("/health")[0] == 200
        for client in clients:
            client.close()


def test_a_long_body_has_its_time_anew_with_each_piece(served):
    with served.client() as client:
        client.send(
            "POST /search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {4 * PIECE}\r\n\r\n "
        )
        wait_until(served.begun)
        (connection,) = served.begun()
        connection.since = 0.0
        client.send(PIECE * " ")
        wait_until(lambda: connection.since > 0)
        assert connection.note() is Waiting.REQUEST


def test_above_what_it_takes_requests_are_refused_before_they_are_read(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home), running=1, waiting=0, heavy=(1, 0)) as served:
        connections = served.server._connections
        with served.client() as client, served.client() as other:
            assert client.get("/search?q=wing")[0] == 200
            connections._at_work = lambda: 0  # as many as it takes are under way
            for _ in range(2):
                client.ask("/search?q=wing")
                status, head, content = client.answer()
                assert (status, content["error"]["code"]) == (503, "busy")
                assert head["retry-after"] == "1"
                assert client.get("/health")[0] == 200
            other.ask("/search?q=wing")  # its first one
            assert other.answer()[0] == 503
            assert connections.refused == 3
            assert 'klsa_refusals_total{pool="connections",reason="full"} 3.0' in metrics(client)
            connections._at_work = lambda: 2
            for each in (client, other):
                assert each.get("/search?q=wing")[0] == 200


def metrics(client):
    client.ask("/metrics")
    assert b" 200 " in client.file.readline()
    head = http.client.parse_headers(client.file)
    return client.file.read(int(head["content-length"])).decode()


@pytest.mark.parametrize(
    "asked",
    [
        "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /search?q=a HTTP/1.0\r\n\r\n",
        "GET /search?q=a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n",
        "GET /search?q=a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "POST /search HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /search?q=a HTTP/1.1\r\nHost: a\r\n\r\nGET /search?q=a HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_is_no_plain_request_is_read_in_full(catalog_of, tiny_home, asked):
    with serving(catalog_of(tiny_home)) as served, served.client() as client:
        served.server._connections._at_work = lambda: 0
        client.send(asked)
        assert client.answer() is not None
        assert served.server._connections.refused == 0


def test_what_is_at_work_is_counted(catalog_of, tiny_home):
    with serving(catalog_of(tiny_home)) as served:
        connections = served.server._connections
        for path in ("/search?q=wing", "/health", "/nothing"):
            with served.client() as client:
                client.get(path)
                assert connections._waiting == 0
        with served.client() as client:
            client.send("POST /search HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        assert connections._waiting == 0
