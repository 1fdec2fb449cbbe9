"""Many queries over several threads, and the names of what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from klsa_search.search.index import Index

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


def ids_by_position(index: Index) -> npt.NDArray[Any]:
    """Name every position: (size,) of str, None where no document counts any more.

    `Index.ids` names the documents that count, without a gap; a batch looks up by position.
    """
    ids = np.full(index.max_doc, None, dtype=object)
    ids[index.arrays.counting()] = index.ids()
    return ids
