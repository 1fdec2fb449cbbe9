"""The Gram-Schmidt factorisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.estimators.gram_schmidt import gram_schmidt


def random_kernel(N, rank, seed=0):
    points = np.random.default_rng(seed).standard_normal((N, rank))
    return points @ points.T


@given(N=st.integers(1, 12), rank=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_after_as_many_steps_as_the_rank_nothing_is_left(N, rank, seed):
    K = random_kernel(N, rank, seed)
    factor = gram_schmidt(lambda d: K[d], K.diagonal(), N)
    assert len(factor.pivots) == min(N, rank)
    assert factor.features @ factor.features.T == pytest.approx(K, abs=1e-6 * K.max())
    assert factor.residuals.max() <= 1e-6 * K.max()


def test_each_step_takes_the_longest_residual_and_one_row():
    K, asked = random_kernel(30, 20), []

    def row(d):
        asked.append(d)
        return K[d]

    factor = gram_schmidt(row, K.diagonal(), 7)
    assert asked == factor.pivots.tolist()
    left = K
    for pivot in factor.pivots:
        assert left.diagonal().argmax() == pivot
        left = left - np.outer(left[pivot], left[pivot]) / left[pivot, pivot]
    assert factor.residuals == pytest.approx(left.diagonal(), abs=1e-9)
    triangle = factor.features[factor.pivots]
    assert np.array_equal(triangle, np.tril(triangle))


def test_equal_residuals_are_taken_in_order():
    K = np.eye(4)
    assert gram_schmidt(lambda d: K[d], K.diagonal(), 3).pivots.tolist() == [0, 1, 2]


def test_placing_the_documents_again_gives_their_features():
    K = random_kernel(30, 20)
    factor = gram_schmidt(lambda d: K[d], K.diagonal(), 9)
    assert factor.embed(K[:, factor.pivots]) == pytest.approx(factor.features, abs=1e-9)


def test_a_kernel_that_is_zero_has_no_features():
    for N in (0, 3):
        factor = gram_schmidt(lambda d: np.zeros(3), np.zeros(N), 2)
        assert factor.features.shape == (N, 0)
        assert factor.pivots.tolist() == []
