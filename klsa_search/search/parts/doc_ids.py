"""Doc ids of an index; in partitions the number of the partition, then the doc id in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds

_BITS: Final = 24
"""Bits of a doc id in a partition."""


def global_doc_ids(partition: int, doc_ids: DocIds) -> npt.NDArray[np.int64]:
    """Return doc ids of the index for those of a partition.

    >>> global_doc_ids(1, np.array([5], dtype=np.int32)).tolist()
    [16777221]
    """
    return doc_ids.astype(np.int64) + (partition << _BITS)


def local_doc_id(doc_id: int) -> tuple[int, int]:
    """Return the partition, and the doc id in it.

    >>> local_doc_id(16777221)
    (1, 5)
    """
    return doc_id >> _BITS, doc_id & (1 << _BITS) - 1


def ids_of(live: DocIds, ids: Sequence[str]) -> Callable[[DocIds], npt.NDArray[Any]]:
    """Return a function that returns the IDs of live documents by doc id: (n,) of str.

    live, ids  of an index, in the same order: it is for many rankings
    """
    names, order = np.array(ids, dtype=object), np.argsort(live)
    return lambda doc_ids: names[order[np.searchsorted(live, doc_ids, sorter=order)]]
