"""Sorting by metadata fields instead of by score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.errors import QueryError
from klsa_search.store.fields.columns import Field, Fields


class SortKey(NamedTuple):
    """One field to sort by."""

    field: Field
    descending: bool


def sort_keys(sort: Iterable[str], fields: Fields) -> list[SortKey]:
    """Read `field:asc` and `field:desc`, or `field` for ascending; QueryError."""
    keys = []
    for wish in sort:
        name, colon, way = wish.rpartition(":")
        if way not in ("asc", "desc") or not colon:
            if name in fields and wish not in fields:
                raise QueryError(
                    f"sort: {wish!r} has no direction; use {name}:asc or {name}:desc",
                    field="sort",
                )
            name, way = wish, "asc"
        keys.append(SortKey(fields.asked_for(name, "sort"), way == "desc"))
    return keys


def ranks_by(keys: Sequence[SortKey], positions: Positions) -> npt.NDArray[np.int64]:
    """Rank some documents by the keys, the first before the others: (n,), equal where all are.

    Of several values the least counts, or the largest where it is descending; documents without
    one come last in both. Cost: O(n log n).
    """
    ranks = np.zeros(len(positions), np.int64)
    for field, descending in keys:
        values, present = _values(field, positions, descending)
        order = np.unique(values[present], return_inverse=True)[1].astype(np.int64)
        own = np.full(len(positions), len(order), np.int64)
        own[present] = -order if descending else order
        ranks = np.unique(ranks * (2 * len(order) + 2) + own, return_inverse=True)[1]
    return np.asarray(ranks, np.int64)


def _values(
    field: Field, positions: Positions, descending: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    present = field.present()[positions]
    if field.starts is None:
        return field.values[positions], present
    # Ascending in each document.
    places = field.starts[positions + 1] - 1 if descending else field.starts[positions]
    places[~present] = 0
    values = field.values[places] if len(field.values) else np.zeros(len(positions))
    return values, present
