"""The processors of the machine, and work that is handed to them in order."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import cache
from typing import Final, TypeVar

from klsa_search.cgroups import processor_limit

T = TypeVar("T")
R = TypeVar("R")

_quota: Final = cache(processor_limit)  # reading it takes a tenth of the time of a write


def processors() -> int:
    """Return how many processors this process may use, by its affinity and its CPU quota.

    A quota is rounded up, and read once a process.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    limit = _quota()
    return count if limit is None else min(count, math.ceil(limit))


def end_with_starter(last: Callable[[], object] | None = None) -> None:
    """End this process as soon as its standard input does: a pipe from the one that started it.

    That closes when its other end does, however that process ends.
    last  what is done then, such as removing what the other can no longer remove
    """

    def watch() -> None:
        os.read(0, 1)  # not by sys.stdin, whose lock could not be taken at the end
        try:
            if last is not None:
                last()
        finally:  # whatever it raises
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def in_order(submit: Callable[[T], Future[R]], items: Iterable[T], *, ahead: int) -> Iterator[R]:
    """Yield the result of each item in the order of the items, `ahead` of them under way.

    Unlike `Executor.map` it takes an item only when there is room for it, so that memory stays
    bounded however many there are. What a task raises is raised here, at its place.
    """
    under_way: deque[Future[R]] = deque()
    for item in items:
        under_way.append(submit(item))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
