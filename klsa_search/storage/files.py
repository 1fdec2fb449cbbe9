"""Small files, written durably and never over an existing one; locks; errors of the system."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from klsa_search.errors import IndexBusy, IndexDamaged, StoreError
from klsa_search.storage.names import NEW

DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a write without room, or without quota."""

PERMISSIONS: Final = "check its owner and permissions, and that its file system is writable"
_FORBID_WRITING: Final = {
    **dict.fromkeys(DISK_FULL, "free some disk space"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), PERMISSIONS),
}
_EXHAUSTED: Final = {
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close some of the files that are open on this machine",
    errno.ENOMEM: "give the process more memory",
}
_NEXT_STEPS: Final = _FORBID_WRITING | _EXHAUSTED


def explain(error: OSError, thing: object, otherwise: str) -> str:
    """Return an error of the system as one sentence: the thing, the fact and the next step.

    thing      named if the error names no file
    otherwise  next step for errors that depend on what was done
    """
    thing = thing if error.filename is None else error.filename
    fact = error.strerror or str(error) or type(error).__name__
    return f"{thing}: {fact}; {_NEXT_STEPS.get(error.errno or 0, otherwise)}"


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Raise StoreError instead of an OSError that forbids writing: a full disk, no permission.

    path  named if the error names no file
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FORBID_WRITING:
            raise
        raise StoreError(
            f"cannot use `{error.filename or path}`: {error.strerror}; "
            f"{_FORBID_WRITING[error.errno]}"
        ) from error


def write_fresh(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Create a file and sync it; FileExistsError if it exists, also as a link.

    If it cannot be written completely, for example on a full disk, it is removed.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def replace_file(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Replace a file atomically and durably: readers see the old or the new content.

    The caller has the lock of its writers.
    """
    fresh = path.with_name(f".{path.name.removeprefix('.')}.{NEW}")
    fresh.unlink(missing_ok=True)  # left by a process that died
    write_fresh(fresh, content, mode)
    fresh.replace(path)
    sync(path.parent)


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield a new path beside a file; what the block writes there replaces the file atomically.

    Nothing of it stays if the block fails. Several processes may write the same file. It is durable
    if the block syncs it.
    """
    fresh = path.with_name(f".{path.stem}-{uuid4().hex}.{NEW}")
    try:
        yield fresh
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def read_regular(path: Path, limit: int = 2**26) -> bytes:
    """Return the first bytes of a regular file; OSError for anything else, which could block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            reason = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(reason, os.strerror(reason), str(path))
        pieces = []
        while limit > 0 and (piece := os.read(descriptor, min(limit, 2**20))):
            pieces.append(piece)
            limit -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def is_exhausted(error: Exception) -> bool:
    """Return whether an error is a lack of file descriptors or memory, not a fault of a file."""
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def unreadable(path: Path, fact: object, step: str) -> IndexDamaged:
    """Return the error for a file that cannot be read.

    fact  the reason; it is raised itself if the process lacks descriptors or memory
    """
    if isinstance(fact, OSError) and is_exhausted(fact):
        raise fact
    reason = getattr(fact, "strerror", None) or str(fact).partition("\n")[0]
    return IndexDamaged(f"cannot read `{path}` ({reason}); {step}")


def sync(path: Path) -> None:
    """Sync a file, or the entries of a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def status_of(path: Path, *, follow_links: bool = True) -> os.stat_result | None:
    """Return what the system says about a file or folder; None if it is not there."""
    try:
        return path.stat(follow_symlinks=follow_links)
    except (FileNotFoundError, NotADirectoryError):
        return None


Stamp = tuple[int, ...]


def stamp_of(path: Path) -> Stamp | None:
    """Return a value that changes with a file; None if it is not there. Cost: 2 µs."""
    file = status_of(path)
    return None if file is None else (file.st_ino, file.st_size, file.st_mtime_ns)


def is_real(path: Path, kind: int) -> bool:
    """Return whether the path itself, not the target of a link, is of a kind: `stat.S_IFREG`..."""
    file = status_of(path, follow_links=False)
    return file is not None and stat.S_IFMT(file.st_mode) == kind


@contextmanager
def exclusive_lock(lock: Path, *, timeout: float = 0) -> Iterator[None]:
    """Take a lock; IndexBusy while another thread or process has it.

    timeout  seconds to wait for it
    All writes to an index happen under a lock, so an OSError that forbids writing becomes a
    StoreError here.
    """
    from filelock import FileLock, Timeout  # here, as it takes 19 ms and commands load this

    # Each call has its own lock object, so that threads of a process exclude each other too.
    file_lock = FileLock(lock, timeout=timeout, thread_local=False)
    try:
        file_lock.acquire()
    except Timeout:
        raise IndexBusy(
            f"index `{lock.parent}` is being changed by another process or thread; wait for it to "
            "finish, then try again"
        ) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            fact = "is a link or a folder, not a lock of this index; move it away, then try again"
        else:
            fact = f"cannot be opened to change the index ({error.strerror}); {PERMISSIONS}"
        raise StoreError(f"{lock} {fact}") from error
    try:
        with writable(lock.parent):
            yield
    finally:
        file_lock.release()
