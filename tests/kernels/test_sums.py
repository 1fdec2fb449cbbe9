"""Sums over sparse matrices: worked examples, in both precisions."""

import numpy as np
import pytest
from scipy import sparse

from klsa_search.kernels import document_kernel
from klsa_search.kernels.document_kernel import (
    DocumentKernel,
    rows_with,
    scaled_rows,
    squares_of_rows,
    sums_of_columns,
)

MATRIX = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 4]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_by_hand(dtype):
    matrix = sparse.csr_array(MATRIX.astype(dtype))
    assert squares_of_rows(matrix).tolist() == [5, 0, 25]
    assert sums_of_columns(matrix).tolist() == [1, 3, 6]
    assert rows_with(matrix, np.array([1.0, 10, 100])).tolist() == [201, 0, 430]
    scaled = scaled_rows(matrix, np.array([2.0, 5, 0.5]), dtype)
    assert scaled.dtype == dtype
    assert scaled.toarray().tolist() == [[2, 0, 4], [0, 0, 0], [0, 1.5, 2]]
    assert np.shares_memory(scaled.indices, matrix.indices)


def test_sums_of_float32_are_not_rounded_to_it():
    many = sparse.csr_array(np.full((100_000, 1), 0.1, np.float32))
    assert sums_of_columns(many)[0] == pytest.approx(100_000 * float(np.float32(0.1)), rel=1e-12)


def test_nothing_is_a_matrix_too():
    empty = sparse.csr_array((0, 4))
    assert squares_of_rows(empty).shape == (0,)
    assert sums_of_columns(empty).tolist() == [0, 0, 0, 0]


def test_many_documents_have_a_kernel_in_single_precision(monkeypatch):
    Phi = sparse.csr_array(np.random.default_rng(0).random((60, 20)) * MATRIX.max())
    exact = DocumentKernel.of(Phi, centred=True, normalised=True)
    monkeypatch.setattr(document_kernel, "EXACT", 59)
    single = DocumentKernel.of(Phi, centred=True, normalised=True)
    assert (exact.features.dtype, single.features.dtype) == (np.float64, np.float32)
    assert np.array_equal(single.scales, exact.scales)
    assert single.explicit() == pytest.approx(exact.explicit(), abs=1e-5 * exact.diagonal.max())
    assert single.diagonal == pytest.approx(exact.diagonal, rel=1e-5)
