"""Arrays that grow at their end without moving for those who look at them.

    Region.open(generation, name)   over `<name>.npy`, which is mapped, not read
    Region.of(array)                over a copy of an array
    region.append(rows)             O(rows); now and then the tail is copied
    region.view(n) -> array         the first n rows, contiguous and read-only

A region is a stretch of addresses twice as long as what it holds. The whole pages of the file lie
at its head, shared with all processes through the page cache; behind them is memory of this
process, which takes room only where something was written. Rows are written behind every view that
was given out, so that appending disturbs no reader. Where the stretch is full a new one is taken,
and the former goes with its last view.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import weakref
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.errors import StoreError
from klsa_search.storage.arrays import read_header, unreadable
from klsa_search.storage.files import is_exhausted

_LEAST: Final = 2**20
"""Bytes of an empty region: of addresses, not of memory."""

_MAP_FIXED: Final = 0x10
_MAP_NORESERVE: Final = 0x40 if sys.platform == "darwin" else 0x4000
"""As in <sys/mman.h>; Python 3.11 names neither."""


class AppendableArray:
    """Rows of one type and shape, of which there are ever more.

    One thread appends at a time; any number look. In a forked child it goes its own way. The file
    of the base may be unlinked meanwhile; one descriptor is held for it.
    """

    def __init__(
        self, kind: np.dtype[Any], shape: tuple[int, ...], file: tuple[int, int] | None = None
    ) -> None:
        """Take room; `file` is the descriptor of the first rows and where they begin in it."""
        self._kind, self._row = kind, shape[1:]
        self._size = kind.itemsize * math.prod(self._row)
        self._file = file
        self._base = self._count = shape[0]
        self._rows = self._reserved(shape[0])

    @classmethod
    def open(cls, generation: Path, name: str) -> AppendableArray:
        """Begin with the rows of `<name>.npy`; IndexDamaged if it is no array file.

        StoreError where the process may have no more addresses, OSError where it has too many files
        open.
        """
        path = generation / f"{name}.npy"
        try:
            with path.open("rb") as stream:
                kind, shape, begin = read_header(stream)
                bytes_ = kind.itemsize * math.prod(shape)
                if not shape or os.fstat(stream.fileno()).st_size < begin + bytes_:
                    raise ValueError("it is shorter than its header says")
                descriptor = os.dup(stream.fileno())
        except (OSError, ValueError, TypeError, OverflowError) as error:
            if is_exhausted(error):
                raise
            raise unreadable(path, error) from error
        try:
            region = cls(kind, shape, (descriptor, begin))
        except BaseException:
            os.close(descriptor)
            raise
        weakref.finalize(region, os.close, descriptor).atexit = False
        return region

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> AppendableArray:
        """Begin with a copy of an array of at least one dimension."""
        region = cls(array.dtype, (0, *array.shape[1:]))
        region.append(array)
        return region

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._count

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Append rows: (n, ...) as those before, of a type that can be cast to theirs safely.

        ValueError or TypeError for others, StoreError where there are no more addresses: then
        nothing was appended.
        """
        if rows.shape[1:] != self._row:
            raise ValueError(f"rows of shape {rows.shape[1:]}, not {self._row}")
        end = self._count + len(rows)
        if end > len(self._rows):
            self._rows = self._grown(end, self._count)
        np.copyto(self._rows[self._count : end], rows, casting="safe")
        self._count = end

    def view(self, n: int) -> npt.NDArray[Any]:
        """Return the first n rows, at most as many as there are. They stay as they are."""
        if not 0 <= n <= self._count:
            raise ValueError(f"{n} rows of {self._count}")
        rows = self._rows[:n]
        rows.flags.writeable = False
        return rows

    def _grown(self, rows: int, kept: int) -> npt.NDArray[Any]:
        grown = self._reserved(rows)
        grown[self._base : kept] = self._rows[self._base : kept]
        return grown

    def _reserved(self, rows: int) -> npt.NDArray[Any]:
        """Take room for twice so many rows, the file's at their head."""
        if sys.platform == "win32":
            raise StoreError(
                "adding documents needs Linux or macOS; rebuild the index with all documents"
            )
        descriptor, begin = self._file or (-1, 0)
        capacity = max(2 * rows, _LEAST // max(self._size, 1))
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        length = begin + max(capacity * self._size, 1)
        try:
            room = mmap.mmap(-1, length, flags=flags)
        except OSError as error:
            raise StoreError(
                f"cannot reserve {length:,} bytes of address space "
                f"({error.strerror}); raise the limit (ulimit -v)"
            ) from error
        if self._file:
            end = begin + self._base * self._size
            shared = end // mmap.PAGESIZE * mmap.PAGESIZE
            if shared:
                _map_over(room, descriptor, shared)
            # The last page of a file can be no one's to write in, so its rows are copied.
            room[shared:end] = os.pread(descriptor, end - shared, shared)
        return np.ndarray((capacity, *self._row), self._kind, room, begin)


def _map_over(room: mmap.mmap, descriptor: int, length: int) -> None:
    """Put the first bytes of a file in the place of the first of a mapping, read-only."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(room))
    flags = mmap.MAP_PRIVATE | _MAP_FIXED
    found = _libc().mmap(address, length, mmap.PROT_READ, flags, descriptor, 0)
    if found != address:
        number = ctypes.get_errno()
        raise OSError(number, f"an array that grows cannot be mapped: {os.strerror(number)}")


@cache
def _libc() -> ctypes.CDLL:
    """Return the C library, its mmap declared: offsets are as wide as a long."""
    libc = ctypes.CDLL(None, use_errno=True)
    number, word = ctypes.c_int, ctypes.c_size_t
    libc.mmap.argtypes = [ctypes.c_void_p, word, number, number, number, ctypes.c_long]
    libc.mmap.restype = ctypes.c_void_p
    return libc
