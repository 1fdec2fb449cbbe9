"""Waiting for an event, for as long as a busy machine may take."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which an event is taken never to come; no test is quicker or slower for it."""


def wait_until(happened: Callable[[], bool]) -> None:
    """Return once it has; AssertionError if it never does."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "what was waited for has not come"
        time.sleep(0.02)
