"""Open an index for the service, and explain why one cannot be opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from reprlib import Repr

from klsa_search.errors import KlsaError
from klsa_search.search.index import Index
from klsa_search.search.opening import open_index
from klsa_search.storage import files
from klsa_search.storage.current import current_build
from klsa_search.storage.names import CURRENT, MANIFEST
from klsa_search.storage.partitions import documents_of

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
_BRIEF = Repr()
_BRIEF.maxother = _BRIEF.maxstring = 200


IndexOpener = Callable[[Path], Index]
"""Opens the current generation of the index at a path."""


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
    reason = f"{type(fault).__name__}: {_BRIEF.repr(str(fault))}"
    return f"cannot open `{path}` ({reason}); {_REPAIR}"
