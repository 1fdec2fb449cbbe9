"""GrowableArray: an array in memory that grows at its end."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_INITIAL_CAPACITY: Final = 1024
"""Rows."""


class GrowableArray:
    """An array that grows at its end; appending n rows costs O(n) on average.

    dtype  type of the numbers
    width  columns; None for an array of one dimension
    """

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None) -> None:
        shape = _INITIAL_CAPACITY if width is None else (_INITIAL_CAPACITY, width)
        self._buffer = np.zeros(shape, dtype)
        self._size = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._size

    @property
    def rows(self) -> npt.NDArray[Any]:
        """Return a view of the rows, which later appends do not change."""
        return self._buffer[: self._size]

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Append rows."""
        size = self._size + len(rows)
        if size > len(self._buffer):
            capacity = max(size, 2 * len(self._buffer))
            larger = np.zeros((capacity, *self._buffer.shape[1:]), self._buffer.dtype)
            larger[: self._size] = self.rows
            self._buffer = larger
        self._buffer[self._size : size] = rows
        self._size = size
