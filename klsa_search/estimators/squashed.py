"""Squashing: the latent semantic kernel without its eigenvectors [LSK §4.1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points
from klsa_search.estimators.limits import check_rank, checked_number
from klsa_search.spectrum.gram import decompose_gram

_LEAST = 1e-10  # of λ_1: below it K + γI is not positive definite in float64


class SquashedKernel(Kernel):
    """Squashed kernel: K̂ = K (K + γλ_1 I)⁻¹ K, a soft form of the latent semantic kernel.

    An eigenvalue λ becomes λ²/(λ + γλ_1): those far above γλ_1 stay, those far below vanish. No
    eigenvectors are computed: the coordinates of a point are L⁻¹t, with t its kernel row and L the
    Cholesky factor of K + γλ_1 I.

    gamma  γ above 1e-10, in units of the first eigenvalue
    base   kernel estimator to build on; None is the inner product of the rows

    eigenvalue_  λ_1 of the base kernel
    factor_      L: (N, N) lower triangular
    points_      training points

    Cost: `fit` O(N³/3), memory 8 N² bytes; `transform` N kernel values and O(N²) per point. Source:
    Cristianini, Shawe-Taylor & Lodhi, JIIS 2002, section 4.1.

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
