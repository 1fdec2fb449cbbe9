"""Work that a service repeats in the background, whatever becomes of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from klsa_search.errors import KlsaError

_log = logging.getLogger(__name__)


class Watch:
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
