"""Periodic tasks, and a queue of writes that runs one at a time.

Writes to one index wait for each other anyway, and searches need the processors. The bodies of
waiting writes are in memory, so the queue is short.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from klsa_search.errors import KlsaError, RequestTimedOut, ServiceBusy, TooManyWrites
from klsa_search.service.admission import Admission

_log = logging.getLogger(__name__)


class PeriodicTask:
    """Calls a function at intervals, in its own thread, until it is stopped.

    name      name of the work in the log and the metrics
    interval  seconds between the end of a call and the next
    An exception is logged, with its traceback unless it is a `KlsaError`, and counted; the task
    continues. A repeated failure is logged once.
    """

    def __init__(self, name: str, work: Callable[[], object], interval: float) -> None:
        self.name = name
        self.failures = 0
        self._work, self._interval = work, interval
        self._logged = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"klsa-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread; the first call follows after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Make no further calls; a running call continues."""
        self._stopped.set()

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the end of the thread; return whether it ended in that time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def report(self, failure: BaseException) -> None:
        """Log and count a failure of the work."""
        self.failures += 1
        if repr(failure) == self._logged:
            return
        self._logged = repr(failure)
        if isinstance(failure, KlsaError):
            _log.warning("%s failed: %s; will retry", self.name, failure.message)
        else:
            _log.error("%s failed; will retry", self.name, exc_info=failure)

    def _run(self) -> None:
        failures = 0  # after the previous call; work may report more between two calls
        while not self._stopped.wait(self._interval):
            try:
                self._work()
            except Exception as failure:  # noqa: BLE001 - reported; must not end the thread
                self.report(failure)
            else:
                if self.failures == failures:
                    self._logged = ""
            failures = self.failures


WAITING = 16
"""Maximum number of active writes, including those whose body is being read."""

SHORT = 2**16
"""Maximum bytes of the body of a short write; the slowest accepted client sends it in 16 s."""

QUEUE_TIMEOUT = 20.0
"""Seconds after which a waiting write is refused; a write waits 10 s for another process."""

REQUEST_TIMEOUT = 60.0
"""Seconds after which a write is answered without its result; it continues, and is atomic."""


class Writes(Admission):
    """Runs writes one at a time in its own thread: see `Admission`."""

    def __init__(
        self,
        *,
        waiting: int = WAITING,
        queue_timeout: float = QUEUE_TIMEOUT,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        super().__init__(
            running=1, waiting=waiting, queue_timeout=queue_timeout, request_timeout=request_timeout
        )
        self._max_active = waiting
        self._max_long = max(1, waiting // 2)
        self._active_short = self._active_long = 0

    @contextmanager
    def slot(self, size: int | None = 0) -> Iterator[None]:
        """Reserve a slot for a write before its body is read; raises TooManyWrites.

        size  bytes of the body; None if unknown, as for a stream
        Long bodies take at most half of the slots, so that short writes are not blocked.
        """
        self.check()
        is_long = size is None or size > SHORT
        if is_long and self._active_long >= self._max_long:
            raise self._refusal("full", "the queue for long writes is full")
        if self._active_short + self._active_long >= self._max_active:
            raise self._refusal("full", "the write queue is full")
        self._active_long += is_long
        self._active_short += not is_long
        try:
            yield
        finally:
            self._active_long -= is_long
            self._active_short -= not is_long

    def check_request_timeout(self, started: float) -> None:
        """Do nothing: a write is never cancelled halfway."""

    def _busy(self, detail: str) -> ServiceBusy:
        return TooManyWrites(f"too many writes: {detail}; try again in a moment")

    def _timed_out(self, seconds: float) -> RequestTimedOut:
        return RequestTimedOut(
            f"the write took more than {seconds:g} s and continues; it can be sent again; "
            "send less at a time"
        )
