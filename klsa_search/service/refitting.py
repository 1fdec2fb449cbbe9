"""Refits: an index that has come too far from its build is built anew, in a process of its own.

That goes by the index as it is served, whoever wrote to it. The new generation is taken up by the
catalog as any other.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType

from klsa_search.service.catalog import Catalog

_INTERVAL = 1.0
"""Seconds between two looks."""

_REST = 9
"""An index is left alone for so many times as long as its last refit took."""

_AFTER_FAILURE = 600.0
"""Seconds at least that it is left alone after a refit that failed."""

_LEAVING = 2.0
"""Seconds that a refit is given to clear away what it has made when the service ends."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refit:
    """One refit.

    generation  that is built anew
    begun       when, UTC, ISO 8601
    seconds     it took; None while it runs
    error       why it failed, in a sentence
    again       time of `monotonic` from which on the index may be refitted again
    """

    generation: str
    begun: str
    seconds: float | None = None
    error: str | None = None
    again: float = 0.0


class Refits:
    """Refits the indexes of a catalog, one at a time, those that have come furthest first.

    command  that refits the index whose name is put behind it; it ends with its standard input, and
             its last line of stderr says why it failed
    share    of changed documents from which on an index is refitted, above 0
    As a context manager it looks by a thread of its own, once a second.
    """

    def __init__(self, catalog: Catalog, command: Sequence[str], *, share: float) -> None:
        self._catalog = catalog
        self._command = command
        self._share = share
        self._lock = threading.Lock()  # of what follows; held for moments
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._last: dict[str, Refit] = {}
        self._ended: Counter[tuple[str, str]] = Counter()
        self._thread = threading.Thread(target=self._watch, name="klsa-refits", daemon=True)

    def __enter__(self) -> Refits:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def last(self) -> Mapping[str, Refit]:
        """Return the last refit of each index that had one, by name."""
        with self._lock:
            return dict(sorted(self._last.items()))

    def ended(self) -> Mapping[tuple[str, str], int]:
        """Return how many ended by index and outcome, done or failed, since the start."""
        with self._lock:
            return dict(sorted(self._ended.items()))

    def look(self) -> bool:
        """Refit the index that has come furthest, if that is too far; say whether one was begun."""
        due = []
        for status in self._catalog.statuses():
            last = self._last.get(status.name)
            if status.index is None or (last is not None and monotonic() < last.again):
                continue
            index = status.index
            if last is not None and last.error is None and last.generation == index.generation:
                continue  # what it made is not taken up yet
            changed = index.since.changed_share(len(index))
            if changed >= self._share:
                due.append((changed, status.name, index.generation))
        if due:
            _, name, generation = max(due)
            self._refit(name, generation)
        return bool(due)

    def close(self) -> None:
        """Begin none any more, and end that which runs; the index in use stays as it is."""
        with self._lock:
            self._closed.set()
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(_LEAVING)
            except subprocess.TimeoutExpired:
                process.kill()  # the next build clears away what it has made

    def _watch(self) -> None:
        while not self._closed.wait(_INTERVAL):
            self.look()

    def _refit(self, name: str, generation: str) -> None:
        begun = monotonic()
        refit = Refit(generation, datetime.now(UTC).isoformat(timespec="seconds"))
        with self._lock:
            self._last[name] = refit
        try:
            error = self._run(name)
        except OSError as failure:
            error = f"a process for it cannot be started: {failure}"
        took = monotonic() - begun
        again = monotonic() + max(_REST * took, 0.0 if error is None else _AFTER_FAILURE)
        with self._lock:
            self._ended[name, "done" if error is None else "failed"] += 1
            self._last[name] = replace(refit, seconds=round(took, 1), error=error, again=again)
        if error is not None and not self._closed.is_set():
            _log.warning("%s could not be refitted: %s", name, error)

    def _run(self, name: str) -> str | None:
        """Run the command to its end; say why it failed, if it did."""
        with self._lock:
            if self._closed.is_set():
                return "the service is being stopped"
            self._process = process = subprocess.Popen(
                [*self._command, name],
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        with process:
            told = process.stderr.read().splitlines() if process.stderr else []
            code = process.wait()
        return _reason(code, told)


def _reason(code: int, told: Sequence[str]) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return (
            f"the refit was ended by signal {-code}: see that the machine has memory to spare, or "
            "refit it by hand (klsa-index refit)"
        )
    return told[-1].removeprefix("error: ") if told else f"the refit ended with status {code}"
