"""The time of day, which tests can set."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present time, with its time zone."""
    return datetime.now(UTC)
