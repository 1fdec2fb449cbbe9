"""Wait for an event, with a generous limit."""

import asyncio
import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which an event is taken never to come; no test is quicker or slower for it."""


def wait_until(happened: Callable[[], bool]) -> None:
    """Return once it has; AssertionError if it never does. Ask often at first."""
    end, pause = time.monotonic() + PATIENCE, 0.001
    while not happened():
        assert time.monotonic() < end, "what was waited for has not come"
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


async def until(happened: Callable[[], bool]) -> None:
    """Return once it has, as `wait_until` does, and let the event loop work meanwhile."""
    async with asyncio.timeout(PATIENCE):
        while not happened():
            await asyncio.sleep(0.001)
