"""Arrays in memory that are appended to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_LEAST = 1024  # rows there is room for at first


class Growing:
    """An array that grows at its end; appending n rows costs O(n) on average.

    kind   of the numbers
    width  of a row; None for an array of one dimension
    """

    def __init__(self, kind: npt.DTypeLike, width: int | None = None) -> None:
        self._room = np.zeros(_LEAST if width is None else (_LEAST, width), kind)
        self._size = 0

    def __len__(self) -> int:
        """Rows that are held."""
        return self._size

    @property
    def held(self) -> npt.NDArray[Any]:
        """The rows; a view, which stays as it is while others are appended."""
        return self._room[: self._size]

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Append rows."""
        size = self._size + len(rows)
        if size > len(self._room):
            larger = np.zeros(
                (max(size, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype
            )
            larger[: self._size] = self.held
            self._room = larger
        self._room[self._size : size] = rows
        self._size = size
