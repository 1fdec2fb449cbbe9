"""Sparse matrices are read as written, over mapped files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from klsa_search.storage.arrays import open_sparse, sparse_arrays, write_arrays


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (3, 0), (20, 30)])
def test_a_matrix_comes_back_without_being_read(tmp_path, shape):
    matrix = sparse.random_array(shape, density=0.2, format="csr", dtype=np.float32, rng=0)
    write_arrays(tmp_path, sparse_arrays("some", matrix))
    opened = open_sparse(tmp_path, "some", shape[1])
    assert opened.shape == shape
    assert np.array_equal(opened.toarray(), matrix.toarray())
    assert opened.indices.dtype == np.int32
    assert not opened.data.flags.owndata
    assert not opened.indices.flags.owndata
