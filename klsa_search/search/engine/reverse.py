"""Entries of rows that came later: what a document is to those before it.

A row is written once. A document that comes later has a row of its own; what it is to an earlier
one, the same number as K is symmetric, is kept here, so that the earlier brings it up too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.expansion.packing import LEVELS

REVERSED: Final = 16
"""Entries of a row, at most."""


class Reverse(NamedTuple):
    """Entries beside the rows of a cut D.

    reversed_of  (positions,) int32, which of the rows below is a document's, from 1; 0 for none;
                 empty where no document has one
    reversed     (R, 16) uint32, entries as of `CutExpansion.rows`, strongest first, then 0
    steps        (R,) float32, of each row
    """

    reversed_of: npt.NDArray[np.int32]
    reversed: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> Reverse:
        """No entries."""
        return cls(
            np.zeros(0, np.int32), np.zeros((0, REVERSED), np.uint32), np.zeros(0, np.float32)
        )

    @classmethod
    def of(
        cls,
        positions: int,
        documents: npt.NDArray[np.integer],
        later: npt.NDArray[np.integer],
        values: npt.NDArray[np.floating],
    ) -> Reverse:
        """Keep the strongest for each document, ties by position. Cost O(n log n).

        documents, later, values  (n,) of each entry: whose it is, which it is, K of the two, > 0
        """
        if not len(documents):
            return cls.none()
        order = np.lexsort((later, -values, documents))
        documents, later, values = documents[order], later[order], values[order]
        rows, firsts, counts = np.unique(documents, return_index=True, return_counts=True)
        of_entry = np.repeat(np.arange(len(rows)), counts)
        places = np.arange(len(documents)) - firsts[of_entry]
        steps = (values[firsts] / LEVELS).astype(np.float32)
        kept = places < REVERSED
        levels = np.maximum(np.rint(values[kept] / steps[of_entry[kept]]), 1).astype(np.uint32)
        table = np.zeros((len(rows), REVERSED), np.uint32)
        entries = (later[kept].astype(np.uint32) << np.uint32(8)) | levels
        table[of_entry[kept], places[kept]] = entries
        reversed_of = np.zeros(positions, np.int32)
        reversed_of[rows] = np.arange(1, len(rows) + 1)
        return cls(reversed_of, table, steps)
