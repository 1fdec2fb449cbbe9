"""An exclusive lock that names its holder.

    held(lock, purpose)   a context; IndexBusy names who holds it: process, host, since when, why

The lock ends with the process that holds it. Facts of the holder are written next to it, for
messages only: those of a process that has ended are never reported.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from klsa_search.errors import IndexBusy, StoreError
from klsa_search.store.files import read_regular, writable

_PATIENCE: Final = 10
"""Looks, a hundredth of a second apart, at facts that are being written."""
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
        _tell(lock, purpose)
        with writable(lock.parent):
            yield
    finally:
        try:
            with suppress(OSError):  # facts of an ended process are not reported
                _beside(lock).unlink()
        finally:
            own.release()


def _beside(lock: Path) -> Path:
    return lock.with_name(f"{lock.name}-holder")


def _tell(lock: Path, purpose: str) -> None:
    """Write down who holds the lock; a full disk is no reason not to go on."""
    facts = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "purpose": purpose,
        "start": _start(os.getpid()),
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with suppress(OSError):
        descriptor = os.open(_beside(lock), flags, 0o666)
        try:
            os.write(descriptor, json.dumps(facts).encode())
        finally:
            os.close(descriptor)


def _holder(lock: Path) -> str:
    """Say who holds a lock that is held."""
    for _ in range(_PATIENCE):
        facts = _facts(lock)
        if facts:
            return (
                f"process {facts['pid']} on {facts['host']} ({facts['purpose']}, since "
                f"{facts['since']})"
            )
        time.sleep(0.01)
    return "another process"


def _facts(lock: Path) -> dict[str, Any] | None:
    """Read them; None where there are none, or they are of a process that is gone."""
    try:
        facts = json.loads(read_regular(_beside(lock), 4096))
        pid, host, start = int(facts["pid"]), str(facts["host"]), facts["start"]
        holder = {"pid": pid, "host": host, "since": facts["since"], "purpose": facts["purpose"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return holder if host != socket.gethostname() or _lives(pid, start) else None


def _lives(pid: int, start: str | None) -> bool:
    """Say whether it is the process that began then, not another by its number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return _start(pid) == start


def _start(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None where the system does not tell."""
    try:
        said = read_regular(Path(f"/proc/{pid}/stat"), 4096).decode("utf-8", "replace")
    except OSError:
        return None
    # State and start are behind the name, which is in brackets and may hold any character.
    fields = said.rpartition(")")[2].split()
    return fields[19] if fields[0] not in "ZX" else None
