"""Arrays that grow at their end, in memory while they are small and in a file when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt


class Spools:
    """Makes spools that share a folder for what does not fit in memory.

    folder  of the files; the caller removes it. None keeps everything in memory
    room    bytes up to which each spool stays in memory
    """

    def __init__(self, folder: Path | None = None, room: int = 0) -> None:
        self._folder = folder
        self._room = room
        self._made = 0

    def spool(self, dtype: npt.DTypeLike) -> Spool:
        """Make an empty spool of this type."""
        self._made += 1
        path = None if self._folder is None else self._folder / f"spool-{self._made}"
        return Spool(np.dtype(dtype), path, self._room)


class Spool:
    """A one-dimensional array to append to and to read pieces of; closed, it lets go of its file.

    A file is read piece by piece and not mapped, so that what was read does not stay in memory.
    """

    def __init__(self, dtype: np.dtype[Any], path: Path | None, room: int) -> None:
        self._dtype = dtype
        self._path = path
        self._room = room
        self._held = bytearray()
        self._file: IO[bytes] | None = None
        self._bytes = 0

    def __len__(self) -> int:
        """Elements appended so far."""
        return self._bytes // self._dtype.itemsize

    def append(self, values: npt.NDArray[Any]) -> None:
        """Append values, converted to the spool's type. OSError where the disk is full."""
        piece = np.ascontiguousarray(values, dtype=self._dtype).data.cast("B")
        self._bytes += len(piece)
        if self._file is None and self._path is not None and self._bytes > self._room:
            self._file = self._path.open("w+b")
            self._file.write(self._held)
            self._held = bytearray()
        if self._file is None:
            self._held += piece
        else:
            self._file.write(piece)

    def read(self, first: int = 0, last: int | None = None) -> npt.NDArray[Any]:
        """Return elements [first, last); while in memory a view, to be let go before `append`."""
        last = len(self) if last is None else last
        if self._file is None:
            return np.frombuffer(
                self._held, self._dtype, last - first, self._dtype.itemsize * first
            )
        self._file.flush()
        self._file.seek(self._dtype.itemsize * first)
        values = np.fromfile(self._file, self._dtype, last - first)
        self._file.seek(self._bytes)
        return values

    def close(self) -> None:
        """Forget the values and remove the file."""
        self._held = bytearray()
        self._bytes = 0
        if self._file is not None and self._path is not None:
            self._file.close()
            self._path.unlink()
            self._file = None
