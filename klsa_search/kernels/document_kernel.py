"""The document kernel K = A Aᵀ with A = S(Φ - 1μᵀ), as an operator.

Without options S = I and μ = 0: K = ΦΦᵀ [KLSA eq. 4]. Centring removes the direction that all
documents share. Normalising divides K(m,n) by the square roots of both lengths,
S = diag(1/√‖φ(d) - μ‖), which is half the way to the cosine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.array_types import DocIds, Matrix, Numbers, csr_arrays
from klsa_search.core.lazy import lazy_property

if TYPE_CHECKING:
    from scipy import sparse

EXACT = 20_000
"""Number of documents up to which features are float64.

Of 500 searches of Reuters-21578 (21,578 documents), float32 features and the block solver change
the order of the ten best documents in 5, and the documents themselves in none.
"""

NO_LENGTH = 1e-9
"""Squared distance from the mean document, relative to ‖φ(d)‖² + ‖μ‖², that counts as rounding."""


def scales_of(
    distances: npt.NDArray[np.number], squares: npt.NDArray[np.number], mean_square: float
) -> npt.NDArray[np.float64]:
    """Return S of normalised documents: (n,) 1/√‖φ(d) - μ‖.

    0 for a document without features, or equal to the mean document up to rounding.

    distances  (n,) ‖φ(d) - μ‖²
    squares    (n,) ‖φ(d)‖²
    """
    apart = (distances > NO_LENGTH * (squares + mean_square)) & (squares > 0)
    return np.where(apart, np.where(apart, distances, 1.0) ** -0.25, 0.0)


@dataclass(frozen=True)
class FeatureSums:
    """Sums over documents d, weighted by x(d), which add up over partitions.

    features  ΦᵀS x: (F,) or (F, c)
    scales, towards_mean  of S and of SΦμ
    """

    features: Matrix
    scales: Matrix
    towards_mean: Matrix

    def __add__(self, other: FeatureSums) -> FeatureSums:
        """Return the sums over the documents of both."""
        return FeatureSums(
            self.features + other.features,
            self.scales + other.scales,
            self.towards_mean + other.towards_mean,
        )


@dataclass(frozen=True)
class DocumentKernel:
    """K of N documents over F features.

    features  SΦ: (N, F) sparse, scaled rows
    scales    (N,) the diagonal of S
    mean      μ: (F,), 0 if the kernel is not centred
    """

    features: sparse.csr_array
    scales: npt.NDArray[np.floating]
    mean: npt.NDArray[np.floating]

    @classmethod
    def of(
        cls, Phi: sparse.csr_array, *, centred: bool = False, normalised: bool = False
    ) -> DocumentKernel:
        """Return the kernel of features Φ. Cost O(nnz); a document without features has K = 0.

        Above `EXACT` documents the scaled features are float32, and sums over them float64. The
        index arrays are shared with Phi.
        """
        N, F = Phi.shape
        mean = sums_of_columns(Phi) / N if centred and N else np.zeros(F)
        scales = np.ones(N)
        if normalised:
            squares, mean_square = squares_of_rows(Phi), np.einsum("f,f->", mean, mean)
            distances = squares - 2 * rows_with(Phi, mean) + mean_square
            scales = scales_of(distances, squares, mean_square)
        precision = np.float64 if N <= EXACT else np.float32
        return cls(scaled_rows(Phi, scales, precision), scales, mean)

    def __len__(self) -> int:
        """Return N, the number of documents."""
        return int(self.features.shape[0])

    @lazy_property
    def towards_mean(self) -> npt.NDArray[np.floating]:
        """Return SΦμ: (N,) inner products of the scaled documents with the mean document."""
        return rows_with(self.features, self.mean)

    @lazy_property
    def mean_square(self) -> float:
        """Return ‖μ‖²."""
        return float(np.einsum("f,f->", self.mean, self.mean, dtype=np.float64))

    def forward(self, x: Matrix) -> Matrix:
        """Return A x: (F,) or (F, c) → (N,) or (N, c). Cost O(nnz) per column."""
        return self._of_documents(x) - _outer(self.scales, self.mean @ x)

    def backward(self, y: Matrix) -> Matrix:
        """Return Aᵀ y: (N,) or (N, c) → (F,) or (F, c). Cost O(nnz) per column."""
        return self._of_features(y) - _outer(self.mean, self.scales @ y)

    def apply(self, x: Matrix) -> Matrix:
        """Return K x: (N,) or (N, c). Cost O(nnz) per column.

        Expanded to avoid products with the dense mean; without BLAS, whose bits depend on threads.
        """
        return self.with_sums(self.sums(x))

    def sums(self, x: Matrix) -> FeatureSums:
        """Return the sums of documents weighted by x: (N,) or (N, c)."""
        return FeatureSums(
            self._of_features(x),
            np.einsum("n,n...->...", self.scales, x),
            np.einsum("n,n...->...", self.towards_mean, x),
        )

    def with_sums(self, sums: FeatureSums) -> Matrix:
        """Return Σ x(d) K(·, d) of any documents with these features: (N,) or (N, c)."""
        plain = self._of_documents(sums.features)
        plain -= _outer(self.scales, sums.towards_mean - self.mean_square * sums.scales)
        plain -= _outer(self.towards_mean, sums.scales)
        return plain

    @lazy_property
    def _products(self) -> tuple[_native.Features, Numbers]:
        return _products_of(self.features)

    def _of_documents(self, x: Matrix) -> Matrix:
        """Return SΦ x: (F,) or (F, c) → (N,) or (N, c)."""
        x = np.ascontiguousarray(x, np.result_type(self.features, x))
        out = np.zeros((len(self), *x.shape[1:]), x.dtype)
        products, starts = self._products
        products.add_to_documents(starts[:-1], starts[1:], _as_columns(x), _as_columns(out))
        return out

    def _of_features(self, y: Matrix) -> Matrix:
        """Return ΦᵀS y: (N,) or (N, c) → (F,) or (F, c)."""
        y = np.ascontiguousarray(y, np.result_type(self.features, y))
        out = np.zeros((self.features.shape[1], *y.shape[1:]), y.dtype)
        products, starts = self._products
        products.add_to_features(starts[:-1], starts[1:], _as_columns(y), _as_columns(out))
        return out

    def rows(self, documents: DocIds) -> Matrix:
        """Return rows of K: (n, N) dense. Cost O(n · nnz / N · density); memory 8 n N bytes."""
        chosen = self.features[documents]
        raw = np.asarray((chosen @ self.features.T).toarray())
        raw -= np.outer(self.towards_mean[documents], self.scales)
        raw -= np.outer(self.scales[documents], self.towards_mean - self.scales * self.mean_square)
        return raw

    def between(self, document: int, columns: DocIds) -> Matrix:
        """Return K(document, others): (n,). Cost: the features of those documents."""
        chosen = self.features[[document]]
        raw: Matrix = (chosen @ self.features[columns].T).toarray()[0]
        scale, towards = self.scales[document], self.towards_mean[document]
        raw -= towards * self.scales[columns]
        raw -= scale * (self.towards_mean[columns] - self.scales[columns] * self.mean_square)
        return raw

    def explicit(self) -> Matrix:
        """Return K: (N, N) dense, for small collections and tests."""
        return self.rows(np.arange(len(self)))

    @lazy_property
    def diagonal(self) -> npt.NDArray[np.float64]:
        """Return K(d, d): (N,)."""
        squares = squares_of_rows(self.features)
        crossed = self.towards_mean * self.scales
        diagonal = squares - 2 * crossed + self.scales**2 * self.mean_square
        return np.asarray(np.maximum(diagonal, 0.0))


def _as_columns(x: Matrix) -> Matrix:
    """Return a vector as a matrix of one column, without a copy; a matrix as it is."""
    return x[:, None] if x.ndim == 1 else x


def _outer(column: npt.NDArray[np.floating], row: npt.NDArray[np.floating]) -> Matrix:
    return np.asarray(np.multiply.outer(column, row))


def squares_of_rows(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return Σ_f x² of each row: (m,). Cost O(nnz)."""
    sums = np.empty(matrix.shape[0])
    starts, _, values = _arrays_of(matrix)
    _native.squares_of_rows(starts, values, sums)
    return sums


def sums_of_columns(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return Σ_d x of each column: (n,). Cost O(nnz)."""
    sums, ones = np.zeros((matrix.shape[1], 1)), np.ones((matrix.shape[0], 1))
    products, starts = _products_of(matrix)
    products.add_to_features(starts[:-1], starts[1:], ones, sums)
    return sums[:, 0]


def rows_with(matrix: sparse.csr_array, vector: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the inner product of each row with a vector: (m, n), (n,) → (m,). Cost O(nnz)."""
    sums = np.zeros((matrix.shape[0], 1))
    products, starts = _products_of(matrix)
    products.add_to_documents(starts[:-1], starts[1:], vector[:, None].astype(np.float64), sums)
    return sums[:, 0]


def scaled_rows(
    matrix: sparse.csr_array, scales: npt.NDArray[np.float64], dtype: type[np.floating[Any]]
) -> sparse.csr_array:
    """Return each row times its scale; index arrays are shared with `matrix`. Cost O(nnz)."""
    from scipy import sparse

    starts, _, values = _arrays_of(matrix)
    data = np.empty(len(values), dtype)
    _native.scale_rows(starts, values, scales.astype(np.float64), data)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _products_of(matrix: sparse.csr_array) -> tuple[_native.Features, Numbers]:
    starts, columns, values = _arrays_of(matrix)
    return _native.Features(columns, values, matrix.shape[1]), starts


def _arrays_of(
    matrix: sparse.csr_array,
) -> tuple[Numbers, npt.NDArray[np.int32], npt.NDArray[np.floating]]:
    """Return the arrays of a matrix; integers as float64, which all sums are in."""
    starts, columns, values = csr_arrays(matrix)
    is_floating = values.dtype in (np.float32, np.float64)
    return starts, columns, values if is_floating else values.astype(np.float64)
