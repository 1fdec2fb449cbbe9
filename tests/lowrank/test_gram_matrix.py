"""The spectrum of a Gram matrix."""

import numpy as np
import pytest

from klsa_search.lowrank.eigensolver import decompose_gram


# The last is large enough for the iterative solver.
@pytest.mark.parametrize(("N", "rank", "wanted"), [(40, 60, 40), (40, 10, 40), (510, 30, 12)])
def test_eigenpairs_solve_the_equation(N, rank, wanted):
    points = np.random.default_rng(0).standard_normal((N, rank)) * np.arange(rank, 0, -1)
    K = points @ points.T
    spectrum = decompose_gram(K, wanted)
    U, values = spectrum.eigenvectors, spectrum.eigenvalues
    k = min(wanted, rank)
    exact = np.linalg.eigvalsh(points.T @ points)[::-1]  # with those of K beyond 0
    assert values == pytest.approx(exact[:k])
    assert pytest.approx(np.eye(k), abs=1e-9) == U.T @ U
    assert pytest.approx(U * values, abs=1e-8 * values[0]) == K @ U
    assert spectrum.residual < 1e-9
    following = exact[k] if k < min(N, rank) else 0.0
    assert spectrum.gap == pytest.approx((values[-1] - following) / values[0], abs=1e-9)
    assert spectrum.trace == pytest.approx(np.trace(K))
    assert (U.max(axis=0) >= -U.min(axis=0)).all()
    assert np.array_equal(U, decompose_gram(K, wanted).eigenvectors)


@pytest.mark.parametrize(("N", "wanted"), [(0, 3), (3, 3), (3, 0)])
def test_nothing_to_decompose_is_an_empty_spectrum(N, wanted):
    spectrum = decompose_gram(np.zeros((N, N)), wanted)
    assert spectrum.eigenvectors.shape == (N, 0)
    assert spectrum.eigenvalues.shape == (0,)
