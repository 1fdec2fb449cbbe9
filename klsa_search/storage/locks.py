"""An exclusive lock, which ends with the process that holds it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from klsa_search.errors import IndexBusy, StoreError
from klsa_search.storage.files import writable

_NEXT: Final = "check who owns the folder, what its mode allows and whether it can be written to"


@contextmanager
def exclusive_lock(lock: Path, *, patience: float = 0) -> Iterator[None]:
    """Hold a lock; IndexBusy while another thread or process does.

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
            f"index `{lock.parent}` is being changed by another process or thread; wait for it to "
            "finish, then try again"
        ) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            fact = "is a link or a folder, not a lock of this index; move it away, then try again"
        else:
            fact = f"cannot be opened to change the index ({error.strerror}): {_NEXT}"
        raise StoreError(f"{lock} {fact}") from error
    try:
        with writable(lock.parent):
            yield
    finally:
        own.release()
