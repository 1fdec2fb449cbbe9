"""Writes that fail: counted, logged once for each reason, and reported by /health."""

from __future__ import annotations

import logging
from collections.abc import Collection

from klsa_search.service.metrics import Metrics
from klsa_search.service.middleware.auth import Access

_log = logging.getLogger(__name__)


class WriteFailures:
    """Why the last write to each index failed; the name is blank for the index directory."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._reasons: dict[str, str] = {}

    def failed(self, index: str, failure: Exception) -> None:
        """Record that a write failed by a fault of the service or its machine."""
        self._metrics.observe_write(index, failed=True)
        reason = f"{_writes_to(index)} fail: {failure}"
        if self._reasons.get(index) != reason:
            self._reasons[index] = reason
            _log.warning("%s", reason)

    def succeeded(self, index: str) -> None:
        """Record that a write succeeded."""
        self._metrics.observe_write(index, failed=False)
        if self._reasons.pop(index, None) is not None:
            _log.warning("%s work again", _writes_to(index))

    def forget(self, index: str) -> None:
        """Forget the failures of an index that was deleted."""
        self._metrics.observe_write(index, failed=False)
        self._reasons.pop(index, None)

    def reasons(self, failing: Collection[str], access: Access) -> list[str]:
        """Return why writes fail, to the indexes that a request may see or their directory.

        failing  indexes whose last write failed: see `Metrics.failing_writes`

        Another process of the service may have had the failure; its log has the reason.
        """
        return [
            self._reasons.get(index, f"{_writes_to(index)} fail; see the log of the service")
            for index in sorted(failing)
            if not index or access.sees(index)
        ]


def _writes_to(index: str) -> str:
    return f"writes to index `{index}`" if index else "writes to the index directory"
