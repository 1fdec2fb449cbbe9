"""Appendable arrays, in memory while small and in a file otherwise."""

from __future__ import annotations

from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt


def spool_limit(memory: int) -> int:
    """Return the bytes above which one spool of a build with so much memory is in a file."""
    return memory // 32


class Spools:
    """Creates spools with a common folder for their files.

    folder        removed by the caller; None keeps all spools in memory
    memory_limit  size in bytes above which a spool is moved to a file
    """

    def __init__(self, folder: Path | None = None, memory_limit: int = 0) -> None:
        self._folder = folder
        self._memory_limit = memory_limit

    def spool(self, dtype: npt.DTypeLike) -> Spool:
        """Return a new empty spool of this type."""
        folder = None if self._folder is None else str(self._folder)
        # 0 is no limit for the standard library.
        limit = 0 if folder is None else max(self._memory_limit, 1)
        return Spool(np.dtype(dtype), SpooledTemporaryFile(limit, dir=folder))


class Spool:
    """A one-dimensional array that is appended to and read in pieces.

    A file is read, not mapped, so that its pages do not count as memory of the process.
    """

    def __init__(self, dtype: np.dtype[Any], file: SpooledTemporaryFile[bytes]) -> None:
        self._dtype, self._file, self._size = dtype, file, 0

    def __len__(self) -> int:
        """Return the number of elements."""
        return self._size

    def append(self, values: npt.NDArray[Any]) -> None:
        """Append values, converted to the spool's type. OSError if the disk is full."""
        self._file.seek(self._dtype.itemsize * self._size)
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).data.cast("B"))
        self._size += len(values)

    def read(self, first: int = 0, last: int | None = None) -> npt.NDArray[Any]:
        """Return a copy of elements [first, last)."""
        values = np.empty((len(self) if last is None else last) - first, self._dtype)
        self._file.seek(self._dtype.itemsize * first)
        self._file.readinto(values.data.cast("B"))
        return values

    def close(self) -> None:
        """Discard the values."""
        self._file.close()
        self._size = 0
