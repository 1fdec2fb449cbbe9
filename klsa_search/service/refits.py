"""Refit indexes in a child process, automatically or on request.

An index is refitted when its drift reaches a threshold, or when a client requests it, possibly with
other settings. The catalog loads the new generation like any other.

The worker processes of a service share the state of refits in a file, and one of them refits at a
time. The file is replaced atomically, and a lock ends with its process.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import IO, Final

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from klsa_search.errors import IndexBusy, StoreError
from klsa_search.service.background import PeriodicTask
from klsa_search.service.catalog import Catalog

Setting = bool | int | float | str | list[str] | dict[str, str | float]


@dataclass(frozen=True, slots=True)
class Refit:
    """One refit.

    generation   generation that is rebuilt
    begun        time of its start or request: UTC, ISO 8601
    settings     settings to change
    queued       whether it was requested and has not started
    phase        current or last phase of the build; None before the first
    done, total  amount of that phase; `total` is None if unknown
    seconds      duration; None while it waits or runs
    error        why it failed, in one sentence
    retry_at     time, in seconds of `monotonic`, of the next automatic refit at the earliest
    """

    generation: str
    begun: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    queued: bool = False
    phase: str | None = None
    done: int = 0
    total: int | None = None
    seconds: float | None = None
    error: str | None = None
    retry_at: float = 0.0


@dataclass(slots=True)
class RefitStates:
    """The last refit of each index, queued ones in their order, and counts of finished refits by
    index and outcome.
    """

    last: dict[str, Refit] = field(default_factory=dict)
    ended: dict[str, Counter[str]] = field(default_factory=dict)


_LOCK_TIMEOUT: Final = 2.0
"""Seconds to wait for the lock of the file, which a change holds for less than a millisecond."""

_POLL_INTERVAL: Final = 0.002
"""Seconds between two attempts to take a lock."""

_STATES: Final = TypeAdapter(RefitStates)


class RefitLedger:
    """State of all refits; safe to share between threads and, with a folder, between processes.

    folder  folder of the service on a local disk; None for a single process
    Cost: 20 µs to read, 200 µs to change.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / "refits.json"
        self._json = _STATES.dump_json(RefitStates())
        self._change_lock = Lock()

    def read(self) -> RefitStates:
        """Return the current states."""
        if self._path is None:
            return _STATES.validate_json(self._json)
        try:
            return _STATES.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return RefitStates()
        except OSError as error:
            raise StoreError(
                f"the state of refits cannot be read ({error}); restart the service"
            ) from error

    @contextmanager
    def change(self) -> Iterator[RefitStates]:
        """Yield the states, and write them when the block ends without an exception.

        The block should be short, as it holds the lock. StoreError if they cannot be written.
        """
        try:
            with self._change_lock, self._file_lock("changing", _LOCK_TIMEOUT):
                states = self.read()
                yield states
                self._write(_STATES.dump_json(states))
        except OSError as error:  # Timeout is one
            raise StoreError(
                f"the state of refits cannot be written ({error}); free space for temporary files"
            ) from error

    def _write(self, json: bytes) -> None:
        if self._path is None:
            self._json = json
            return
        new = self._path.with_suffix(".new")
        new.write_bytes(json)
        os.replace(new, self._path)

    @contextmanager
    def refitting(self) -> Iterator[bool]:
        """Take the lock of refits if it is free, and yield whether it was."""
        with ExitStack() as locks:
            try:
                locks.enter_context(self._file_lock("refitting", 0))
            except Timeout:
                yield False
                return
            yield True

    def _file_lock(self, purpose: str, timeout: float) -> AbstractContextManager[object]:
        """Return a lock between processes; entering raises Timeout after so many seconds."""
        if self._path is None:
            return nullcontext()
        lock = self._path.with_suffix(f".{purpose}")
        return FileLock(lock, timeout=timeout, thread_local=False, poll_interval=_POLL_INTERVAL)


_INTERVAL = 1.0
"""Seconds between two checks for due refits."""

_PAUSE_FACTOR = 9
"""After a refit, the next automatic one waits this many times as long as it took."""

_FAILURE_PAUSE = 600.0
"""Minimum seconds between a failed refit and the next automatic one."""

_STOP_TIMEOUT = 2.0
"""Seconds that a refit has to remove its files when the service stops."""

_PROGRESS = re.compile(r"([a-z ]{1,40}) ([0-9]{1,18}) ([0-9]{1,18}|-)")

_INTERRUPTED: Final = (
    "the process of the refit ended; make sure that there is free memory, then request it again"
)

_log = logging.getLogger(__name__)


class Refits:
    """Refits the indexes of a catalog, one at a time: requested ones first, then by drift.

    command  command that refits an index: `--settings JSON` and its name are appended; it ends
             when its stdin closes, writes its progress to stdout, and the reason of a failure as
             the last line of stderr
    share    share of changed documents for an automatic refit, above 0; None: only on request
    ledger   states shared with the other processes of the service
    As a context manager it checks for due refits once a second, in its own thread.
    """

    def __init__(
        self,
        catalog: Catalog,
        command: Sequence[str],
        *,
        share: float | None,
        ledger: RefitLedger | None = None,
    ) -> None:
        self._catalog = catalog
        self._command = command
        self._share = share
        self._ledger = ledger or RefitLedger()
        self._lock = threading.Lock()  # of the following
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self.watch = PeriodicTask("refits", self.run_due, _INTERVAL)

    def __enter__(self) -> Refits:
        """Start the thread."""
        self.watch.start()
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
        return dict(sorted(self._ledger.read().last.items()))

    def ended(self) -> Mapping[tuple[str, str], int]:
        """Return counts of finished refits by index and outcome (done, failed) since the start."""
        ended = sorted(self._ledger.read().ended.items())
        return {
            (name, outcome): count
            for name, outcomes in ended
            for outcome, count in sorted(outcomes.items())
        }

    def request(self, name: str, generation: str, settings: Mapping[str, Setting]) -> Refit:
        """Queue a refit of an index with changed settings, and return it.

        If one is queued or running it is returned; IndexBusy if its settings differ.
        """
        with self._ledger.change() as states:
            last = states.last.get(name)
            if last is not None and last.seconds is None:
                if settings and last.settings != settings:
                    raise IndexBusy(
                        f"index `{name}` is being refitted already; wait for it to "
                        "finish, then try again"
                    )
                return last
            states.last.pop(name, None)  # moves it to the end of the queue
            states.last[name] = refit = Refit(generation, _now(), dict(settings), queued=True)
            return refit

    def run_due(self) -> bool:
        """Run the next requested or due refit, if any; return whether one ran.

        Does nothing while another process of the service refits.
        """
        with self._ledger.refitting() as has_lock:
            if not has_lock:
                return False
            states = self._ledger.read()
            if any(_runs(each) for each in states.last.values()):
                states = self._fail_interrupted()
            for name, each in states.last.items():
                if each.queued:
                    self._refit(name, each.generation, each.settings)
                    return True
            return self._share is not None and self._refit_most_changed(self._share, states)

    def _fail_interrupted(self) -> RefitStates:
        """Mark running refits as failed: this process has the lock, so none of them runs."""
        with self._ledger.change() as states:
            for name in [name for name, each in states.last.items() if _runs(each)]:
                self._log_end(states, name, _seconds_since(states.last[name].begun), _INTERRUPTED)
        return states

    def _refit_most_changed(self, share: float, states: RefitStates) -> bool:
        due = []
        for status in self._catalog.statuses():
            last = states.last.get(status.name)
            if status.index is None or (last is not None and monotonic() < last.retry_at):
                continue
            index = status.index
            if last is not None and last.error is None and last.generation == index.generation:
                continue  # the new generation is not loaded yet
            changed = index.drift.changed_share(len(index))
            if changed >= share:
                due.append((changed, status.name, index.generation))
        if due:
            _, name, generation = max(due)
            self._refit(name, generation, {})
        return bool(due)

    def close(self) -> None:
        """Stop, and end a running refit, which leaves its index unchanged."""
        self.watch.stop()
        with self._lock:
            self._closed.set()
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()  # the next build removes its files

    def _refit(self, name: str, generation: str, settings: Mapping[str, Setting]) -> None:
        begin = monotonic()
        with self._ledger.change() as states:
            queued = states.last.get(name)
            if queued is not None and queued.queued and queued.settings != settings:
                return  # requested meanwhile: `run_due` runs it next
            states.last[name] = Refit(generation, _now(), settings)
        try:
            error = self._run(name, settings)
        except OSError as failure:
            error = f"a process for it cannot be started: {failure}"
        except BaseException as failure:
            error = f"internal error (`{type(failure).__name__}`); see the log of the service"
            self._end(name, begin, error)
            raise
        self._end(name, begin, error)

    def _end(self, name: str, begin: float, error: str | None) -> None:
        with self._ledger.change() as states:
            self._log_end(states, name, monotonic() - begin, error)

    def _log_end(self, states: RefitStates, name: str, seconds: float, error: str | None) -> None:
        """Record the end of a refit and the time of the next, and log a failure."""
        pause = max(_PAUSE_FACTOR * seconds, 0.0 if error is None else _FAILURE_PAUSE)
        states.last[name] = replace(
            states.last[name],
            seconds=round(seconds, 1),
            error=error,
            retry_at=monotonic() + pause,
        )
        states.ended.setdefault(name, Counter())["done" if error is None else "failed"] += 1
        if error is not None and not self._closed.is_set():
            _log.warning("refit of %s failed: %s", name, error)

    def _run(self, name: str, settings: Mapping[str, Setting]) -> str | None:
        """Run the command to its end and record its progress; return why it failed, or None."""
        with tempfile.TemporaryFile("w+", errors="replace") as messages:
            code = self._run_child(name, settings, messages)
            messages.seek(0)
            return code if isinstance(code, str) else _reason(code, messages.read().splitlines())

    def _run_child(
        self, name: str, settings: Mapping[str, Setting], messages: IO[str]
    ) -> int | str:
        with self._lock:
            if self._closed.is_set():
                return "the service is being stopped"
            self._process = process = subprocess.Popen(
                [*self._command, "--settings", json.dumps(dict(settings)), name],
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                errors="replace",
            )
        with process:
            for line in process.stdout or ():
                self._record_progress(name, line)
            return process.wait()

    def _record_progress(self, name: str, line: str) -> None:
        """Record a line of phase, done and total amount; other lines are ignored."""
        progress = _PROGRESS.fullmatch(line.strip())
        if progress:
            phase, done, total = progress.groups()
            with suppress(StoreError), self._ledger.change() as states:  # the refit continues
                states.last[name] = replace(
                    states.last[name],
                    phase=phase,
                    done=int(done),
                    total=None if total == "-" else int(total),
                )


def _runs(refit: Refit) -> bool:
    return refit.seconds is None and not refit.queued


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _seconds_since(begun: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(begun)).total_seconds()


def _reason(code: int, messages: Sequence[str]) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return (
            f"the refit was killed by signal {-code}; make sure that there is free "
            "memory, or refit it with klsa-index refit"
        )
    return (
        messages[-1].removeprefix("error: ") if messages else f"the refit ended with status {code}"
    )
