"""Reverse neighbours: entries of later documents in the rows of earlier ones.

Rows of D are written once. A later document has its own row; since K is symmetric, its entries
apply to the earlier documents too, and are stored here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.array_types import GrowableArray
from klsa_search.delta.folding import packed

MAX_REVERSE: Final = 16
"""Entries of a row, at most."""


class ReverseNeighbours(NamedTuple):
    """Entries in addition to the rows of D.

    row_of  (max_doc,) int32, row of each document, from 1; 0 for none; empty if no document has one
    rows    (R, 16) uint32, entries as in `SparseExpansion.rows`, strongest first, then 0
    steps   (R,) float32, of each row
    """

    row_of: npt.NDArray[np.int32]
    rows: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.float32]


class ReverseNeighboursBuilder:
    """Reverse neighbours of a growing number of documents; results of `build` do not change.

    A row that changes is appended again, so that the results share their rows.
    """

    def __init__(self) -> None:
        self._row_of = GrowableArray(np.int32)  # of neighbours and values, from 1
        self._latest = GrowableArray(np.int32)  # of entries and steps, from 1
        self._neighbours = GrowableArray(np.int32, MAX_REVERSE)
        self._values = GrowableArray(np.float32, MAX_REVERSE)
        self._entries = GrowableArray(np.uint32, MAX_REVERSE)
        self._steps = GrowableArray(np.float32)

    @property
    def bytes(self) -> int:
        """Return the bytes of all rows."""
        arrays = (self._row_of, self._latest, self._neighbours, self._values)
        return sum(array.rows.nbytes for array in (*arrays, self._entries, self._steps))

    def append(
        self, max_doc: int, pairs: npt.NDArray[np.int32], values: npt.NDArray[np.float32]
    ) -> None:
        """Add entries; the strongest of each document are kept, ties in the order given.

        max_doc  number of doc ids now
        pairs    (R, 2) the document that gets the entry, and its neighbour
        values   (R,) K of the two, above 0
        Cost O(R).
        """
        for numbers in (self._row_of, self._latest):
            numbers.extend(np.zeros(max_doc - len(numbers), np.int32))
        row_of = self._row_of.rows
        # The first np.unique of a process imports numpy.ma, a fifth of the time of its first write.
        touched = np.array(sorted({*pairs[:, 0].tolist()}), np.int64)
        new = touched[row_of[touched] == 0]
        before = len(self._neighbours)
        row_of[new] = np.arange(before + 1, before + 1 + len(new))
        self._neighbours.extend(np.zeros((len(new), MAX_REVERSE), np.int32))
        self._values.extend(np.zeros((len(new), MAX_REVERSE), np.float32))
        _native.insert_neighbours(
            row_of,
            np.ascontiguousarray(pairs, np.int32),
            np.ascontiguousarray(values, np.float32),
            self._neighbours.rows,
            self._values.rows,
        )
        first = len(self._steps) + 1
        self._latest.rows[touched] = np.arange(first, first + len(touched))
        rows = row_of[touched] - 1
        entries, steps = packed(self._values.rows[rows], self._neighbours.rows[rows])
        self._entries.extend(entries)
        self._steps.extend(steps)

    def build(self, max_doc: int) -> ReverseNeighbours:
        """Return the entries. Cost: 4 bytes per doc id."""
        row_of = np.zeros(max_doc if len(self._neighbours) else 0, np.int32)
        row_of[: len(self._latest)] = self._latest.rows[: len(row_of)]
        return ReverseNeighbours(row_of, self._entries.rows, self._steps.rows)
