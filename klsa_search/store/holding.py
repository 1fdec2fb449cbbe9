"""An exclusive lock that names its holder.

    held(lock, purpose)   a context; IndexBusy names who holds it: process, host, since when, why

The lock ends with the process that holds it. Facts about the holder are written next to it, for
messages only.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from klsa_search.errors import IndexBusy, StoreError
from klsa_search.store.files import read_regular, writable

_NEXT: Final = "check who owns the folder, what its mode allows and whether it can be written to"


@contextmanager
def held(lock: Path, purpose: str, *, patience: float = 0) -> Iterator[None]:
    """Hold the lock for a purpose ("building"); IndexBusy while another does.

    patience  seconds to wait for the other
    What is written to an index is written while a lock is held, so an OSError that forbids it
    becomes a StoreError here.
    """
    # Each call has a lock of its own: threads of a process wait for each other too.
    own = FileLock(lock, timeout=patience, thread_local=False)
    try:
        own.acquire()
    except Timeout:
        raise IndexBusy(
            f"index `{lock.parent}` is being changed by {_holder(lock)}; wait for "
            "it to finish, then try again"
        ) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            fact = "is a link or a folder, not a lock of this index; move it away, then try again"
        else:
            fact = f"cannot be opened to change the index ({error.strerror}): {_NEXT}"
        raise StoreError(f"{lock} {fact}") from error
    try:
        _record(lock, purpose)
        with writable(lock.parent):
            yield
    finally:
        try:
            with suppress(OSError):
                _facts_file(lock).unlink()
        finally:
            own.release()


def _facts_file(lock: Path) -> Path:
    return lock.with_name(f"{lock.name}-holder")


def _record(lock: Path, purpose: str) -> None:
    """Write down who holds the lock, unless that fails: it serves messages only."""
    facts = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "purpose": purpose,
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with suppress(OSError):
        descriptor = os.open(_facts_file(lock), flags, 0o666)
        try:
            os.write(descriptor, json.dumps(facts).encode())
        finally:
            os.close(descriptor)


def _holder(lock: Path) -> str:
    """Name the holder of a lock that is held."""
    try:
        facts = json.loads(read_regular(_facts_file(lock), 4096))
        purpose, since = facts["purpose"], facts["since"]
        return f"process {facts['pid']:d} on {facts['host']} ({purpose}, since {since})"
    except (OSError, ValueError, KeyError, TypeError):  # not written yet, or not by us
        return "another process"
