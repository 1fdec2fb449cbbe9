"""Many queries over several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final, TypeVar

T = TypeVar("T")

CHUNK: Final = 64
"""Queries a thread takes at a time: enough to keep it busy, few enough that all end together."""


def in_parallel(
    work: Callable[[Sequence[str]], list[T]], queries: Iterable[str], threads: int
) -> list[T]:
    """Give `work` the queries a chunk at a time, and return its answers in the queries' order.

    The first failure of a chunk is raised when all before it are done.
    """
    asked = list(queries)
    chunks = [asked[begin : begin + CHUNK] for begin in range(0, len(asked), CHUNK)]
    if threads == 1 or len(chunks) <= 1:
        return list(chain.from_iterable(map(work, chunks)))
    with ThreadPoolExecutor(min(threads, len(chunks))) as pool:
        return list(chain.from_iterable(pool.map(work, chunks)))
