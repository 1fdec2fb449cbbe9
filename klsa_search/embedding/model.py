"""The protocols of embedders and rerankers, and their implementations with time limits.

Every answer of a model is checked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import MAX_DIMENSION
from klsa_search.errors import EmbedderFailed, KlsaError

T = TypeVar("T")

EmbedKind = Literal["query", "document"]
"""What a text is; some models embed queries and documents differently."""

Embeddings = npt.NDArray[np.float32]  # (n, dimension), one row for each text


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; used by several threads at once.

    >>> class Lengths:
    ...     name, fingerprint, dimension = "lengths", "lengths-1", 2
    ...
    ...     def embed(self, texts, kind):
    ...         return np.array([[1, len(text)] for text in texts], np.float32)
    >>> isinstance(Lengths(), Embedder)
    True
    """

    @property
    def name(self) -> str:
        """Return the name for messages."""

    @property
    def fingerprint(self) -> str:
        """Return a text that identifies model and preprocessing; indexes record it."""

    @property
    def dimension(self) -> int:
        """Return the number of components of a vector; EmbedderFailed if it is unknown yet."""

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embeddings:
        """Return the vectors of texts, (n, dimension)."""


@runtime_checkable
class Reranker(Protocol):
    """Scores texts for a query, such as a cross-encoder; used by several threads at once.

    >>> def longest(query, texts):
    ...     return [len(text) for text in texts]
    >>> isinstance(longest, Reranker)
    True
    """

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text; higher is better."""


def embedded_text(document: Document) -> str:
    """Return the text of a document, or passage, for an embedder or reranker.

    >>> print(embedded_text(Document(id="oil", title="Oil", text="Change it.")))
    Oil
    Change it.
    """
    return "\n".join(part for part in (document.title, document.text) if part.strip())


def in_batches(work: Callable[[Sequence[str]], Any], texts: Sequence[str], size: int) -> list[Any]:
    """Return one result of `work` for each text, computed in batches of similar length.

    Texts of a batch are padded to the longest of them, so sorting saves most of the work.
    """
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    results: list[Any] = [None] * len(texts)
    for start in range(0, len(order), size):
        numbers = order[start : start + size]
        for number, result in zip(numbers, work([texts[at] for at in numbers]), strict=True):
            results[number] = result
    return results


QUERY_SECONDS: Final = 2.0  # time limit of the embedding of a query
BATCH_SECONDS: Final = 600.0
"""Time limit of the embedding of a batch of documents, of a large model on a busy machine."""

RERANK_SECONDS: Final = 5.0  # time limit of the scores of a reranker
BATCH: Final = 64  # texts that an embedder gets at once
_CACHED_QUERIES: Final = 1024


MAX_FAILURES: Final = 3  # failures in a row after which calls are refused for a while
PAUSE: Final = 30.0  # seconds until a call is tried again
_MAX_RUNNING: Final = 16  # calls at the same time, including those that hang


class LimitedCalls:
    """Runs calls of one embedder or reranker, with a time limit and a pause after failures.

    A call runs in a daemon thread, which is abandoned after the limit, so that neither a search nor
    the end of the process waits for it.

    subject  what fails, in messages: "embedder `minilm`"
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._slots = threading.BoundedSemaphore(_MAX_RUNNING)
        self._lock = threading.Lock()  # guards the attributes below
        self._failures = 0
        self._retry_at = 0.0  # in seconds of `monotonic`
        self._reason = ""

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """Return the result of `work`; EmbedderFailed if it fails, is late, or in a pause."""
        self._refuse_in_pause()
        try:
            result = self._run(work, seconds)
        except EmbedderFailed as failure:
            with self._lock:
                self._failures += 1
                self._reason = failure.message
                if self._failures >= MAX_FAILURES:
                    self._retry_at = time.monotonic() + PAUSE
            raise
        with self._lock:
            self._failures, self._retry_at = 0, 0.0
        return result

    def failed(self, reason: str, step: str = "correct it") -> EmbedderFailed:
        """Return the error for a reason, such as "returned NaN"."""
        return EmbedderFailed(f"{self._subject} {reason}; {step}", field="embedder")

    def _refuse_in_pause(self) -> None:
        now = time.monotonic()
        with self._lock:
            wait = self._retry_at - now
            if wait > 0:
                raise EmbedderFailed(
                    f"{self._subject} is not called for {wait:.0f} s after {self._failures} "
                    f"failures; the last one: {self._reason}",
                    field="embedder",
                )
            if self._failures >= MAX_FAILURES:  # this call tries it, and others wait for its result
                self._retry_at = now + PAUSE

    def _run(self, work: Callable[[], T], seconds: float) -> T:
        end = time.monotonic() + seconds
        if not self._slots.acquire(timeout=seconds):
            raise self.failed(f"has {_MAX_RUNNING} running calls", "wait until it answers")
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - of the user's code, also SystemExit
                future.set_exception(error)
            finally:
                self._slots.release()

        try:
            threading.Thread(target=run, name="klsa-embedder", daemon=True).start()
        except RuntimeError as error:  # too many threads
            self._slots.release()
            raise self.failed(f"cannot be called ({error})", "end other work") from error
        try:
            return future.result(max(0.0, end - time.monotonic()))
        except KlsaError:
            raise
        except BaseException as error:  # code of the user may raise anything
            if future.done():
                raise self.failed(f"failed ({type(error).__name__}: {error})") from error
            if not isinstance(error, TimeoutError):
                raise  # of this thread, such as KeyboardInterrupt
            raise self.failed(
                f"did not answer within {seconds:g} s", "check it, or use a faster model"
            ) from None


class CheckedEmbedder:
    """An embedder with time limits, checked answers and a cache of queries.

    A vector has the declared dimension, finite components, and is not zero. After three failures in
    a row the embedder is not called for 30 s; those of queries and of documents are counted apart,
    as a model that is too slow for many documents may embed queries. EmbedderFailed names the
    fault.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        subject = f"embedder `{embedder.name}`"
        self._calls: Mapping[EmbedKind, LimitedCalls] = {
            "query": LimitedCalls(subject),
            "document": LimitedCalls(subject),
        }
        self._query = lru_cache(_CACHED_QUERIES)(self._embedded_query)

    def __repr__(self) -> str:
        """Return name and fingerprint."""
        return f"<Embedder {self.name}: {self.fingerprint}>"

    @property
    def name(self) -> str:
        """Return the name of the embedder."""
        return self._embedder.name

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the embedder."""
        return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        """Return the dimension of the embedder; EmbedderFailed if it is unknown yet."""
        return self._calls["document"].call(self._dimension, BATCH_SECONDS)

    def embed(
        self, texts: Sequence[str], kind: EmbedKind, *, seconds: float | None = None
    ) -> Embeddings:
        """Return the vectors of texts, (n, dimension); EmbedderFailed.

        seconds  time limit of a batch of documents, if it is another than usual
        Vectors of queries are cached, and read-only.
        """
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        if kind == "query":
            rows = [self._query(text) for text in texts]
        else:
            limit = BATCH_SECONDS if seconds is None else min(seconds, BATCH_SECONDS)
            rows = in_batches(lambda batch: self._called(batch, "document", limit), texts, BATCH)
        return np.stack(rows)

    def _embedded_query(self, text: str) -> Embeddings:
        row: Embeddings = self._called([text], "query", QUERY_SECONDS)[0]
        row.setflags(write=False)
        return row

    def _called(self, texts: Sequence[str], kind: EmbedKind, seconds: float) -> Embeddings:
        def work() -> Embeddings:
            return self._checked(self._embedder.embed(texts, kind), len(texts))

        return self._calls[kind].call(work, seconds)

    def _dimension(self) -> int:
        """Return the declared dimension; EmbedderFailed if it is not one of a stored vector."""
        dimension = self._embedder.dimension
        if not 1 <= dimension <= MAX_DIMENSION:
            raise self._calls["document"].failed(
                f"has vectors of {dimension:,} values, 1 to {MAX_DIMENSION:,} are allowed",
                "use another model",
            )
        return dimension

    def _checked(self, answer: Any, number: int) -> Embeddings:
        """Return an answer as float32; EmbedderFailed if it is not one vector for each text."""
        failed = self._calls["document"].failed
        array = np.asarray(answer)
        if array.dtype.kind != "f":
            raise failed(
                f"returned an array of type {array.dtype}", "return floating-point numbers"
            )
        expected = (number, self._dimension())
        if array.shape != expected:
            raise failed(f"returned an array of shape {array.shape} instead of {expected}")
        with np.errstate(over="ignore"):
            vectors = np.array(array, np.float32)
        if not np.isfinite(vectors).all():
            raise failed("returned NaN or an infinite number")
        if not vectors.any(1).all():
            raise failed("returned a vector of zeros")
        return vectors


class CheckedReranker:
    """A reranker with a time limit and checked scores, as `CheckedEmbedder`."""

    def __init__(self, reranker: Reranker, name: str) -> None:
        self.name, self._reranker = name, reranker
        self._calls = LimitedCalls(f"reranker `{name}`")

    def __repr__(self) -> str:
        """Return the name."""
        return f"<Reranker {self.name}>"

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one finite score for each text; EmbedderFailed."""
        return self._calls.call(lambda: self._scores(query, texts), RERANK_SECONDS)

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        failed = self._calls.failed
        scores = np.asarray(self._reranker(query, texts))
        if scores.dtype.kind not in "fiu" or scores.shape != (len(texts),):
            raise failed(
                f"returned an array of shape {scores.shape} and type {scores.dtype}",
                f"return {len(texts)} numbers, one for each text",
            )
        if not np.isfinite(scores).all():
            raise failed("returned NaN or an infinite number")
        return [float(score) for score in scores]
