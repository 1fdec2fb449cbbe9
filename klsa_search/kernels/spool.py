"""Appendable arrays, in memory while small and in a file otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

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
        self._count = 0

    def spool(self, dtype: npt.DTypeLike) -> Spool:
        """Return a new empty spool of this type."""
        self._count += 1
        path = None if self._folder is None else self._folder / f"spool-{self._count}"
        return Spool(np.dtype(dtype), path, self._memory_limit)


class Spool:
    """A one-dimensional array that is appended to and read in pieces.

    A file is read, not mapped, so that its pages do not count as memory of the process.
    """

    def __init__(self, dtype: np.dtype[Any], path: Path | None, memory_limit: int) -> None:
        self._dtype = dtype
        self._path = path
        self._memory_limit = memory_limit
        self._buffer = bytearray()
        self._file: IO[bytes] | None = None
        self._bytes = 0

    def __len__(self) -> int:
        """Return the number of elements."""
        return self._bytes // self._dtype.itemsize

    def append(self, values: npt.NDArray[Any]) -> None:
        """Append values, converted to the spool's type. OSError if the disk is full."""
        piece = np.ascontiguousarray(values, dtype=self._dtype).data.cast("B")
        self._bytes += len(piece)
        if self._file is None and self._path is not None and self._bytes > self._memory_limit:
            self._file = self._path.open("w+b")
            self._file.write(self._buffer)
            self._buffer = bytearray()
        if self._file is None:
            self._buffer += piece
        else:
            self._file.write(piece)

    def read(self, first: int = 0, last: int | None = None) -> npt.NDArray[Any]:
        """Return elements [first, last); in memory as a view, invalid after `append`."""
        last = len(self) if last is None else last
        if self._file is None:
            return np.frombuffer(
                self._buffer, self._dtype, last - first, self._dtype.itemsize * first
            )
        self._file.flush()
        self._file.seek(self._dtype.itemsize * first)
        values = np.fromfile(self._file, self._dtype, last - first)
        self._file.seek(self._bytes)
        return values

    def close(self) -> None:
        """Discard the values and remove the file."""
        self._buffer = bytearray()
        self._bytes = 0
        if self._file is not None and self._path is not None:
            self._file.close()
            self._path.unlink()
            self._file = None
