"""Sums over the entries of a sparse matrix, in float64, without copying it.

SciPy converts a float32 matrix to float64 first, which takes too much memory at a million
documents. Sums are computed in the order of the entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from klsa_search import _native

if TYPE_CHECKING:
    from scipy import sparse


def squares_of_rows(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return Σ_f x² of each row: (m,). Cost O(nnz)."""
    sums = np.empty(matrix.shape[0])
    _native.squares_of_rows(_starts(matrix), _values(matrix), sums)
    return sums


def sums_of_columns(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return Σ_d x of each column: (n,). Cost O(nnz)."""
    sums = np.zeros(matrix.shape[1])
    _native.add_to_columns(_columns(matrix), _values(matrix), sums)
    return sums


def rows_with(matrix: sparse.csr_array, vector: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the inner product of each row with a vector: (m, n), (n,) → (m,). Cost O(nnz)."""
    sums = np.empty(matrix.shape[0])
    factors = vector.astype(np.float64)
    _native.rows_with(_starts(matrix), _columns(matrix), _values(matrix), factors, sums)
    return sums


def scaled_rows(
    matrix: sparse.csr_array, scales: npt.NDArray[np.float64], dtype: type[np.floating[Any]]
) -> sparse.csr_array:
    """Return each row times its scale; index arrays are shared with `matrix`. Cost O(nnz)."""
    from scipy import sparse

    data = np.empty(len(matrix.data), dtype)
    _native.scale_rows(_starts(matrix), _values(matrix), scales.astype(np.float64), data)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _starts(matrix: sparse.csr_array) -> npt.NDArray[np.int64]:
    return np.asarray(matrix.indptr, np.int64)


def _columns(matrix: sparse.csr_array) -> npt.NDArray[np.int32]:
    return np.asarray(matrix.indices, np.int32)


def _values(matrix: sparse.csr_array) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """Return the entries; those that are not floating point as float64, which all sums are in."""
    data: npt.NDArray[Any] = matrix.data
    return data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)
