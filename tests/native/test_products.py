"""Products of sparse features: sums in order, the same bits on every instruction set."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from klsa_search._native import Features


def world(precision, seed=1):
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((30, 50), density=0.2, format="csr", rng=rng)
    matrix.sort_indices()
    columns, weights = matrix.indices.astype(np.int32), matrix.data.astype(precision)
    starts = matrix.indptr.astype(np.int64)
    return columns, weights, starts


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("of_blocks", [np.float32, np.float64])
def test_products_are_sums_in_order(instruction_set, precision, of_blocks):
    columns, weights, starts = world(precision)
    features = Features(columns, weights, 50)
    X = np.random.default_rng(2).standard_normal((30, 19)).astype(of_blocks)
    T = np.zeros((50, 19), of_blocks)
    features.add_to_features(starts[:-1], starts[1:], X, T)
    Y = np.ones_like(X)
    features.add_to_documents(starts[:-1], starts[1:], T, Y)

    sums, out = np.zeros_like(T), np.ones_like(X)
    for d, (first, last) in enumerate(itertools.pairwise(starts)):
        for p in range(first, last):
            sums[columns[p]] += weights[p] * X[d]
    for d, (first, last) in enumerate(itertools.pairwise(starts)):
        for p in range(first, last):
            out[d] += weights[p] * sums[columns[p]]
    assert np.array_equal(T, sums)
    assert np.array_equal(Y, out)


def test_edge_is_first_entry_from_a_column_on():
    columns, weights, starts = world(np.float32)
    out = np.empty(30, np.int64)
    Features(columns, weights, 50).find_edge(starts[:-1], starts[1:], 20, out)
    for d in range(30):
        row = columns[starts[d] : starts[d + 1]]
        assert out[d] == starts[d] + np.count_nonzero(row < 20)


def test_invalid_arrays_are_refused():
    columns, weights, starts = world(np.float32)
    with pytest.raises(ValueError, match="columns: a value is outside of 0 to 9"):
        Features(columns, weights, 10)
    with pytest.raises(ValueError, match="lengths differ"):
        Features(columns[1:], weights, 50)
    with pytest.raises(TypeError):
        Features(columns.astype(np.int64), weights, 50)
    features = Features(columns, weights, 50)
    X, T = np.zeros((30, 4), np.float32), np.zeros((50, 4), np.float32)
    with pytest.raises(ValueError, match="no valid range of entries"):
        features.add_to_features(starts[:-1] + len(columns), starts[1:], X, T)
    with pytest.raises(ValueError, match="number of rows"):
        features.add_to_documents(starts[:-1], starts[1:], T[1:], X)
    with pytest.raises(TypeError):
        features.add_to_documents(starts[:-1], starts[1:], T.T, X)
