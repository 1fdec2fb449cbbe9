"""Calls of code that may hang or fail: a time limit for each, and a pause after repeated failures.

A call runs in a daemon thread, which is left to itself after the limit, so that neither a search
nor the end of the process waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from klsa_search.errors import EmbedderFailed, KlsaError

T = TypeVar("T")

MAX_FAILURES: Final = 3
"""Failures in a row after which calls are refused for a while."""

PAUSE: Final = 30.0
"""Seconds until a call is tried again."""

_MAX_RUNNING: Final = 16
"""Calls at the same time, including those that hang."""


class LimitedCalls:
    """Runs calls of one embedder or reranker.

    subject  what fails, in messages: "embedder `minilm`"
    pause    seconds without calls after `MAX_FAILURES` failures
    """

    def __init__(self, subject: str, *, pause: float = PAUSE) -> None:
        self._subject = subject
        self._pause = pause
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
                    self._retry_at = time.monotonic() + self._pause
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
                self._retry_at = now + self._pause

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

        threading.Thread(target=run, name="klsa-embedder", daemon=True).start()
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
