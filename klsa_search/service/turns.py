"""Turns of the event loop: how long each may execute short searches itself, without a thread.

Handing a short search over to a thread and back takes as long as the search: the threads compete
for the GIL, and the data moves from the cache of one processor to that of another.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from resource import getrusage, struct_rusage
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

AT_ONCE = 0.05
"""Seconds that short searches may take in one turn. Further requests of the turn are refused, like
those that find the queue full.
"""

_LONG = 0.01
"""Seconds of processor or disk time above which a search was not short."""

_REST = 20
"""After one that was not short, the loop executes none for this many times as long, so that such
searches block it for at most 5% of the time.
"""

_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # the first is not everywhere


class Turns:
    """Does work in the turns of one event loop, as long as they have time for it.

    seconds  of each turn; 0 for no work at all
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun: float | None = None  # when the first work of this turn did; see `perf_counter`
        self._again = 0.0  # when there is time again after long work

    def has_time(self) -> bool:
        """Return whether this turn has time left, and no search was too long a moment ago."""
        return self._seconds > 0 and not self.is_over() and perf_counter() >= self._again

    def is_over(self) -> bool:
        """Return whether the time of this turn is used up."""
        return self._begun is not None and perf_counter() - self._begun >= self._seconds

    def spend(self, work: Callable[[], T]) -> tuple[T, float]:
        """Do work in the turn at hand; return its result and the seconds it took."""
        usage, begun = getrusage(_THREAD), perf_counter()
        if self._begun is None:
            self._begun = begun
            asyncio.get_running_loop().call_soon(self._next)
        try:
            done = work()
        finally:
            seconds = perf_counter() - begun
            if seconds > _LONG:
                seconds = _own(usage, seconds)
                if seconds > _LONG:
                    self._again = perf_counter() + _REST * seconds
        return done, seconds

    def _next(self) -> None:
        self._begun = None


def _own(before: struct_rusage, seconds: float) -> float:
    """Of the seconds since then, those that were not taken by others: all where pages were read."""
    after = getrusage(_THREAD)
    if after.ru_majflt > before.ru_majflt:  # as from a slow disk
        return seconds
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
