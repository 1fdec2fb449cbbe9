"""Doc ids of an index; in partitions the number of the partition, then the doc id in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, DocumentMask
from klsa_search.search.ranking.parameters import checked_mask

_BITS: Final = 24
"""Bits of a doc id in a partition."""


def global_doc_ids(partition: int, doc_ids: DocIds) -> npt.NDArray[np.int64]:
    """Return doc ids of the index for those of a partition.

    >>> global_doc_ids(1, np.array([5], dtype=np.int32)).tolist()
    [16777221]
    """
    return doc_ids.astype(np.int64) + (partition << _BITS)


def local_doc_ids(doc_ids: DocIds) -> tuple[DocIds, DocIds]:
    """Return the partition of each doc id, and the doc id in it: (n,) each.

    >>> local_doc_ids(np.array([16777221]))
    (array([1]), array([5]))
    """
    return doc_ids >> _BITS, doc_ids & (1 << _BITS) - 1


def masks_of(mask: object, sizes: Sequence[int]) -> list[DocumentMask]:
    """Return the mask of each partition for one of an index: see `checked_mask`; QueryError.

    sizes  numbers of doc ids of the partitions, in whose order masks of all doc ids are
    """
    every: object = mask
    if isinstance(mask, np.ndarray) and mask.ndim == 1 and np.issubdtype(mask.dtype, np.integer):
        partitions, local = local_doc_ids(mask)
        exists = (mask >= 0) & (partitions < len(sizes))
        exists[exists] = local[exists] < np.array(sizes)[partitions[exists]]
        every = positions_of(mask, sizes) if exists.all() else np.array([-1])
    allowed = checked_mask(every, sum(sizes))
    assert allowed is not None
    return np.split(allowed.allowed, np.cumsum(sizes)[:-1])


def positions_of(doc_ids: DocIds, sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the positions of doc ids in arrays of all doc ids, partition by partition: (n,).

    sizes  numbers of doc ids of the partitions
    """
    starts = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    partitions, local = local_doc_ids(doc_ids)
    positions: npt.NDArray[np.int64] = starts[partitions] + local
    return positions


def ids_of(live: DocIds, ids: Sequence[str]) -> Callable[[DocIds], npt.NDArray[Any]]:
    """Return a function that returns the IDs of live documents by doc id: (n,) of str.

    live, ids  of an index, in the same order: it is for many rankings
    """
    names, order = np.array(ids, dtype=object), np.argsort(live)
    return lambda doc_ids: names[order[np.searchsorted(live, doc_ids, sorter=order)]]
