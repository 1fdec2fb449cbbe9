"""Exclusive file locks, released when the process ends."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from klsa_search.errors import IndexBusy, StoreError
from klsa_search.storage.files import PERMISSIONS, writable


@contextmanager
def exclusive_lock(lock: Path, *, timeout: float = 0) -> Iterator[None]:
    """Take a lock; IndexBusy while another thread or process has it.

    timeout  seconds to wait for it
    All writes to an index happen under a lock, so an OSError that forbids writing becomes a
    StoreError here.
    """
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
