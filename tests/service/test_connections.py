"""Idle, slow and unusual connections, over real sockets."""

import httpx
import pytest

from klsa_search.service.admission import Writes
from tests.support.waiting import wait_until

from .conftest import build_tiny
from .sockets import Client, serving


@pytest.fixture
def served(indexes_of, tiny_home):
    with serving(indexes_of(tiny_home)) as served:
        yield served


def test_input_other_than_http_is_refused(served):
    with served.client() as client:
        client.send("no HTTP\r\n\r\n")
        assert client.file.readline().startswith(b"HTTP/1.1 400 ")
    assert served.get("/search?q=wing")[0] == 200


def test_a_client_that_leaves_is_no_failure(indexes_of, tmp_path, caplog):
    build_tiny(tmp_path)
    with serving(indexes_of(tmp_path), writes=Writes()) as served:
        for kind in ("application/json", "application/x-ndjson"):
            with served.client() as client:
                client.send("POST /indexes/tiny/documents HTTP/1.1\r\nHost: x\r\n")
                client.send(f"Content-Type: {kind}\r\nContent-Length: 99\r\n\r\n[")
        url = "http://{}:{}/metrics".format(*served.address)
        counted = 'method="POST",route="/indexes/{name}/documents",status="499"'
        wait_until(lambda: f"{{{counted}}} 2.0" in httpx.get(url).text)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_longest_query_is_answered(served):
    with served.client() as client:
        query = "%F0%9F%9B%A9" * 5_000  # nearly 64 KiB; a body may hold more
        for part in ("GET /search?q=", query[:40_000], query[40_000:], " HTTP/1.1\r\nHost: x\r\n"):
            client.send(part)
        client.send("\r\n")
        assert client.answer()[0] == 200


def test_pipelined_requests_are_answered_in_order(served):
    with served.client() as client:
        client.send("GET /documents/1 HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        for _ in range(3):
            assert client.answer()[2]["title"] == "Wings"


def test_head_and_body_of_an_answer_are_sent_at_once(served):
    with served.client() as client:
        client.ask("/search?q=wing")
        head, _, body = client.socket.recv(2**16).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert body.endswith(b"}")


def test_large_answers_are_whole_and_keep_their_order(indexes_of, tmp_path):
    texts = {str(size): "x" * size for size in (1, 2**15, 2**16, 2**18)}
    documents = [{"id": id_, "title": "", "text": text} for id_, text in texts.items()]
    build_tiny(tmp_path, documents=documents)
    with serving(indexes_of(tmp_path)) as served, served.client() as client:
        for id_ in [*texts, *texts]:
            client.ask(f"/documents/{id_}")
        for id_ in [*texts, *texts]:
            assert client.answer()[2]["text"] == texts[id_]


def test_head_is_answered_without_a_body(served):
    with served.client() as client:
        for path in ("/", "/health", "/search?q=wing", "/docs", "/documents/nope"):
            client.ask(path, "HEAD")
            status, head, content = client.answer("HEAD")
            assert (status, content) == (404 if "nope" in path else 200, None)
            assert int(head["content-length"]) > 0
        assert client.get("/health")[0] == 200


def test_silent_and_incomplete_connections_delay_no_others(served):
    idle = [served.client() for _ in range(200)]
    for client in idle[::2]:
        client.send("GET /health HTTP/1.1\r\n")
    assert served.get("/search?q=wing")[0] == 200
    for client in idle:
        client.close()


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer_holds_no_thread(indexes_of, tmp_path):
    build_tiny(tmp_path, documents=[{"id": "1", "title": "", "text": "wing " * 1_000_000}])
    with (
        serving(indexes_of(tmp_path), running=1, grace=0.05) as served,
        Client(served.address, receive_buffer=4096) as client,
    ):
        client.ask("/documents/1")
        assert client.file.read(8) == b"HTTP/1.1"
        assert served.get("/search?q=wing")[0] == 200
        assert not served.admission.is_busy
