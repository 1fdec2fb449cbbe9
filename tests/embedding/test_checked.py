"""What an embedder or reranker does wrong is named, and never returned."""

import threading
import time

import numpy as np
import pytest

from klsa_search.embedding import model
from klsa_search.embedding.model import (
    BATCH,
    MAX_FAILURES,
    CheckedEmbedder,
    CheckedReranker,
    LimitedCalls,
)
from klsa_search.errors import EmbedderFailed


class Stub:
    """An embedder that returns what a function makes of the texts."""

    name, fingerprint, dimension = "stub", "stub-1", 2

    def __init__(self, answer=None):
        self.calls = []
        self.answer = answer or (lambda texts: [[1.0, len(text)] for text in texts])

    def embed(self, texts, kind):
        self.calls.append((list(texts), kind))
        return self.answer(texts)


WRONG = {
    "shape": lambda texts: np.ones((len(texts), 3)),
    "too_few": lambda texts: np.ones((len(texts) - 1, 2)),
    "flat": lambda texts: np.ones(2 * len(texts)),
    "nan": lambda texts: np.full((len(texts), 2), np.nan),
    "infinite": lambda texts: np.full((len(texts), 2), np.inf),
    "beyond_float32": lambda texts: np.full((len(texts), 2), 1e300),
    "zeros": lambda texts: np.zeros((len(texts), 2)),
    "integers": lambda texts: np.ones((len(texts), 2), int),
    "objects": lambda texts: np.full((len(texts), 2), None),
    "ragged": lambda texts: [[1.0], *([1.0, 2.0] for _ in texts[1:])],
    "nothing": lambda texts: None,
    "raises": lambda texts: {}["no such key"],
    "timeout": lambda texts: (_ for _ in ()).throw(TimeoutError("of its own")),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_refused(wrong):
    embedder = CheckedEmbedder(Stub(WRONG[wrong]))
    for kind in ("query", "document"):
        with pytest.raises(EmbedderFailed, match="embedder `stub` "):
            embedder.embed(["cold engines", "wet roads"], kind)


def test_vectors_are_float32_in_the_order_of_the_texts():
    stub = Stub()
    texts = ["x" * (n * 37 % 101 + 1) for n in range(3 * BATCH)]
    vectors = CheckedEmbedder(stub).embed(texts, "document")
    assert vectors.dtype == np.float32
    assert vectors[:, 1].tolist() == [len(text) for text in texts]
    assert [len(texts) for texts, _ in stub.calls] == [BATCH] * 3
    lengths = [len(text) for texts, _ in stub.calls for text in texts]
    assert lengths == sorted(lengths)  # so that little is padded


def test_queries_are_cached_but_failures_are_not():
    stub = Stub()
    embedder = CheckedEmbedder(stub)
    first = embedder.embed(["cold"], "query")
    first[:] = 0  # the cache has a copy
    assert embedder.embed(["cold"], "query").tolist() == [[1, 4]]
    assert stub.calls == [(["cold"], "query")]
    stub.answer = WRONG["nan"]
    with pytest.raises(EmbedderFailed):
        embedder.embed(["wet"], "query")
    stub.answer = lambda texts: [[2.0, 3.0]]
    assert embedder.embed(["wet"], "query").tolist() == [[2, 3]]


def test_an_embedder_that_hangs_delays_no_caller(monkeypatch):
    monkeypatch.setattr(model, "QUERY_SECONDS", 0.01)
    release = threading.Event()
    stub = Stub(lambda texts: release.wait(60) and [[1.0, 1.0]])
    embedder = CheckedEmbedder(stub)
    with pytest.raises(EmbedderFailed, match=r"did not answer within 0\.01 s"):
        embedder.embed(["cold"], "query")
    release.set()


def test_after_failures_there_is_a_pause_and_one_call_tries_again(monkeypatch):
    stub = Stub(WRONG["nan"])
    embedder = CheckedEmbedder(stub)
    for number in range(MAX_FAILURES + 2):
        with pytest.raises(EmbedderFailed, match="NaN"):
            embedder.embed([f"query {number}"], "query")
    assert len(stub.calls) == MAX_FAILURES

    monkeypatch.setattr(model, "PAUSE", 0)
    calls = LimitedCalls("embedder `x`")
    for _ in range(MAX_FAILURES + 1):
        with pytest.raises(EmbedderFailed, match="division"):
            calls.call(lambda: 1 / 0, 60)
    assert calls.call(lambda: 1, 60) == 1
    with pytest.raises(EmbedderFailed, match="division"):  # counted from 0 again
        calls.call(lambda: 1 / 0, 60)


def test_calls_that_hang_are_limited_in_number(monkeypatch):
    monkeypatch.setattr(model, "PAUSE", 0)
    release = threading.Event()
    calls = LimitedCalls("embedder `x`")
    for _ in range(16):
        with pytest.raises(EmbedderFailed, match="did not answer"):
            calls.call(lambda: release.wait(60), 0)
    with pytest.raises(EmbedderFailed, match="running calls"):
        calls.call(lambda: 1, 0)
    release.set()


def test_calls_whose_thread_does_not_start_take_no_place(monkeypatch):
    monkeypatch.setattr(model, "PAUSE", 0)
    calls = LimitedCalls("embedder `x`")

    class Thread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as without_threads:
        without_threads.setattr(model.threading, "Thread", Thread)
        for _ in range(16):
            with pytest.raises(EmbedderFailed, match="can't start new thread"):
                calls.call(lambda: 1, 60)
    assert calls.call(lambda: 1, 0.1) == 1


@pytest.mark.parametrize("scores", [[1.0], [1.0, np.nan], ["a", "b"], None, [[1.0, 2.0]]], ids=repr)
def test_wrong_scores_are_refused(scores):
    with pytest.raises(EmbedderFailed, match="reranker `mine` "):
        CheckedReranker(lambda query, texts: scores, "mine")("cold", ["a", "b"])


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()])
def test_an_embedder_that_exits_fails_at_once(raised):
    def answer(texts):
        raise raised

    began = time.monotonic()
    with pytest.raises(EmbedderFailed, match=f"failed .{type(raised).__name__}"):
        CheckedEmbedder(Stub(answer)).embed(["a"], "document")
    assert time.monotonic() - began < 30


def test_a_dimension_that_cannot_be_stored_is_refused():
    stub = Stub(lambda texts: np.ones((len(texts), 100_000)))
    stub.dimension = 100_000
    embedder = CheckedEmbedder(stub)
    for call in (lambda: embedder.dimension, lambda: embedder.embed(["a"], "document")):
        with pytest.raises(EmbedderFailed, match="100,000 values, 1 to 8,192 are allowed"):
            call()
