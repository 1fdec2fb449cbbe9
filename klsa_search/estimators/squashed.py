"""Squashing: the latent semantic kernel without its eigenvectors [LSK §4.1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points
from klsa_search.estimators.limits import check_rank, checked_number
from klsa_search.spectrum import decompose_gram

_LEAST = 1e-10  # of λ_1: below it K + γI is not positive definite in float64


class SquashedKernel(Kernel):
    """K̂ = K (K + γλ_1 I)⁻¹ K: eigenvalues far above γλ_1 stay, those far below vanish.

    λ becomes λ²/(λ + γλ_1), the soft form of truncation; at a wide gap in the spectrum both are
    the same. No eigenvectors are computed: a point lies at L⁻¹t, t its kernel row and L the
    Cholesky factor of K + γλ_1 I.

    gamma  γ above 1e-10, in units of the first eigenvalue
    base   a kernel estimator; None compares rows by their inner product

    eigenvalue_  λ_1 of the base kernel
    factor_      L: (N, N) lower triangular
    points_      the training points

    Cost of fit O(N³/3), memory 8 N² bytes; of placing a point N kernel values and O(N²).

    >>> SquashedKernel(0.1).fit_transform(counts).shape
    (4, 4)
    """

    def __init__(self, gamma: float = 0.01, *, base: Kernel | None = None) -> None:
        self.gamma = gamma
        self.base = base

    def _learn(self, points: Points, y: Any) -> None:
        gamma = checked_number("gamma", self.gamma, _LEAST)
        K = self._compare(points, points)
        first = decompose_gram(K, 1).eigenvalues
        check_rank(None, len(first), len(K))
        self.eigenvalue_ = float(first[0])
        K[np.diag_indices_from(K)] += gamma * self.eigenvalue_
        with threadpool_limits(limits=1, user_api="blas"):
            self.factor_ = linalg.cholesky(K, lower=True, overwrite_a=True)
        self.points_ = points

    def _place(self, points: Points) -> Matrix:
        rows = self._compare(points, self.points_)
        with threadpool_limits(limits=1, user_api="blas"):
            return np.asarray(linalg.solve_triangular(self.factor_, rows.T, lower=True).T)

    @property
    def _n_features_out(self) -> int:
        return len(self.factor_)
