"""Embedders at an address, against a stand-in on this machine."""

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from klsa_search.embedding import open_embedder
from klsa_search.embedding.openai import KEY, OpenAIEmbedder, retry_after
from klsa_search.errors import EmbedderFailed
from tests.support.waiting import PATIENCE


class StandIn:
    """A service of embeddings; `failures` are its next answers: (status, headers, body)."""

    def __init__(self):
        self.requests = []
        self.failures = []
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stand_in.requests.append((self.path, dict(self.headers), body))
                data = [
                    {"index": n, "embedding": [1.0, len(text)]}
                    for n, text in enumerate(body["input"])
                ]
                status, headers, content = 200, {}, json.dumps({"data": data[::-1]})
                if stand_in.failures:
                    status, headers, content = stand_in.failures.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(PATIENCE)


@pytest.fixture
def stand_in():
    stand_in = StandIn()
    yield stand_in
    stand_in.stop()


def test_texts_are_sent_in_batches_and_answers_put_in_order(stand_in, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(KEY, "a-secret")
    embedder = open_embedder(f"openai:{stand_in.url}#tiny")
    assert embedder.fingerprint == "openai:tiny"
    texts = ["x" * (n + 1) for n in range(100)]
    assert embedder.embed(texts, "document")[:, 1].tolist() == list(range(1, 101))
    assert embedder.dimension == 2
    paths, headers, bodies = zip(*stand_in.requests, strict=True)
    assert set(paths) == {"/v1/embeddings"}
    assert [len(body["input"]) for body in bodies] == [64, 36]
    assert {body["model"] for body in bodies} == {"tiny"}
    assert {each["Authorization"] for each in headers} == {"Bearer a-secret"}
    assert "a-secret" not in caplog.text
    assert "a-secret" not in repr(embedder)


def test_long_texts_are_cut(stand_in):
    embedder = OpenAIEmbedder(f"{stand_in.url}/embeddings", "tiny")
    embedder.embed(["x" * 100_000], "document")
    ((path, headers, body),) = stand_in.requests
    assert path == "/v1/embeddings"
    assert "Authorization" not in headers
    assert len(body["input"][0]) == 8_000


def test_temporary_failures_of_documents_are_tried_again(stand_in):
    stand_in.failures = [(429, {"Retry-After": "0"}, ""), (503, {}, ""), (500, {}, "")]
    embedder = OpenAIEmbedder(stand_in.url, "tiny", back_off=0.001)
    assert embedder.embed(["cold"], "document").tolist() == [[1, 4]]
    assert len(stand_in.requests) == 4
    stand_in.failures = [(503, {}, "")]
    with pytest.raises(EmbedderFailed, match="status 503"):
        embedder.embed(["cold"], "query")  # a search does not wait
    stand_in.failures = [(503, {}, "")] * 5
    with pytest.raises(EmbedderFailed, match="status 503"):
        embedder.embed(["cold"], "document")
    assert not stand_in.failures


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ((401, {}, '{"error": {"message": "not a-secret"}}'), f"refused the API key; set {KEY}"),
        ((404, {}, '{"error": {"message": "no model"}}'), r"404 \(no model\); check address"),
        ((302, {"Location": "http://127.0.0.1:1/"}, ""), "status 302"),
        ((200, {}, "<html>"), "returned no JSON"),
        ((200, {}, "[]"), "returned no embeddings"),
        ((200, {}, '{"data": [{"index": 0, "embedding": ["a"]}]}'), "returned no embeddings"),
        ((200, {}, '{"data": [{"index": 0, "embedding": 1}]}'), "returned 1 embeddings"),
        ((200, {}, '{"data": []}'), "returned 0 embeddings of 1"),
    ],
)
def test_wrong_answers_are_named_and_not_tried_again(stand_in, failure, reason):
    stand_in.failures = [failure]
    with pytest.raises(EmbedderFailed, match=reason) as failed:
        OpenAIEmbedder(stand_in.url, "tiny", key="a-secret").embed(["cold"], "document")
    assert "a-secret" not in str(failed.value)
    assert len(stand_in.requests) == 1


def test_a_service_that_does_not_run_is_named_and_opened_nevertheless():
    stand_in = StandIn()
    stand_in.stop()
    embedder = open_embedder(f"openai:{stand_in.url}#tiny")
    with pytest.raises(EmbedderFailed, match="is not reachable"):
        embedder.embed(["cold"], "query")


def test_retry_after_is_a_number_or_a_date():
    dates = ("Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 21 Oct 2499 07:28:00 GMT")
    answers = [httpx.Response(429, headers={"Retry-After": each}) for each in ("7", *dates, "soon")]
    seconds = list(map(retry_after, answers))
    assert seconds[0] == 7
    assert seconds[1] == seconds[3] == 0
    assert seconds[2] > 1e9
