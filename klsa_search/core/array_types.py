"""Types of arrays, functions on them, and arrays that grow, in memory or in a file.

N documents, V terms, k dimensions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from klsa_search.core.lazy import cached_method, lazy_property

if TYPE_CHECKING:
    from scipy import sparse


DocumentMask = npt.NDArray[np.bool_]
"""(N,) whether each document is in a set, in document order; engines read a bitmap, `Mask`."""

Scores = npt.NDArray[np.floating[Any]]  # (N,) scores of the documents, in document order
DocIds = npt.NDArray[np.integer[Any]]  # (n,) doc ids, 0..N-1
Integers = npt.NDArray[np.integer[Any]]
"""(n,) whole numbers that are not doc ids, such as offsets and counts."""

Numbers = npt.NDArray[np.int64]  # the same in 64 bits, as compiled loops take them
Basis = npt.NDArray[np.floating[Any]]
"""(N, k) orthonormal columns, that of the largest eigenvalue first."""

Eigenvalues = npt.NDArray[np.floating[Any]]  # (k,) eigenvalues, largest first
Matrix = npt.NDArray[np.floating[Any]]  # (m, n) dense matrix


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
    wanted: Integers, keys: Integers, values: npt.NDArray[Any], missing: int = 0
) -> npt.NDArray[Any]:
    """Return the value of each wanted key, or `missing`, in the shape of `wanted`.

    keys, values  (n,) keys, ascending, and their values
    """
    if not len(keys):
        return np.full(wanted.shape, missing, values.dtype)
    positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[positions] == wanted, values[positions], missing)


_Number = TypeVar("_Number", bound=np.generic)

_INITIAL_CAPACITY: Final = 1024  # rows


class GrowableArray:
    """An array that grows at its end; appending n rows costs O(n) on average.

    dtype  type of the numbers
    width  columns; None for an array of one dimension
    """

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None) -> None:
        shape = _INITIAL_CAPACITY if width is None else (_INITIAL_CAPACITY, width)
        self._buffer = np.zeros(shape, dtype)
        self._size = 0

    @classmethod
    def of(cls, rows: npt.NDArray[np.generic]) -> Self:
        """Return an array with some rows, of one dimension."""
        array = cls(rows.dtype)
        array.extend(rows)
        return array

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


_POSITIONS: Final = 2**16  # texts whose positions are cached


class SortedTexts(Sequence[str]):
    """n distinct texts in order of code points, in arrays that may be mapped from files.

    content  uint8, the texts in UTF-8
    starts   (n + 1,) int64, start of each, and the end of the last
    gap      bytes after each text that are not part of it, such as a line end
    Immutable and thread-safe.
    """

    def __init__(
        self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], gap: int = 0
    ) -> None:
        self.content, self.starts, self._gap = content, starts, gap
        self._find = cached_method(self._position_of, _POSITIONS)

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Return texts, which are in order."""
        encoded = [text.encode() for text in texts]
        starts = starts_of(np.array([*map(len, encoded)], np.int64))
        return cls(np.frombuffer(b"".join(encoded), np.uint8), starts)

    def __len__(self) -> int:
        """Return n."""
        return len(self.starts) - 1

    @property
    def size(self) -> int:
        """Return the bytes of all texts."""
        return int(self.starts[-1] - self.starts[0])

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        """Return the text at a position."""
        if isinstance(position, slice):
            return self.at(np.arange(*position.indices(len(self))))
        return self._encoded(range(len(self))[position]).decode()

    def at(self, positions: npt.NDArray[np.integer[Any]]) -> list[str]:
        """Return the texts at positions, (n,) from 0. Cost: 0.4 µs each."""
        begins, ends = self.starts[positions], self.starts[positions + 1] - self._gap
        content = self.content.data
        return [
            str(content[begin:end], "utf-8")
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]

    def __iter__(self) -> Iterator[str]:
        """Yield all texts in order. Cost: 0.2 µs each, a fifth of that by position."""
        characters = starts_of((self.content & 0xC0) != 0x80)[self.starts].tolist()
        text, ends = self.content.tobytes().decode(), characters[1:]
        for begin, end in zip(characters, ends, strict=False):
            yield text[begin : end - self._gap]

    def find(self, text: str) -> int | None:
        """Return the position of a text; None if it is not among them.

        Cost: some 20 µs; the positions of 65,536 texts are cached.
        """
        return self._find(text)

    def containing(self, text: str) -> npt.NDArray[np.bool_]:
        """Return which texts contain this, ignoring case: (n,).

        Cost: 1 ns a byte of all texts; the first call folds them, 0.5 µs a text, which takes as
        much memory as they do.
        """
        content, starts = self._folded.content, self._folded.starts
        # A byte of UTF-8 that begins a character is never inside another one.
        wanted = text.casefold().encode(errors="surrogatepass")
        mask = np.full(len(self), not wanted)
        if not wanted or len(wanted) > len(content):
            return mask
        positions = np.flatnonzero(content[: len(content) - len(wanted) + 1] == wanted[0])
        for offset, byte in enumerate(wanted[1:], 1):
            positions = positions[content[positions + offset] == byte]
            if not len(positions):
                return mask
        texts = np.searchsorted(starts, positions, "right") - 1
        mask[texts[positions + len(wanted) <= starts[texts + 1]]] = True
        return mask

    @lazy_property
    def _folded(self) -> SortedTexts:
        """The texts without differences of case, made together to be folded once."""
        return SortedTexts.of([text.casefold() for text in self])

    def _position_of(self, text: str) -> int | None:
        wanted = text.encode(errors="surrogatepass")
        # UTF-8 has the order of code points.
        position = bisect_left(range(len(self)), wanted, key=self._encoded)
        return position if position < len(self) and self._encoded(position) == wanted else None

    def _encoded(self, position: int) -> bytes:
        begin, end = self.starts[position], self.starts[position + 1] - self._gap
        return self.content[begin:end].tobytes()


class Spool:
    """A one-dimensional array that is appended to and read in pieces.

    folder  of its file, which the caller removes; None keeps it in memory
    limit   bytes above which it is moved to the file
    A file is read, not mapped, so that its pages do not count as memory of the process.
    """

    def __init__(self, dtype: npt.DTypeLike, folder: Path | None = None, limit: int = 0) -> None:
        # 0 is no limit for the standard library.
        max_size = 0 if folder is None else max(limit, 1)
        self._file = SpooledTemporaryFile(  # noqa: SIM115 - closed by `close`
            max_size, dir=None if folder is None else str(folder)
        )
        self._dtype = np.dtype(dtype)
        self._size = 0

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
