"""Work in the background: periodic tasks, and backups or following in a child process.

All processes of a service share the index directory, and one of them runs the child.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

from filelock import FileLock, Timeout

from klsa_search.errors import KlsaError, StoreError
from klsa_search.storage.repository import ReplicationState, Work, read_state

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


class BackgroundWork(ABC):
    """Work of a periodic task, `watch`, which runs while it is used as a context manager."""

    watch: PeriodicTask

    def __enter__(self) -> Self:
        """Start the thread."""
        self.watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Stop the work."""


_INTERVAL: Final = 0.5
"""Seconds before the child is started again, and between two attempts to take the lock."""


class Replication(BackgroundWork):
    """Runs a command that backs up or follows at intervals, and starts it again if it ends.

    work     name of the work in the log and the metrics
    command  command that works until its stdin closes, and writes a line to stdout after each
             attempt: empty, or why it failed
    Use as a context manager, or `start` and `close` it.
    """

    def __init__(self, work: Work, home: Path, command: Sequence[str]) -> None:
        self.work: Work = work
        self._home = home
        self._command = command
        self._running = FileLock(home / f".{work}.running", timeout=0, thread_local=False)
        self._lock = threading.Lock()  # of the following
        self._closed = False
        self._process: subprocess.Popen[str] | None = None
        self.watch = PeriodicTask(work, self.wait_for_attempt, _INTERVAL)

    def state(self) -> ReplicationState | None:
        """Return the last backup that was written or followed; None before the first attempt."""
        return read_state(self._home, self.work)

    def close(self) -> None:
        """Stop, and end the child: an interrupted backup leaves no trace but unused pieces."""
        self.watch.stop()
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def wait_for_attempt(self) -> None:
        """Wait for the end of the next attempt; StoreError if it failed, or the child ended."""
        with self._lock:
            if self._closed:
                return
            try:
                self._running.acquire()
            except Timeout:
                return  # another process of the service does it
            process = self._process = self._process or subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        if line.strip():
            raise StoreError(line.strip())
        if not line:
            with process, self._lock:
                self._process = None
                process.kill()
                if self._closed:
                    return
            raise StoreError(f"its process ended with status {process.returncode}")
