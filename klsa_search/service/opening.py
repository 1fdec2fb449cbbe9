"""Open an index for the service: every failure is reported, and none affects other indexes."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from reprlib import Repr

from numba import NumbaError

from klsa_search.errors import KlsaError
from klsa_search.search.index import Index
from klsa_search.search.opening import open_index
from klsa_search.storage.current import current_generation
from klsa_search.storage.names import CURRENT, MANIFEST

FAULTS = (
    KlsaError,  # what the rooms below say of an index themselves
    OSError,  # a file that cannot be read, no descriptor left, a disk that fails
    sqlite3.Error,  # a store of documents that is none
    ValueError,  # bytes that are no text or JSON, a shape that does not fit: UnicodeDecodeError too
    TypeError,  # JSON of another kind, an array of another type
    LookupError,  # a number of a term or document that is not there
    ArithmeticError,  # a size of 0, or one above all limits
    AttributeError,  # a part that is missing
    AssertionError,  # parts that do not fit each other
    RuntimeError,  # RecursionError of JSON nested too deep; what numba raises where it is lost
    MemoryError,  # an impossible size
    NumbaError,  # an array of a type that nothing was written for
)
"""What opening a damaged index may raise. Its bytes may be any, so it may fail anywhere below: what
is listed is every kind of failure that bytes can cause, and not what ends a process or a thread.
"""

_STEPS = {
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENOMEM: "give the process more memory, or serve fewer indexes",
    errno.ENFILE: "close some of the files that are open on this machine",
    errno.EACCES: "check its owner and its mode",
    errno.EPERM: "check its owner and its mode",
}
_REPAIR = "run `klsa-index repair` on it, which keeps all writes"
_BRIEF = Repr()
_BRIEF.maxother = _BRIEF.maxstring = 200


Opening = Callable[[Path], Index]
"""What opens the generation in use of the index at a path."""


def open_warm(path: Path, opened: Opening = open_index) -> Index:
    """Open the generation in use of an index, ready to answer at once after the first time."""
    with ExitStack() as undo:
        index = opened(path)
        undo.callback(index.close)
        index.warm_up()
        undo.pop_all()
    return index


def mark_of(path: Path) -> tuple[object, ...]:
    """Return what changes whenever CURRENT is replaced, even by one of the same content.

    Also where the folder that it names is put in the place of another; not where it is written to.
    """
    generation = current_generation(path)
    files = (path / CURRENT).stat(), (generation / MANIFEST).stat()
    return generation.name, *((file.st_ino, file.st_mtime_ns) for file in files)


def explain(path: Path, fault: BaseException) -> str:
    """Say in one sentence why the index at a path cannot be opened, and what to do."""
    if isinstance(fault, KlsaError):
        return fault.message
    if isinstance(fault, OSError):
        thing = path if fault.filename is None else fault.filename
        return f"{thing}: {fault.strerror or fault}: {_STEPS.get(fault.errno or 0, _REPAIR)}"
    reason = f"{type(fault).__name__}: {_BRIEF.repr(str(fault))}"
    return f"cannot open `{path}` ({reason}); {_REPAIR}"
