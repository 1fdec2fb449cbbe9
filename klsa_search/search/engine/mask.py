"""Masks: which documents may be answered."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.search.engine.scan import LANES

FEW: Final = 1000
"""Documents up to which all that a mask leaves are candidates, each looked at in full."""


class Mask:
    """Some of N documents; immutable, safe to share between threads.

    allowed  (N,) bool, whether each is one of them
    words    (⌈N / 64⌉,) uint64, a bit for each document
    size     how many they are
    """

    def __init__(self, allowed: npt.NDArray[np.bool_]) -> None:
        self.allowed = allowed
        bits = np.zeros(-(-len(allowed) // LANES) * LANES, np.bool_)
        bits[: len(allowed)] = allowed
        self.words = np.packbits(bits, bitorder="little").view(np.uint64)
        self.size = int(np.count_nonzero(allowed))
        self.address = self.words.ctypes.data
