"""The sparse expansion matrix: the strongest entries of each row of D, packed in 32 bits.

A level counts steps of 1/255 of the largest entry of its row; none that is held is 0.

Above a few thousand documents D neither fits nor is needed. The rows of a query's seeds bring up
their strongest documents; for the few that come out in front D is computed exactly, from the
features. Only a D that is a multiple of K can be cut without being computed, since single entries
of K are cheap.

An entry is one number of 32 bits: 24 for whose it is, 8 for how much, in steps of 1/255 of the
largest of its row. Whatever is read of a document lies together, as each place in memory that is
looked at costs as long as a hundred sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import narrow_indptr
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank.latent_space import LatentSpace
from klsa_search.lowrank.spectral_functions import SPECTRAL_FUNCTIONS

if TYPE_CHECKING:
    from scipy import sparse


LEVELS = 255
NUMBERS = 2**24
"""What 24 bits can number."""

MAX_DOCUMENTS = NUMBERS
"""Document numbers of an index that can be written to: an entry holds one in 24 bits."""

_BLOCK = 8_192  # rows at a time: what is sorted takes forty bytes an entry

_Packed = npt.NDArray[np.uint32]
_Steps = npt.NDArray[np.float32]


def pack_rows(
    rows: sparse.csr_array, ranks: npt.NDArray[np.int64] | None = None
) -> tuple[npt.NDArray[np.int64], _Packed, _Steps]:
    """Pack positive entries, columns numbered by `ranks` or as they are; none past 2^24 is kept.

    Returns starts, entries and the step of each row. Cost O(entries).
    """
    N = rows.shape[0]
    steps = np.zeros(N, np.float32)
    sizes, packed = [np.zeros(1, np.int64)], [np.zeros(0, np.uint32)]
    for begin in range(0, N, _BLOCK):
        end = min(begin + _BLOCK, N)
        entries = slice(rows.indptr[begin], rows.indptr[end])
        documents = np.repeat(np.arange(end - begin), np.diff(rows.indptr[begin : end + 1]))
        numbers, values = rows.indices[entries], rows.data[entries]
        numbers = numbers if ranks is None else ranks[numbers]
        largest = np.zeros(end - begin, np.float32)
        np.maximum.at(largest, documents, values)
        steps[begin:end] = largest / LEVELS
        kept = (numbers < NUMBERS) & (values > 0)
        levels = _levels(values[kept], steps[begin:end][documents[kept]])
        packed.append((numbers[kept].astype(np.uint32) << np.uint32(8)) | levels)
        sizes.append(np.bincount(documents[kept], minlength=end - begin))
    return np.cumsum(np.concatenate(sizes)), np.concatenate(packed), steps


def unpack_rows(
    starts: npt.NDArray[np.int64], entries: _Packed, steps: _Steps, columns: int
) -> sparse.csr_array:
    """Give rows back: (N, columns) sparse float32. Cost O(entries)."""
    from scipy import sparse

    values = (entries & np.uint32(LEVELS)) * np.repeat(steps, np.diff(starts))
    numbers = (entries >> np.uint32(8)).astype(np.int32)
    return sparse.csr_array((values, numbers, narrow_indptr(starts)), shape=(len(steps), columns))


def pack_table(rows: sparse.csr_array, width: int, first_row: int = 0) -> tuple[_Packed, _Steps]:
    """Pack the `width` strongest positive entries of each row, strongest first, then 0.

    The diagonal is left out, which begins at column `first_row`; ties go by column. Returns
    (N, width) and the step of each row.
    Cost O(entries log entries).
    """
    N = rows.shape[0]
    table, steps = np.zeros((N, width), np.uint32), np.zeros(N, np.float32)
    for begin in range(0, N, _BLOCK):
        end = min(begin + _BLOCK, N)
        within = slice(rows.indptr[begin], rows.indptr[end])
        documents = np.repeat(np.arange(begin, end), np.diff(rows.indptr[begin : end + 1]))
        columns, values = rows.indices[within], rows.data[within]
        others = np.flatnonzero((columns != documents + first_row) & (values > 0))
        order = others[np.lexsort((columns[others], -values[others], documents[others]))]
        counts = np.bincount(documents[order] - begin, minlength=end - begin)
        places = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        first, kept = order[places == 0], places < width
        steps[documents[first]] = values[first] / LEVELS
        chosen = order[kept]
        levels = _levels(values[chosen], steps[documents[chosen]])
        packed = (columns[chosen].astype(np.uint32) << np.uint32(8)) | levels
        table[documents[chosen], places[kept]] = packed
    return table, steps


def unpack_table(table: _Packed) -> sparse.csr_array:
    """Give the levels of a table back: (N, N) sparse float32, columns in order."""
    from scipy import sparse

    N = len(table)
    held = table > 0
    starts = narrow_indptr(np.concatenate(([0], np.cumsum(held.sum(axis=1)))))
    entries = table[held]
    levels = (entries & np.uint32(LEVELS)).astype(np.float32)
    columns = (entries >> np.uint32(8)).astype(np.int32)
    matrix = sparse.csr_array((levels, columns, starts), shape=(N, N))
    matrix.sort_indices()
    return matrix


def _levels(values: npt.NDArray[np.floating], steps: _Steps) -> _Packed:
    levels: _Packed = np.maximum(np.rint(values / steps), 1).astype(np.uint32)
    return levels


ENTRIES = 48
"""Entries kept of a row, besides the document's own."""

LATENT_LEVELS = 127
DOCUMENT_SCALARS = 3  # numbers of a card besides the coordinates: step of the features, S, SΦμ


@dataclass(frozen=True)
class SparseExpansion:
    """K in its strongest entries, with the features that give every other.

    rows      (N, entries) uint32, of each row of K its strongest others, strongest first, then 0
    scales    (N, 2) float32, the step of the row, and K(d, d)
    starts    (N + 1,) int64, where each document's features begin
    features  (n,) uint32, of SΦ, numbered from the most frequent on
    mean      (F,) float32, μ, numbered likewise
    cards     (N, w) int8: coordinates in the latent space in steps of 1/127, then three float32:
              the step of the features, S and SΦμ; w a multiple of 16
    terms     (V, v) int8: what a term adds to a query's coordinates, in steps of its own, and that
              step as float32; v a multiple of 4
    """

    rows: npt.NDArray[np.uint32]
    scales: npt.NDArray[np.float32]
    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.uint32]
    mean: npt.NDArray[np.float32]
    document_vectors: npt.NDArray[np.int8]
    terms: npt.NDArray[np.int8]

    @classmethod
    def of(
        cls,
        kernel: DocumentKernel,
        strongest: sparse.csr_array,
        latent: LatentSpace,
        entries: int = ENTRIES,
        *,
        first: int = 0,
        ranks: npt.NDArray[np.int64] | None = None,
    ) -> SparseExpansion:
        """Cut the rows of a kernel, or of some documents of one.

        strongest  (N, N) of each row of K its strongest positive entries
        entries    kept of a row, besides the document's own
        first      the number of the first document, where there are others before it
        ranks      of the features among all documents; by these documents alone otherwise
        Features beyond the 2^24 most frequent are left out. Cost O(entries log entries).
        """
        N, F = kernel.features.shape
        if ranks is None:
            ranks = ranks_of(np.bincount(kernel.features.indices, minlength=F))
        mean = np.zeros(min(F, NUMBERS), np.float32)
        kept = ranks < NUMBERS
        mean[ranks[kept]] = kernel.mean[kept]
        starts, features, steps = pack_rows(kernel.features, ranks)
        rows, row_steps = pack_table(strongest, entries, first)
        m = latent.documents.shape[1]
        vectors = np.zeros((N, document_vector_width(m)), np.int8)
        vectors[:, :m] = np.rint(latent.documents * LATENT_LEVELS)
        scalars = vectors.view(np.float32)
        scalars[:, -3], scalars[:, -2], scalars[:, -1] = steps, kernel.scales, kernel.towards_mean
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
        """Step of the features, S and SΦμ: (N, 3)."""
        return self.document_vectors.view(np.float32)[:, -DOCUMENT_SCALARS:]

    @property
    def mean_square(self) -> float:
        """‖μ‖²."""
        return float(np.einsum("f,f->", self.mean, self.mean, dtype=np.float64))

    def latent(self, dimensions: int) -> LatentSpace:
        """The latent space as it was rounded. Memory 4 (N + V) m bytes."""
        return LatentSpace(
            self.document_vectors[:, :dimensions] * np.float32(1 / LATENT_LEVELS),
            self.terms[:, :dimensions] * self.terms.view(np.float32)[:, -1:],
        )

    def kernel(self) -> DocumentKernel:
        """K, from the features as they were rounded. Cost and memory O(n)."""
        matrix = unpack_rows(
            self.starts, self.features, self.document_scalars[:, 0], len(self.mean)
        )
        return DocumentKernel(matrix, self.document_scalars[:, 1].astype(np.float64), self.mean)

    def neighbours(self, count: int) -> sparse.csr_array:
        """W: (N, N) sparse, the `count` strongest of each row, scaled to sum 1."""
        W = unpack_table(self.rows[:, :count])
        sums = np.asarray(W.sum(axis=1)).ravel()
        W.data /= np.repeat(sums, np.diff(W.indptr))
        return W


def ranks_of(frequencies: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number features from the most frequent on: (F,)."""
    ranks = np.empty(len(frequencies), np.int64)
    ranks[np.argsort(-frequencies, kind="stable")] = np.arange(len(frequencies))
    return ranks


def packed_terms(terms: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    """Coordinates of terms in 8 bits, and their steps: (V, m) → (V, v)."""
    V, m = terms.shape
    packed = np.zeros((V, term_width(m)), np.int8)
    steps = np.abs(terms).max(axis=1, initial=0) / np.float32(LATENT_LEVELS)
    np.rint(terms / np.where(steps > 0, steps, 1)[:, None], out=packed[:, :m], casting="unsafe")
    packed.view(np.float32)[:, -1] = steps
    return packed


def term_width(dimensions: int) -> int:
    """Bytes of a term's place in the latent space."""
    return -(-(dimensions + 4) // 4) * 4


def document_vector_width(dimensions: int) -> int:
    """Bytes of a document's card."""
    return -(-(dimensions + 4 * DOCUMENT_SCALARS) // 16) * 16


@cache
def is_multiple_of_kernel(spectral: str, gamma: float, head: int) -> bool:
    """Whether f is a straight line through 0, and no eigenvector is left out: what can be cut."""
    function = SPECTRAL_FUNCTIONS[spectral](gamma)
    relative = np.linspace(0.1, 1.0, 10)
    straight = np.array_equal(function.of(relative), function.slope(relative[:1]) * relative)
    return straight and function.value == 0 and head == 0


def sparse_expansion_arrays(expansion: SparseExpansion) -> dict[str, npt.NDArray[Any]]:
    """Return the stored arrays by name: `cut_<name>`."""
    return {name: getattr(expansion, field) for field, name in _ARRAYS.items()}


def open_sparse_expansion(array: Callable[[str], npt.NDArray[Any]]) -> SparseExpansion:
    """Return the expansion of stored arrays; `array` returns the array of a name."""
    return SparseExpansion(**{field: array(name) for field, name in _ARRAYS.items()})


_ARRAYS: Final = {
    field.name: "cut_cards" if field.name == "document_vectors" else f"cut_{field.name}"
    for field in fields(SparseExpansion)
}
