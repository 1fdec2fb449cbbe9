"""Sums over the entries of a sparse matrix, in float64, without copying it.

SciPy converts a float32 matrix to float64 first, which takes too much memory at a million
documents. Sums are computed in the order of the entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled

if TYPE_CHECKING:
    from scipy import sparse


def squares_of_rows(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return Σ_f x² of each row: (m,). Cost O(nnz)."""
    sums = np.empty(matrix.shape[0])
    _squares_of_rows(matrix.indptr, matrix.data, sums)
    return sums


def sums_of_columns(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return Σ_d x of each column: (n,). Cost O(nnz)."""
    sums = np.zeros(matrix.shape[1])
    add_to_columns(matrix, sums)
    return sums


def add_to_columns(matrix: sparse.csr_array, sums: npt.NDArray[np.float64]) -> None:
    """Add the rows of a matrix (m, n) to `sums` (n,). Cost O(nnz)."""
    _add_to_columns(matrix.indices, matrix.data, sums)


def rows_with(matrix: sparse.csr_array, vector: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the inner product of each row with a vector: (m, n), (n,) → (m,). Cost O(nnz)."""
    sums = np.empty(matrix.shape[0])
    _rows_with(matrix.indptr, matrix.indices, matrix.data, vector.astype(np.float64), sums)
    return sums


def scaled_rows(
    matrix: sparse.csr_array, scales: npt.NDArray[np.float64], dtype: type[np.floating[Any]]
) -> sparse.csr_array:
    """Return each row times its scale; index arrays are shared with `matrix`. Cost O(nnz)."""
    from scipy import sparse

    data = np.empty(len(matrix.data), dtype)
    _scaled_rows(matrix.indptr, matrix.data, scales, data)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


@compiled
def _squares_of_rows(starts: Any, data: Any, sums: Any) -> None:
    for row in range(len(sums)):
        total = 0.0
        for p in range(starts[row], starts[row + 1]):
            total += np.float64(data[p]) * np.float64(data[p])
        sums[row] = total


@compiled
def _add_to_columns(columns: Any, data: Any, sums: Any) -> None:
    for p in range(len(data)):
        sums[columns[p]] += data[p]


@compiled
def _rows_with(starts: Any, columns: Any, data: Any, vector: Any, sums: Any) -> None:
    for row in range(len(sums)):
        total = 0.0
        for p in range(starts[row], starts[row + 1]):
            total += data[p] * vector[columns[p]]
        sums[row] = total


@compiled
def _scaled_rows(starts: Any, data: Any, scales: Any, scaled: Any) -> None:
    for row in range(len(scales)):
        for p in range(starts[row], starts[row + 1]):
            scaled[p] = data[p] * scales[row]
