"""Refits in a child process, and their status for all worker processes.

A process that dies leaves nothing that is held, and nothing half written: the lock goes with it,
and the text is replaced in one step.

The drift is that of the served index, whichever process wrote to it; or a client requests a
refit, possibly with other settings. The catalog loads the new generation like any other. Of
several processes at one address one refits at a time, and all know its progress.
"""

from __future__ import annotations

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

Setting = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Refit:
    """One refit.

    generation  generation that is rebuilt
    begun       when, or when it was asked for, UTC, ISO 8601
    settings    that are to be others
    waits       whether it was asked for and has not begun
    phase       of the build that it is in, or was in last; None before the first
    done, total amount of that phase, `total` where it is known
    seconds     it took; None while it waits or runs
    error       why it failed, in a sentence
    again       time of `monotonic` from which on the index may be refitted again by itself
    """

    generation: str
    begun: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    waits: bool = False
    phase: str | None = None
    done: int = 0
    total: int | None = None
    seconds: float | None = None
    error: str | None = None
    again: float = 0.0


@dataclass(slots=True)
class RefitStates:
    """The last refit of each index by name, those that wait in the order they are to begin; and
    how many ended, by index and outcome.
    """

    last: dict[str, Refit] = field(default_factory=dict)
    ended: dict[str, Counter[str]] = field(default_factory=dict)


_PATIENCE: Final = 2.0
"""Seconds that one who changes it waits for another, who needs less than a millisecond."""

_OFTEN: Final = 0.002
"""Seconds between two looks meanwhile."""

_TEXT: Final = TypeAdapter(RefitStates)


class RefitLedger:
    """Safe to share between threads and, by a folder, between processes.

    folder  of the service, on a disk of this machine; None where one process knows it alone
    Cost: 20 µs to read, ten times as much to change.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / "refits.json"
        self._text = _TEXT.dump_json(RefitStates())
        self._changing = Lock()

    def read(self) -> RefitStates:
        """What is known now."""
        if self._path is None:
            return _TEXT.validate_json(self._text)
        try:
            return _TEXT.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return RefitStates()
        except OSError as error:
            raise StoreError(
                f"the state of refits cannot be read ({error}); restart the service"
            ) from error

    @contextmanager
    def change(self) -> Iterator[RefitStates]:
        """Give what is known, to be changed; it is written if the block ends well, else StoreError.

        Others wait for the block to end, so that it should take moments.
        """
        try:
            with self._changing, self._alone("changing", _PATIENCE):
                known = self.read()
                yield known
                self._write(_TEXT.dump_json(known))
        except OSError as error:  # Timeout is one
            raise StoreError(
                f"the state of refits cannot be written ({error}); free space for temporary files"
            ) from error

    def _write(self, text: bytes) -> None:
        if self._path is None:
            self._text = text
            return
        new = self._path.with_suffix(".new")
        new.write_bytes(text)
        os.replace(new, self._path)

    @contextmanager
    def refitting(self) -> Iterator[bool]:
        """Hold the right to refit, of which there is one; say whether it could be had."""
        with ExitStack() as holding:
            try:
                holding.enter_context(self._alone("refitting", 0))
            except Timeout:
                yield False
                return
            yield True

    def _alone(self, purpose: str, patience: float) -> AbstractContextManager[object]:
        """Keep other processes from the same; Timeout where one is at it for longer than that."""
        if self._path is None:
            return nullcontext()
        lock = self._path.with_suffix(f".{purpose}")
        return FileLock(lock, timeout=patience, thread_local=False, poll_interval=_OFTEN)


_INTERVAL = 1.0
"""Seconds between two looks."""

_REST = 9
"""An index is left alone for so many times as long as its last refit took."""

_AFTER_FAILURE = 600.0
"""Seconds at least that it is left alone after a refit that failed."""

_LEAVING = 2.0
"""Seconds that a refit is given to clear away what it has made when the service ends."""

_PROGRESS = re.compile(r"([a-z ]{1,40}) ([0-9]{1,18}) ([0-9]{1,18}|-)")

_LOST: Final = (
    "the process of the refit ended; make sure that there is free memory, then request it again"
)

_log = logging.getLogger(__name__)


class Refits:
    """Refits the indexes of a catalog, one at a time, those that have come furthest first.

    command  that refits the index whose name is put behind it, and settings before that; it ends
             with its standard input, says on stdout how far it has come, and in its last line of
             stderr why it failed
    share    of changed documents from which on an index is refitted by itself, above 0; None: none
    ledger   what is known of them, shared with the other processes of the service
    As a context manager it looks by a thread of its own, once a second.
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
        self._lock = threading.Lock()  # of what follows; held for moments
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self.watch = PeriodicTask("refits", self.look, _INTERVAL)

    def __enter__(self) -> Refits:
        """Begin to look."""
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
        """Return how many ended by index and outcome, done or failed, since the start."""
        ended = sorted(self._ledger.read().ended.items())
        return {(name, how): count for name, of in ended for how, count in sorted(of.items())}

    def begin(self, name: str, generation: str, settings: Mapping[str, Setting]) -> Refit:
        """Have an index refitted as soon as no other is, with settings that are to be others.

        One that waits or runs is not begun again: IndexBusy where other settings are asked for.
        """
        with self._ledger.change() as known:
            last = known.last.get(name)
            if last is not None and last.seconds is None:
                if settings and last.settings != settings:
                    raise IndexBusy(
                        f"index `{name}` is being refitted already; wait for it to "
                        "finish, then try again"
                    )
                return last
            known.last.pop(name, None)  # the last to come is the last to begin
            known.last[name] = refit = Refit(generation, _now(), dict(settings), waits=True)
            return refit

    def look(self) -> bool:
        """Refit what was asked for, or has come furthest, if too far; say whether one was begun.

        Where another process of the service is at that, nothing.
        """
        with self._ledger.refitting() as may:
            if not may:
                return False
            known = self._ledger.read()
            if any(_runs(each) for each in known.last.values()):
                known = self._told_lost()
            for name, each in known.last.items():
                if each.waits:
                    self._refit(name, each.generation, each.settings)
                    return True
            return self._share is not None and self._look_for_changed(self._share, known)

    def _told_lost(self) -> RefitStates:
        """Tell what seems to run as failed: who refits alone knows that nothing does."""
        with self._ledger.change() as known:
            for name in [name for name, each in known.last.items() if _runs(each)]:
                self._log_end(known, name, _seconds_since(known.last[name].begun), _LOST)
        return known

    def _look_for_changed(self, share: float, known: RefitStates) -> bool:
        due = []
        for status in self._catalog.statuses():
            last = known.last.get(status.name)
            if status.index is None or (last is not None and monotonic() < last.again):
                continue
            index = status.index
            if last is not None and last.error is None and last.generation == index.generation:
                continue  # what it made is not taken up yet
            changed = index.drift.changed_share(len(index))
            if changed >= share:
                due.append((changed, status.name, index.generation))
        if due:
            _, name, generation = max(due)
            self._refit(name, generation, {})
        return bool(due)

    def close(self) -> None:
        """Begin none any more, and end that which runs; the index in use stays as it is."""
        self.watch.stop()
        with self._lock:
            self._closed.set()
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(_LEAVING)
            except subprocess.TimeoutExpired:
                process.kill()  # the next build clears away what it has made

    def _refit(self, name: str, generation: str, settings: Mapping[str, Setting]) -> None:
        begun = monotonic()
        with self._ledger.change() as known:
            asked = known.last.get(name)
            if asked is not None and asked.waits and asked.settings != settings:
                return  # it was asked for since: the next look has it
            known.last[name] = Refit(generation, _now(), settings)
        try:
            error = self._run(name, settings)
        except OSError as failure:
            error = f"a process for it cannot be started: {failure}"
        except BaseException as failure:
            error = f"internal error (`{type(failure).__name__}`); see the log of the service"
            self._end(name, begun, error)
            raise
        self._end(name, begun, error)

    def _end(self, name: str, begun: float, error: str | None) -> None:
        with self._ledger.change() as known:
            self._log_end(known, name, monotonic() - begun, error)

    def _log_end(self, known: RefitStates, name: str, took: float, error: str | None) -> None:
        """Note the end of a refit, and when the next may be; say it in the log if it failed."""
        again = monotonic() + max(_REST * took, 0.0 if error is None else _AFTER_FAILURE)
        known.last[name] = replace(
            known.last[name], seconds=round(took, 1), error=error, again=again
        )
        known.ended.setdefault(name, Counter())["done" if error is None else "failed"] += 1
        if error is not None and not self._closed.is_set():
            _log.warning("refit of %s failed: %s", name, error)

    def _run(self, name: str, settings: Mapping[str, Setting]) -> str | None:
        """Run the command to its end, noting how far it is; say why it failed, if it did."""
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
                [*self._command, *_options(settings), name],
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.PIPE,
                stderr=messages,
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
            with suppress(StoreError), self._ledger.change() as known:  # it goes on unnoted
                known.last[name] = replace(
                    known.last[name],
                    phase=phase,
                    done=int(done),
                    total=None if total == "-" else int(total),
                )


def _runs(refit: Refit) -> bool:
    return refit.seconds is None and not refit.waits


def _options(settings: Mapping[str, Setting]) -> Iterator[str]:
    """Settings as options of a command."""
    for name, value in settings.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
        else:
            yield f"--{flag}={value}"


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
