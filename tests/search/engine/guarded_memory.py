"""Guarded memory: detects reads and writes of native code outside an array."""

import numpy as np

FENCE = 4096
"""Bytes before an array, and behind it."""


class Fences:
    """Copies of arrays between fences.

    filling  what every byte of a fence holds; answers that depend on it were read from there
    """

    def __init__(self, filling):
        self.filling = filling
        self._memories = []

    def around(self, array):
        """Copy an array to a place between two fences."""
        memory = np.full(array.nbytes + 2 * FENCE, self.filling, np.uint8)
        self._memories.append(memory)
        inside = memory[FENCE : FENCE + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[...] = array
        return inside

    def intact(self):
        return all(
            (fence == self.filling).all()
            for memory in self._memories
            for fence in (memory[:FENCE], memory[-FENCE:])
        )
