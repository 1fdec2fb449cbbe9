"""Types of arrays, functions on them, and arrays that grow, in memory or in a file.

N documents, V terms, k dimensions.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse


DocumentMask = npt.NDArray[np.bool_]
"""(N,) whether each document is in a set, in document order; engines read a bitmap, `Mask`."""

Scores = npt.NDArray[np.floating[Any]]
"""(N,) scores of the documents, in document order."""

DocIds = npt.NDArray[np.integer[Any]]
"""(n,) doc ids, 0..N-1."""

Integers = npt.NDArray[np.integer[Any]]
"""(n,) whole numbers that are not doc ids, such as offsets and counts."""

Basis = npt.NDArray[np.floating[Any]]
"""(N, k) orthonormal columns, that of the largest eigenvalue first."""

Eigenvalues = npt.NDArray[np.floating[Any]]
"""(k,) eigenvalues, largest first."""

Matrix = npt.NDArray[np.floating[Any]]
"""(m, n) dense matrix."""


class SparseRows(NamedTuple):
    """The arrays of a sparse matrix, by the names of SciPy, which takes 0.1 s to import or more.

    indptr   (n + 1,) start of the entries of each row
    indices  their columns
    data     their values
    shape    rows and columns
    """

    indptr: Integers
    indices: Integers
    data: npt.NDArray[Any]
    shape: tuple[int, int]


def ranks_of(counts: npt.NDArray[np.number]) -> npt.NDArray[np.int32]:
    """Return the rank of each count among all, the largest first, of equal ones the first: (n,).

    >>> ranks_of(np.array([1, 5, 1]))
    array([1, 0, 2], dtype=int32)
    """
    ranks = np.empty(len(counts), np.int32)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts), dtype=np.int32)
    return ranks


def csr_arrays(
    rows: SparseRows | sparse.csr_array,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return starts, columns and values of sparse rows, as compiled loops take them."""
    starts = np.asarray(rows.indptr, np.int64)
    return starts, np.asarray(rows.indices, np.int32), rows.data


def starts_of(sizes: npt.NDArray[np.integer[Any] | np.bool_]) -> npt.NDArray[np.int64]:
    """Return the start of each list, one after the other, and the end of the last: (n + 1,).

    sizes  (n,) of the lists
    """
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, dtype=np.int64, out=starts[1:])
    return starts


def narrow_indptr(starts: Integers) -> Integers:
    """Return the row pointers of a sparse matrix as int32 if the number of entries fits.

    SciPy gives both index arrays one type: with int64 pointers it would copy the column indices, a
    much longer array, to int64 as well.
    """
    return starts.astype(np.int32) if starts[-1] <= np.iinfo(np.int32).max else starts


def values_at(
    wanted: Integers,
    keys: Integers,
    values: npt.NDArray[Any],
    missing: int = 0,
) -> npt.NDArray[Any]:
    """Return the value of each wanted key, or `missing`, in the shape of `wanted`.

    keys, values  (n,) keys, ascending, and their values
    """
    if not len(keys):
        return np.full(wanted.shape, missing, values.dtype)
    positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[positions] == wanted, values[positions], missing)


_Number = TypeVar("_Number", bound=np.generic)

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


class GrowableLists(Generic[_Number]):
    """Lists of numbers, one after the other; more can be appended.

    dtype  type of the numbers
    """

    def __init__(self, dtype: type[_Number]) -> None:
        self._numbers, self._starts = GrowableArray(dtype), GrowableArray(np.int64)
        self._starts.extend(np.zeros(1, np.int64))

    def __len__(self) -> int:
        """Return the number of lists."""
        return len(self._starts) - 1

    @property
    def bytes(self) -> int:
        """Return the bytes of all lists."""
        return self.numbers.nbytes + self.starts.nbytes

    @property
    def numbers(self) -> npt.NDArray[_Number]:
        """Return a view of the numbers of all lists, which later appends do not change."""
        return self._numbers.rows

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Return a view of the start of each list, and the end of the last: (n + 1,)."""
        return self._starts.rows

    def extend(self, numbers: npt.NDArray[_Number], starts: npt.NDArray[np.int64]) -> None:
        """Append lists: their numbers, and (n + 1,) the start of each, the first at 0."""
        self._starts.extend(starts[1:] + len(self._numbers))
        self._numbers.extend(numbers)


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
