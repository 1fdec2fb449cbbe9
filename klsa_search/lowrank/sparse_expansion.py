"""The sparse expansion matrix: the largest entries of each row of D, packed in 32 bits.

Above a few thousand documents all of D is too large, and not needed: the rows of the seeds give
candidates, and for the best of these D is computed exactly, from the features. This requires D to
be a multiple of K, because single entries of K are cheap.

An entry has 24 bits for its column and 8 bits for its level, in steps of 1/255 of the largest entry
of its row; stored levels are at least 1. The data of a document is contiguous, because a cache miss
costs as much as a hundred additions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.array_types import (
    DocIds,
    Integers,
    Numbers,
    SparseRows,
    csr_arrays,
    narrow_indptr,
    ranks_of,
    starts_of,
)
from klsa_search.core.lazy import lazy_property
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank.expansion_matrix import spectral_function
from klsa_search.lowrank.latent_space import LatentSpace

if TYPE_CHECKING:
    from scipy import sparse


LEVELS = 255
NUMBERS = 2**24
"""Number of columns that 24 bits can address."""

MAX_DOCUMENTS = NUMBERS
"""Limit of doc ids of a writable index, which entries store in 24 bits."""

_Packed = npt.NDArray[np.uint32]
_Steps = npt.NDArray[np.float32]


def pack_rows(
    rows: SparseRows | sparse.csr_array, ranks: npt.NDArray[np.int32] | None = None
) -> tuple[Numbers, _Packed, _Steps]:
    """Return packed positive entries as starts, entries and the step of each row.

    ranks  new numbers of the columns; those from 2^24 on are left out
    Cost O(entries).
    """
    starts, columns, values = csr_arrays(rows)
    packed_starts, steps = np.empty_like(starts), np.empty(len(starts) - 1, np.float32)
    packed = np.empty(len(values), np.uint32)
    size = _native.pack_rows(starts, columns, values, ranks, packed_starts, packed, steps)
    return packed_starts, packed[:size], steps


def unpack_rows(starts: Numbers, entries: _Packed, steps: _Steps, columns: int) -> sparse.csr_array:
    """Return unpacked rows: (N, columns) sparse float32. Cost O(entries)."""
    from scipy import sparse

    values = (entries & np.uint32(LEVELS)) * np.repeat(steps, np.diff(starts))
    numbers = (entries >> np.uint32(8)).astype(np.int32)
    return sparse.csr_array((values, numbers, narrow_indptr(starts)), shape=(len(steps), columns))


def pack_table(
    rows: sparse.csr_array, width: int, first_row: int = 0, ordinals: Numbers | None = None
) -> tuple[_Packed, _Steps, RemoteRows]:
    """Return the `width` largest positive entries of each row, packed, and the step of each row.

    rows       (n, N) of the n documents of a partition, whose columns begin at `first_row`
    ordinals   (N,) of the documents of all partitions, by which ties are ordered; None if there is
               one partition
    Entries are (n, width), largest first, padded with 0. The diagonal is left out. The entries of a
    row are divided: those in other partitions are in a table of their own, which has no columns if
    there are none. Cost O(entries log width).
    """
    n = rows.shape[0]
    remote_width = 0 if ordinals is None else width
    table, steps = np.empty((n, width), np.uint32), np.empty(n, np.float32)
    remote = RemoteRows(
        np.empty((n, remote_width), np.uint32), np.empty((n, remote_width), np.uint8)
    )
    numbers = np.arange(n) if ordinals is None else ordinals
    _native.pack_table(*csr_arrays(rows), first_row, numbers, table, steps, *remote)
    return table, steps, remote


def rows_of_shares(
    columns: Integers, levels: npt.NDArray[np.float32], shape: tuple[int, int]
) -> sparse.csr_array:
    """Return sparse rows of sum 1, with columns in order, of levels at some columns: (n, w)."""
    from scipy import sparse

    is_used = levels > 0
    starts = narrow_indptr(starts_of(is_used.sum(axis=1)))
    shares = levels / np.maximum(levels.sum(axis=1, keepdims=True), 1)
    entries = shares[is_used], columns[is_used].astype(np.int32, copy=False), starts
    matrix = sparse.csr_array(entries, shape=shape)
    matrix.sort_indices()
    return matrix


ENTRIES = 48
"""Entries stored per row, without the diagonal."""

LATENT_LEVELS = 127
DOCUMENT_SCALARS = 3  # scalars after the coordinates of a document: step of the features, S, SΦμ


class RemoteRows(NamedTuple):
    """Entries of the rows of D of a partition whose columns are documents of other partitions.

    documents  (N, entries) ordinals: see `Snapshot.ordinals_of`
    levels     (N, entries) in the steps of the rows, largest first, padded with 0
    """

    documents: npt.NDArray[np.uint32]
    levels: npt.NDArray[np.uint8]


NO_REMOTE_ROWS: Final[RemoteRows] = RemoteRows(
    np.zeros((0, 1), np.uint32), np.zeros((0, 1), np.uint8)
)


@dataclass(frozen=True)
class SparseExpansion:
    """The largest entries of K, and the features from which all entries can be computed.

    The documents are consecutive; entries of their rows may be of any documents.

    rows      (N, entries) uint32, the largest entries of each row without the diagonal, largest
              first, padded with 0
    scales    (N, 2) float32, the step of the row, and K(d, d)
    starts    (N + 1,) int64, start of the features of each document
    features  (n,) uint32, of SΦ, numbered from the most frequent on
    mean      (F,) float32, μ, numbered likewise
    document_vectors
              (N, w) int8: coordinates in the latent space in steps of 1/127, then three float32:
              the step of the features, S and SΦμ; w a multiple of 16
    terms     (V, v) int8: what a term adds to the coordinates of a query, and the step of these
              values as float32; v a multiple of 4
    """

    rows: npt.NDArray[np.uint32]
    scales: npt.NDArray[np.float32]
    starts: Numbers
    features: npt.NDArray[np.uint32]
    mean: npt.NDArray[np.float32]
    document_vectors: npt.NDArray[np.int8]
    terms: npt.NDArray[np.int8]

    @classmethod
    def of(
        cls,
        kernel: DocumentKernel,
        nearest: sparse.csr_array,
        latent: LatentSpace,
        entries: int = ENTRIES,
    ) -> SparseExpansion:
        """Return the sparse expansion of a kernel.

        nearest  (N, N) the largest positive entries of each row of K
        entries  number of entries stored per row
        Features beyond the 2^24 most frequent are left out. Cost O(entries log entries).
        """
        N, F = kernel.features.shape
        ranks = ranks_of(np.bincount(kernel.features.indices, minlength=F))
        mean = np.zeros(min(F, NUMBERS), np.float32)
        kept = ranks < NUMBERS
        mean[ranks[kept]] = kernel.mean[kept]
        starts, features, steps = pack_rows(kernel.features, ranks)
        rows, row_steps, _ = pack_table(nearest, entries)
        m = latent.documents.shape[1]
        vectors = np.zeros((N, -(-(m + 4 * DOCUMENT_SCALARS) // 16) * 16), np.int8)
        vectors[:, :m] = np.rint(latent.documents * LATENT_LEVELS)
        scalars_of(vectors)[:] = np.column_stack((steps, kernel.scales, kernel.towards_mean))
        return cls(
            rows,
            np.column_stack((row_steps, kernel.diagonal)).astype(np.float32),
            starts,
            features,
            mean,
            vectors,
            packed_terms(latent.terms),
        )

    @property
    def document_scalars(self) -> npt.NDArray[np.float32]:
        """Return the step of the features, S and SΦμ: (N, 3)."""
        return scalars_of(self.document_vectors)

    @lazy_property
    def native(self) -> _native.DocumentRows:
        """Return the rows for the engine. Cost: O(N), once."""
        return _native.DocumentRows(
            np.ascontiguousarray(self.rows, np.uint32),
            np.ascontiguousarray(self.scales, np.float32),
            np.ascontiguousarray(self.starts, np.int64),
            np.ascontiguousarray(self.features, np.uint32),
            np.ascontiguousarray(self.document_vectors, np.int8),
        )

    @lazy_property
    def mean_square(self) -> float:
        """Return ‖μ‖². Cost: O(F), once."""
        return float(np.einsum("f,f->", self.mean, self.mean, dtype=np.float64))


_Number = TypeVar("_Number", bound=np.generic)


class SegmentedExpansion:
    """The sparse expansion of all documents, in segments of consecutive ones; immutable.

    segments  one after the other; the first, of the build, has the mean and the terms
    """

    def __init__(self, segments: Sequence[SparseExpansion]) -> None:
        self.segments = tuple(segments)
        ends = np.cumsum([len(segment.rows) for segment in self.segments])
        self._firsts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))

    @property
    def built(self) -> SparseExpansion:
        """Return the segment of the build."""
        return self.segments[0]

    @property
    def entries(self) -> int:
        """Return the number of entries of a row."""
        return int(self.built.rows.shape[1])

    def rows(self, documents: DocIds) -> _Packed:
        """Return the rows of documents: (n, entries)."""
        return self._of(documents, lambda segment: segment.rows)

    def scales(self, documents: DocIds) -> npt.NDArray[np.float32]:
        """Return the step of the row of each document, and K(d, d): (n, 2)."""
        return self._of(documents, lambda segment: segment.scales)

    def document_scalars(self, documents: DocIds) -> npt.NDArray[np.float32]:
        """Return the step of the features of each document, S and SΦμ: (n, 3)."""
        return self._of(documents, lambda segment: segment.document_scalars)

    def features(self, documents: DocIds) -> tuple[Numbers, _Packed]:
        """Return the start of the features of each document, (n + 1,), and the features."""
        pieces = [self.built.features[:0]]
        numbers = np.searchsorted(self._firsts, documents, "right") - 1
        rows = documents - self._firsts[numbers]
        for number, row in zip(numbers.tolist(), rows.tolist(), strict=True):
            segment = self.segments[number]
            pieces.append(segment.features[segment.starts[row] : segment.starts[row + 1]])
        starts = np.cumsum(np.array(list(map(len, pieces)), np.int64))
        return starts, np.concatenate(pieces)

    def kernel_of(self, documents: DocIds) -> DocumentKernel:
        """Return K of some documents, of the rounded features. Cost: those."""
        scalars = self.document_scalars(documents)
        return _kernel_of(*self.features(documents), scalars, self.built.mean)

    def latent(self, dimensions: int) -> LatentSpace:
        """Return the latent space with rounded coordinates. Memory 4 (N + V) m bytes."""
        documents = self._joined(lambda segment: segment.document_vectors[:, :dimensions])
        terms = self.built.terms
        return LatentSpace(
            documents * np.float32(1 / LATENT_LEVELS),
            terms[:, :dimensions] * terms.view(np.float32)[:, -1:],
        )

    def kernel(self) -> DocumentKernel:
        """Return K of all documents, of the rounded features. Cost and memory O(n)."""
        return _kernel_of(
            starts_of(self._joined(lambda segment: np.diff(segment.starts))),
            self._joined(lambda segment: segment.features),
            self._joined(lambda segment: segment.document_scalars),
            self.built.mean,
        )

    def neighbours(self, count: int) -> sparse.csr_array:
        """Return W: (N, N) sparse, the `count` largest entries of each row, with sum 1."""
        rows = self._joined(lambda segment: segment.rows[:, :count])
        levels = (rows & np.uint32(LEVELS)).astype(np.float32)
        shape = len(rows), len(rows)
        return rows_of_shares((rows >> np.uint32(8)).astype(np.int32), levels, shape)

    def _joined(
        self, array: Callable[[SparseExpansion], npt.NDArray[_Number]]
    ) -> npt.NDArray[_Number]:
        arrays = list(map(array, self.segments))
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def _of(
        self, documents: DocIds, array: Callable[[SparseExpansion], npt.NDArray[_Number]]
    ) -> npt.NDArray[_Number]:
        arrays = list(map(array, self.segments))
        if len(arrays) == 1:
            return np.asarray(arrays[0][documents])
        numbers = np.searchsorted(self._firsts, documents, "right") - 1
        result = np.empty((len(documents), *arrays[0].shape[1:]), arrays[0].dtype)
        for number, (first, rows) in enumerate(zip(self._firsts, arrays, strict=True)):
            result[numbers == number] = rows[documents[numbers == number] - first]
        return result


def _kernel_of(
    starts: Numbers,
    features: _Packed,
    scalars: npt.NDArray[np.float32],
    mean: npt.NDArray[np.float32],
) -> DocumentKernel:
    rows = unpack_rows(starts, features, scalars[:, 0], len(mean))
    return DocumentKernel(rows, scalars[:, 1].astype(np.float64), mean)


def scalars_of(document_vectors: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Return the step of the features, S and SΦμ of document vectors: a view, (N, 3)."""
    return document_vectors.view(np.float32)[:, -DOCUMENT_SCALARS:]


def packed_terms(terms: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    """Return coordinates of terms in 8 bits, and their steps: (V, m) → (V, v)."""
    V, m = terms.shape
    packed = np.zeros((V, -(-(m + 4) // 4) * 4), np.int8)
    steps = np.abs(terms).max(axis=1, initial=0) / np.float32(LATENT_LEVELS)
    np.rint(terms / np.where(steps > 0, steps, 1)[:, None], out=packed[:, :m], casting="unsafe")
    packed.view(np.float32)[:, -1] = steps
    return packed


@cache
def is_multiple_of_kernel(spectral: str, gamma: float, head: int) -> bool:
    """Return whether D is a multiple of K: f is proportional to λ and no eigenvector left out."""
    function = spectral_function(spectral, gamma)
    relative = np.linspace(0.1, 1.0, 10)
    is_linear = np.array_equal(function.of(relative), function.slope(relative[:1]) * relative)
    return is_linear and function.value == 0 and head == 0


def sparse_expansion_arrays(expansion: SparseExpansion) -> dict[str, npt.NDArray[Any]]:
    """Return the stored arrays by name: `expansion_<name>`."""
    return {f"expansion_{name}": getattr(expansion, name) for name in _STORED}


def open_sparse_expansion(array: Callable[[str], npt.NDArray[Any]]) -> SparseExpansion:
    """Return the expansion of stored arrays; `array` returns the array of a name."""
    return SparseExpansion(**{name: array(f"expansion_{name}") for name in _STORED})


_STORED: Final = tuple(field.name for field in fields(SparseExpansion))
