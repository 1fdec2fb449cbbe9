"""Refits: an index that has come too far from its build is built anew, in a process of its own.

That goes by the index as it is served, whoever wrote to it; or it is asked for, with other settings
where that is wished. The new generation is taken up by the catalog as any other.
"""

from __future__ import annotations

import logging
import re
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType
from typing import IO, Any

from klsa_search.errors import IndexBusy
from klsa_search.service.catalog import Catalog

_INTERVAL = 1.0
"""Seconds between two looks."""

_REST = 9
"""An index is left alone for so many times as long as its last refit took."""

_AFTER_FAILURE = 600.0
"""Seconds at least that it is left alone after a refit that failed."""

_LEAVING = 2.0
"""Seconds that a refit is given to clear away what it has made when the service ends."""

_PROGRESS = re.compile(r"([a-z ]{1,40}) ([0-9]{1,18}) ([0-9]{1,18}|-)")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refit:
    """One refit.

    generation  that is built anew
    begun       when, or when it was asked for, UTC, ISO 8601
    phase       of the build that it is in, or was in last; None before the first
    done, total amount of that phase, `total` where it is known
    seconds     it took; None while it waits or runs
    error       why it failed, in a sentence
    again       time of `monotonic` from which on the index may be refitted again
    """

    generation: str
    begun: str
    phase: str | None = None
    done: int = 0
    total: int | None = None
    seconds: float | None = None
    error: str | None = None
    again: float = 0.0


class Refits:
    """Refits the indexes of a catalog, one at a time, those that have come furthest first.

    command  that refits the index whose name is put behind it, and settings before that; it ends
             with its standard input, says on stdout how far it has come, and in its last line of
             stderr why it failed
    share    of changed documents from which on an index is refitted by itself, above 0; None: none
    As a context manager it looks by a thread of its own, once a second.
    """

    def __init__(self, catalog: Catalog, command: Sequence[str], *, share: float | None) -> None:
        self._catalog = catalog
        self._command = command
        self._share = share
        self._lock = threading.Lock()  # of what follows; held for moments
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._last: dict[str, Refit] = {}
        self._wanted: dict[str, dict[str, Any]] = {}  # settings by index, as they were asked for
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

    def begin(self, name: str, generation: str, settings: Mapping[str, Any]) -> Refit:
        """Have an index refitted as soon as no other is, with settings that are to be others.

        One that waits or runs is not begun again: IndexBusy where other settings are asked for.
        """
        with self._lock:
            last = self._last.get(name)
            if last is not None and last.seconds is None:
                if settings and self._wanted.get(name) != settings:
                    raise IndexBusy(
                        f"{name} is being built anew already: wait for it to end, then try again"
                    )
                return last
            self._wanted[name] = dict(settings)
            self._last[name] = refit = Refit(generation, _now())
            return refit

    def look(self) -> bool:
        """Refit what was asked for, or has come furthest, if too far; say whether one was begun."""
        with self._lock:
            wanted = next(iter(self._wanted), None)
            generation = self._last[wanted].generation if wanted is not None else ""
            settings = self._wanted.pop(wanted) if wanted is not None else {}
        if wanted is not None:
            self._refit(wanted, generation, settings)
            return True
        return self._share is not None and self._look_for_changed(self._share)

    def _look_for_changed(self, share: float) -> bool:
        due = []
        for status in self._catalog.statuses():
            last = self._last.get(status.name)
            if status.index is None or (last is not None and monotonic() < last.again):
                continue
            index = status.index
            if last is not None and last.error is None and last.generation == index.generation:
                continue  # what it made is not taken up yet
            changed = index.since.changed_share(len(index))
            if changed >= share:
                due.append((changed, status.name, index.generation))
        if due:
            _, name, generation = max(due)
            self._refit(name, generation, {})
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

    def _refit(self, name: str, generation: str, settings: Mapping[str, Any]) -> None:
        begun = monotonic()
        with self._lock:
            self._last[name] = Refit(generation, _now())
        try:
            error = self._run(name, settings)
        except OSError as failure:
            error = f"a process for it cannot be started: {failure}"
        took = monotonic() - begun
        again = monotonic() + max(_REST * took, 0.0 if error is None else _AFTER_FAILURE)
        with self._lock:
            self._ended[name, "done" if error is None else "failed"] += 1
            last = self._last[name]
            self._last[name] = replace(last, seconds=round(took, 1), error=error, again=again)
        if error is not None and not self._closed.is_set():
            _log.warning("%s could not be refitted: %s", name, error)

    def _run(self, name: str, settings: Mapping[str, Any]) -> str | None:
        """Run the command to its end, noting how far it is; say why it failed, if it did."""
        with tempfile.TemporaryFile("w+", errors="replace") as told:
            code = self._run_telling(name, settings, told)
            told.seek(0)
            return code if isinstance(code, str) else _reason(code, told.read().splitlines())

    def _run_telling(self, name: str, settings: Mapping[str, Any], told: IO[str]) -> int | str:
        with self._lock:
            if self._closed.is_set():
                return "the service is being stopped"
            self._process = process = subprocess.Popen(
                [*self._command, *_options(settings), name],
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.PIPE,
                stderr=told,
                text=True,
                errors="replace",
            )
        with process:
            for line in process.stdout or ():
                self._note(name, line)
            return process.wait()

    def _note(self, name: str, line: str) -> None:
        """Note a line of phase, amount done and amount in all; what is none is passed over."""
        found = _PROGRESS.fullmatch(line.strip())
        if found:
            phase, done, total = found.groups()
            with self._lock:
                self._last[name] = replace(
                    self._last[name],
                    phase=phase,
                    done=int(done),
                    total=None if total == "-" else int(total),
                )


def _options(settings: Mapping[str, Any]) -> Iterator[str]:
    """Settings as options of a command."""
    for name, value in settings.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
        else:
            yield f"--{flag}={value}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _reason(code: int, told: Sequence[str]) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return (
            f"the refit was ended by signal {-code}: see that the machine has memory to spare, or "
            "refit it by hand (klsa-index refit)"
        )
    return told[-1].removeprefix("error: ") if told else f"the refit ended with status {code}"
