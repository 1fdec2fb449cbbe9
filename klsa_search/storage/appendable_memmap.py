"""Memory-mapped arrays that are appended to without invalidating existing views.

    AppendableMemmap.open(generation, name)  over `<name>.npy`, which is mapped, not read
    array.append(rows)                       O(rows), amortised
    array.view(n)                            the first n rows, contiguous and read-only

An array reserves an address range of twice its size. The whole pages of the file are mapped at its
start and shared with other processes through the page cache; the rest is private memory, which is
allocated when written. Rows are written after the end of every view, so appending disturbs no
reader. If the range is full a new one is reserved, and the old one is freed with its last view.
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

_MIN_BYTES: Final = 2**20
"""Smallest range: of addresses, not of memory."""

_MAP_FIXED: Final = 0x10
_MAP_NORESERVE: Final = 0x40 if sys.platform == "darwin" else 0x4000
"""Constants of <sys/mman.h> that Python 3.11 does not export."""


class AppendableMemmap:
    """Rows of one type and shape, to which more can be appended.

    One thread appends at a time; any number read. In a forked child it is independent. The file may
    be unlinked meanwhile; one descriptor stays open for it.
    """

    def __init__(self, kind: np.dtype[Any], shape: tuple[int, ...], file: tuple[int, int]) -> None:
        """Reserve the range; `file` is the descriptor of the first rows and their offset."""
        self._kind, self._row = kind, shape[1:]
        self._size = kind.itemsize * math.prod(self._row)
        self._file = file
        self._base = self._count = shape[0]
        self._rows = self._reserved(shape[0])

    @classmethod
    def open(cls, generation: Path, name: str) -> AppendableMemmap:
        """Start with the rows of `<name>.npy`; IndexDamaged if it is not an array file.

        Raise StoreError if no addresses are left, OSError if the process has too many open files.
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
            array = cls(kind, shape, (descriptor, begin))
        except BaseException:
            os.close(descriptor)
            raise
        weakref.finalize(array, os.close, descriptor).atexit = False
        return array

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Append rows of the same shape (n, ...), of a type that can be cast safely.

        Raise ValueError or TypeError for others, StoreError if no addresses are left; then nothing
        was appended.
        """
        if rows.shape[1:] != self._row:
            raise ValueError(f"rows of shape {rows.shape[1:]}, not {self._row}")
        end = self._count + len(rows)
        if end > len(self._rows):
            self._rows = self._reallocated(end)
        np.copyto(self._rows[self._count : end], rows, casting="safe")
        self._count = end

    def view(self, n: int) -> npt.NDArray[Any]:
        """Return the first n rows, which later appends do not change."""
        if not 0 <= n <= self._count:
            raise ValueError(f"{n} rows of {self._count}")
        rows = self._rows[:n]
        rows.flags.writeable = False
        return rows

    def _reallocated(self, rows: int) -> npt.NDArray[Any]:
        reserved = self._reserved(rows)
        reserved[self._base : self._count] = self._rows[self._base : self._count]
        return reserved

    def _reserved(self, rows: int) -> npt.NDArray[Any]:
        """Return an array of at least twice `rows`, the rows of the file at its start."""
        if sys.platform == "win32":
            raise StoreError(
                "adding documents needs Linux or macOS; rebuild the index with all documents"
            )
        descriptor, begin = self._file
        capacity = max(2 * rows, _MIN_BYTES // max(self._size, 1))
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        length = begin + max(capacity * self._size, 1)
        try:
            memory = mmap.mmap(-1, length, flags=flags)
        except OSError as error:
            raise StoreError(
                f"cannot reserve {length:,} bytes of address space "
                f"({error.strerror}); raise the limit (ulimit -v)"
            ) from error
        end = begin + self._base * self._size
        shared = end // mmap.PAGESIZE * mmap.PAGESIZE
        if shared:
            _map_over(memory, descriptor, shared)
        # The last page of the file is read-only, so its rows are copied.
        memory[shared:end] = os.pread(descriptor, end - shared, shared)
        return np.ndarray((capacity, *self._row), self._kind, memory, begin)


def _map_over(memory: mmap.mmap, descriptor: int, length: int) -> None:
    """Replace the start of a mapping by the start of a file, read-only."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    flags = mmap.MAP_PRIVATE | _MAP_FIXED
    mapped = _libc().mmap(address, length, mmap.PROT_READ, flags, descriptor, 0)
    if mapped != address:
        number = ctypes.get_errno()
        raise OSError(number, f"an appendable array cannot be mapped: {os.strerror(number)}")


@cache
def _libc() -> ctypes.CDLL:
    """Return the C library with mmap declared: offsets are as wide as a long."""
    libc = ctypes.CDLL(None, use_errno=True)
    number, word = ctypes.c_int, ctypes.c_size_t
    libc.mmap.argtypes = [ctypes.c_void_p, word, number, number, number, ctypes.c_long]
    libc.mmap.restype = ctypes.c_void_p
    return libc
