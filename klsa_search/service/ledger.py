"""What is known of refits, by all processes of a service: one text, changed by one at a time.

A process that dies leaves nothing that is held, and nothing half written: the lock goes with it,
and the text is replaced in one step.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from klsa_search.errors import StoreError

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
class Known:
    """The last refit of each index by name, those that wait in the order they are to begin; and
    how many ended, by index and outcome.
    """

    last: dict[str, Refit] = field(default_factory=dict)
    ended: dict[str, Counter[str]] = field(default_factory=dict)


_PATIENCE: Final = 2.0
"""Seconds that one who changes it waits for another, who needs less than a millisecond."""

_OFTEN: Final = 0.002
"""Seconds between two looks meanwhile."""

_TEXT: Final = TypeAdapter(Known)


class Ledger:
    """Safe to share between threads and, by a folder, between processes.

    folder  of the service, on a disk of this machine; None where one process knows it alone
    Cost: 20 µs to read, ten times as much to change.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / "refits.json"
        self._text = _TEXT.dump_json(Known())
        self._changing = Lock()

    def read(self) -> Known:
        """What is known now."""
        if self._path is None:
            return _TEXT.validate_json(self._text)
        try:
            return _TEXT.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return Known()
        except OSError as error:
            raise StoreError(
                f"the state of refits cannot be read ({error}); restart the service"
            ) from error

    @contextmanager
    def change(self) -> Iterator[Known]:
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
