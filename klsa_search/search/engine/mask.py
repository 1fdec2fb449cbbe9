"""Masks: which documents may be answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.search.engine.scan import LANES

FEW: Final = 1000
"""Documents of a mask up to which each is looked up, and those found are scored in full."""
PART: Final = 2**16
"""Documents of a mask that are found at once; a multiple of 8."""


class Mask:
    """Some of N documents; immutable, safe to share between threads.

    words    (⌈N / 64⌉,) uint64, a bit for each document; read-only
    size     how many they are
    Kept are bits alone, an eighth of an array of bools: so small that a query may have its own.

    >>> even, small = np.arange(100) % 2 == 0, np.arange(100) < 5
    >>> both = Mask(even) & Mask(small)
    >>> both.size, np.flatnonzero(both.allowed).tolist()
    (3, [0, 2, 4])
    """

    def __init__(self, allowed: npt.NDArray[np.bool_]) -> None:
        words = np.zeros(-(-len(allowed) // LANES), np.uint64)
        packed = np.packbits(allowed, bitorder="little")
        words.view(np.uint8)[: len(packed)] = packed
        self._keep(words, len(allowed))

    @classmethod
    def found(cls, find: Callable[[int, int], npt.NDArray[np.bool_]], documents: int) -> Mask:
        """Make one by parts: `find` tells which documents from one to before another are in it.

        No array of all documents is made: new memory of that size costs more than what is done
        to it, and a part stays in the second cache while it is asked for several things.
        """
        words = np.zeros(-(-documents // LANES), np.uint64)
        held = words.view(np.uint8)
        for first in range(0, documents, PART):
            packed = np.packbits(find(first, min(first + PART, documents)), bitorder="little")
            held[first // 8 : first // 8 + len(packed)] = packed
        mask = cls.__new__(cls)
        mask._keep(words, documents)
        return mask

    def _keep(self, words: npt.NDArray[np.uint64], documents: int) -> None:
        self.words, self._documents = words, documents
        self.size = int(np.bitwise_count(words).sum())
        words.flags.writeable = False

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Whether each document is one of them: (N,), made when it is asked for. Cost: O(N)."""
        bits = self.words.view(np.uint8)
        return np.unpackbits(bits, count=self._documents, bitorder="little").view(np.bool_)

    def __and__(self, other: Mask) -> Mask:
        """Documents of both, which are of as many."""
        both = Mask.__new__(Mask)
        both._keep(self.words & other.words, self._documents)
        return both
