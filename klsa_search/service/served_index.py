"""Entries of `OpenIndexes`: open generations, how they are opened or why they cannot be, states."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from klsa_search.core.arguments import brief
from klsa_search.errors import KlsaError
from klsa_search.search.index import Index, open_index
from klsa_search.storage import files
from klsa_search.storage.checksums import ChecksumCheck
from klsa_search.storage.current import current_build
from klsa_search.storage.names import CURRENT, MANIFEST
from klsa_search.storage.partitions import documents_of


@dataclass(slots=True, eq=False)
class ServedIndex:
    """One open generation with its reference count; guarded by the lock of `OpenIndexes`."""

    index: Index
    mark: object
    checksums: ChecksumCheck
    users: int = 0
    retired: bool = False
    damage: str | None = None

    def close(self) -> None:
        """Close the index, and stop comparing its checksums."""
        self.checksums.stop()
        self.index.close()


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the index directory: an open generation, why it cannot be opened, or both.

    Both: the newest generation, with the mark `failed_mark`, cannot be opened, or the open one is
    damaged; the open one is served. The next attempt is at `retry_at`, in seconds of `monotonic`.
    version  of its notice of changes when it was read
    """

    opened: ServedIndex | None = None
    failure: str | None = None
    failed_mark: object = None
    retry_at: float = 0.0
    version: bytes = b""


@dataclass(frozen=True, slots=True)
class Status:
    """State of one index of the service.

    index      snapshot of the served index, or None; its arrays stay readable after a swap, but
               documents can be read only within `OpenIndexes.use`
    failure    why the newest generation is not served, or is damaged
    checksums  state of its checksum comparison: see `ChecksumCheck`
    damaged    whether the served generation is damaged
    """

    name: str
    index: Index | None
    failure: str | None
    checksums: str | None = None
    damaged: bool = False

    @classmethod
    def of(cls, name: str, entry: Entry) -> Status:
        """Return the state of an entry."""
        opened = entry.opened
        if opened is None:
            return cls(name, None, entry.failure)
        checksums = opened.checksums
        if checksums.failure is not None:
            return cls(name, None, checksums.failure, checksums.state, damaged=True)
        damage = opened.damage
        reason = entry.failure or damage
        index = opened.index.snapshot()
        return cls(name, index, reason, checksums.state, damaged=damage is not None)


FAULTS = (
    KlsaError,
    OSError,  # an unreadable file, no descriptor left, a failing disk
    sqlite3.Error,  # a log or a catalogue that is not a database
    ValueError,  # invalid text or JSON, a wrong shape; includes UnicodeDecodeError
    TypeError,  # JSON or an array of another type
    LookupError,  # an unknown number of a term or document
    ArithmeticError,  # a size of 0, or above all limits
    AttributeError,  # a missing part
    AssertionError,  # inconsistent parts
    RuntimeError,  # RecursionError of deeply nested JSON
    MemoryError,  # an impossible size
)
"""Exceptions that opening a damaged index may raise: all that wrong bytes can cause, and none that
ends a process or a thread.
"""

_REPAIR = "run `klsa-index repair` on it, which keeps all writes"


IndexOpener = Callable[[Path], Index]  # opens the current generation of the index at a path


def open_and_warm_up(path: Path, opener: IndexOpener = open_index) -> Index:
    """Open the current generation of an index and load what its first search needs."""
    with ExitStack() as undo:
        index = opener(path)
        undo.callback(index.close)
        index.warm_up()
        undo.pop_all()
    return index


def generation_mark(path: Path) -> tuple[object, ...]:
    """Return a value that changes when CURRENT, or the directory it names, is replaced.

    Replacing by the same content changes it; writes to the index do not. That of an index in
    partitions has the values of all partitions.
    """
    generation = current_build(path)
    files = (path / CURRENT).stat(), (generation / MANIFEST).stat()
    parts = [part.parent for part in documents_of(generation) if part != generation]
    marks = ((file.st_ino, file.st_mtime_ns) for file in files)
    return generation.name, *marks, *map(generation_mark, parts)


def reason_not_opened(path: Path, fault: BaseException) -> str:
    """Return one sentence: why the index at a path cannot be opened, and what to do."""
    if isinstance(fault, KlsaError):
        return fault.message
    if isinstance(fault, OSError):
        return files.explain(fault, path, _REPAIR)
    reason = f"{type(fault).__name__}: {brief(str(fault))}"
    return f"cannot open `{path}` ({reason}); {_REPAIR}"
