"""Background work of the service: repeated checks, and writes one after the other.

Writes to one index wait for each other anyway, and searching needs the processors. While a write
waits its body is in memory, so that few wait.
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
    """Calls a function at intervals, in a thread of its own, until it is stopped.

    name      of the work, for the log and the metrics
    interval  seconds between the end of a call and the next
    What a call raises is logged, with its traceback unless it is a `KlsaError`, and counted; it
    ends nothing. A failure that repeats is logged once.
    """

    def __init__(self, name: str, work: Callable[[], object], interval: float) -> None:
        self.name = name
        self.failures = 0
        self._work, self._interval = work, interval
        self._logged = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"klsa-{name}", daemon=True)

    def start(self) -> None:
        """Begin with the first interval."""
        self._thread.start()

    def stop(self) -> None:
        """Call the function no more; a call under way goes on."""
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
        failures = 0  # at the end of the call before: work may also report some after its call
        while not self._stopped.wait(self._interval):
            try:
                self._work()
            except Exception as failure:  # noqa: BLE001 - it is reported, and must not end the thread
                self.report(failure)
            else:
                if self.failures == failures:
                    self._logged = ""
            failures = self.failures


WAITING = 16
"""Writes under way at the same time, those among them whose body is being read."""

SHORT = 2**16
"""Bytes of the largest body of a short write: even the slowest client has sent it in 16 s."""

QUEUE_TIMEOUT = 20.0
"""Seconds that one waits for those before it: who writes waits ten for another process."""

REQUEST_TIMEOUT = 60.0
"""Seconds after which one is answered without its result; it goes on, and is whole or not at all.
"""


class Writes(Admission):
    """Runs writes one after the other, in a thread of its own. See `Admission`."""

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
        self._most = waiting
        self._most_long = max(1, waiting // 2)
        self._short_now = self._long_now = 0

    @contextmanager
    def place(self, size: int | None = 0) -> Iterator[None]:
        """Take one of the places for a request, from before its body is read; TooManyWrites.

        size  bytes of the body; None where they are not known, as of a stream
        Long bodies take half of the places at most, so that there are always some for short ones.
        """
        self.check()
        is_long = size is None or size > SHORT
        if is_long and self._long_now >= self._most_long:
            raise self._refusal("full", "as many long writes as it takes are under way")
        if self._short_now + self._long_now >= self._most:
            raise self._refusal("full", "as many writes as it takes are under way")
        self._long_now += is_long
        self._short_now += not is_long
        try:
            yield
        finally:
            self._long_now -= is_long
            self._short_now -= not is_long

    def check_request_timeout(self, begun: float) -> None:
        """Never: what is written is written whole."""

    def _busy(self, reason: str) -> ServiceBusy:
        return TooManyWrites(f"too many writes: {reason}; try again in a moment")

    def _late(self, seconds: float) -> RequestTimedOut:
        return RequestTimedOut(
            f"the write took more than {seconds:g} s and continues; sending it "
            "again is safe; send less at a time"
        )
