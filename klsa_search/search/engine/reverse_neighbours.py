"""Entries of rows that came later: what a document is to those before it.

A row is written once. A document that comes later has a row of its own; what it is to an earlier
one, the same number as K is symmetric, is kept here, so that the earlier brings it up too.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, not_compiled, wait_until_compiled
from klsa_search.core.selection import AppendableArray
from klsa_search.lowrank.sparse_expansion import LEVELS

REVERSED: Final = 16
"""Entries of a row, at most."""


class ReverseNeighbours(NamedTuple):
    """Entries beside the rows of a cut D.

    reversed_of  (positions,) int32, which of the rows below is a document's, from 1; 0 for none;
                 empty where no document has one
    reversed     (R, 16) uint32, entries as of `SparseExpansion.rows`, strongest first, then 0
    steps        (R,) float32, of each row
    """

    reversed_of: npt.NDArray[np.int32]
    reversed: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> ReverseNeighbours:
        """No entries."""
        return cls(
            np.zeros(0, np.int32), np.zeros((0, REVERSED), np.uint32), np.zeros(0, np.float32)
        )


class ReverseNeighboursBuilder:
    """Entries beside rows, of which there are ever more; what it gives stays as it is."""

    @staticmethod
    def wait() -> None:
        """Wait for code that a child process compiles: see `compiling.wait_for`."""
        wait_until_compiled(_insert)

    @staticmethod
    def ready() -> bool:
        """Whether nobody would wait; if somebody, who else compiles begins with it now."""
        return not not_compiled(_insert)

    def __init__(self) -> None:
        self._of = AppendableArray(np.int32)
        self._later = AppendableArray(np.int32, REVERSED)
        self._values = AppendableArray(np.float32, REVERSED)
        self._entries = AppendableArray(np.uint32, REVERSED)
        self._steps = AppendableArray(np.float32)

    def append(
        self, positions: int, pairs: npt.NDArray[np.int32], values: npt.NDArray[np.float32]
    ) -> None:
        """Take further entries; of each document the strongest are kept, ties by their order.

        positions  that there are now
        pairs      (R, 2) whose entry it is, and which it is
        values     (R,) K of the two, above 0
        Cost O(R).
        """
        self._of.extend(np.zeros(positions - len(self._of), np.int32))
        of = self._of.held
        touched = np.unique(pairs[:, 0])
        new = touched[of[touched] == 0]
        rows = len(self._later)
        of[new] = np.arange(rows + 1, rows + 1 + len(new))
        self._later.extend(np.zeros((len(new), REVERSED), np.int32))
        self._values.extend(np.zeros((len(new), REVERSED), np.float32))
        self._entries.extend(np.zeros((len(new), REVERSED), np.uint32))
        self._steps.extend(np.zeros(len(new), np.float32))
        _insert(of, pairs, values, self._later.held, self._values.held)
        self._pack(of[touched] - 1)

    def reverse(self, positions: int) -> ReverseNeighbours:
        """Return the entries as they are now. Cost: 4 bytes a position, and 70 an owner."""
        if not len(self._later):
            return ReverseNeighbours.none()
        of = np.zeros(positions, np.int32)
        of[: len(self._of)] = self._of.held[:positions]
        return ReverseNeighbours(of, self._entries.held.copy(), self._steps.held.copy())

    def _pack(self, rows: npt.NDArray[np.int32]) -> None:
        """Pack rows that have changed."""
        values, later = self._values.held[rows], self._later.held[rows]
        steps = np.divide(values[:, 0], np.float32(LEVELS), dtype=np.float32)
        levels = np.rint(values / steps[:, None]).astype(np.uint32)
        levels[values > 0] = np.maximum(levels[values > 0], 1)
        self._entries.held[rows] = (later.astype(np.uint32) << np.uint32(8)) | levels
        self._steps.held[rows] = steps


def _nothing() -> tuple[npt.NDArray[Any], ...]:
    """What `_insert` takes, of no entry."""
    return (
        np.zeros(0, np.int32),
        np.zeros((0, 2), np.int32),
        np.zeros(0, np.float32),
        np.zeros((0, REVERSED), np.int32),
        np.zeros((0, REVERSED), np.float32),
    )


@compiled
def _insert(of: Any, pairs: Any, values: Any, later: Any, held: Any) -> None:
    """Put each entry behind those of its row that are as strong, and let the weakest go."""
    last = held.shape[1] - 1
    for i in range(len(values)):
        row, value = of[pairs[i, 0]] - 1, values[i]
        if not value > held[row, last]:
            continue
        place = last
        while place > 0 and held[row, place - 1] < value:
            held[row, place], later[row, place] = held[row, place - 1], later[row, place - 1]
            place -= 1
        held[row, place], later[row, place] = value, pairs[i, 1]
