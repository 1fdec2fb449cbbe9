"""Why writes of the service fail, for its log, its metrics and /health.

The index directory is written when an index is created or deleted or an alias is changed, which may
be weeks apart. A full disk, which needs no other write to end, is therefore looked at again; every
other failure lasts until a write succeeds.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Final
from uuid import uuid4

from klsa_search.service.metrics import Metrics
from klsa_search.service.middleware.auth import Access
from klsa_search.storage.files import DISK_FULL, write_fresh
from klsa_search.storage.names import NEW

_ROOM: Final = 2**20  # bytes that an index has at most when it is created

_log = logging.getLogger(__name__)


class WriteFailures:
    """Why the last write to each index failed; the name is blank for the index directory.

    home  the index directory
    """

    def __init__(self, metrics: Metrics, home: Path) -> None:
        self._metrics, self._home = metrics, home
        self._reasons: dict[str, str] = {}

    def failed(self, index: str, failure: Exception) -> None:
        """Record that a write failed by a fault of the service or its machine."""
        self._metrics.observe_write(index, failed=True, disk_full=_is_disk_full(failure))
        reason = f"{_writes_to(index)} fail: {failure}"
        if self._reasons.get(index) != reason:
            self._reasons[index] = reason
            _log.warning("%s", reason)

    def succeeded(self, index: str) -> None:
        """Record that a write succeeded."""
        self._metrics.observe_write(index, failed=False)
        if self._reasons.pop(index, None) is not None:
            _log.warning("%s work again", _writes_to(index))

    def failing(self) -> set[str]:
        """Return the indexes whose last write failed, in any process of the service.

        If the disk was full, the directory counts as failing only until there is room for a new
        index. Cost: in that case, writing and syncing a file of 1 MiB.
        """
        failing = self._metrics.failing_writes()
        if failing.get("") and _has_room(self._home):
            del failing[""]
            self.succeeded("")
        return set(failing)

    def forget(self, index: str) -> None:
        """Forget the failures of an index that was deleted."""
        self._metrics.observe_write(index, failed=False)
        self._reasons.pop(index, None)

    def reasons(self, failing: Collection[str], access: Access) -> list[str]:
        """Return why writes fail, to the indexes that a request may see or their directory.

        failing  as `failing` returns them

        Another process of the service may have had the failure; its log has the reason.
        """
        return [
            self._reasons.get(index, f"{_writes_to(index)} fail; see the log of the service")
            for index in sorted(failing)
            if not index or access.sees(index)
        ]


def _writes_to(index: str) -> str:
    return f"writes to index `{index}`" if index else "writes to the index directory"


def _is_disk_full(failure: BaseException | None) -> bool:
    """Return whether a failure, or what it was raised from, is a lack of room or of quota."""
    while failure is not None:
        if isinstance(failure, OSError) and failure.errno in DISK_FULL:
            return True
        # The code is missing in errors that Python raises itself.
        if getattr(failure, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return True
        failure = failure.__cause__
    return False


def _has_room(home: Path) -> bool:
    """Return whether an index could be written: some file systems tell only at a sync or close."""
    probe = home / f".{uuid4().hex}.{NEW}"
    try:
        write_fresh(probe, bytes(_ROOM))
        probe.unlink()
    except OSError:
        return False
    return True
