"""The generalised vector space model [LSK 2002]."""

from __future__ import annotations

from typing import Any

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points


class GVSMKernel(Kernel):
    """k̂(x, z) = Σ_n k(x, n) k(n, z): two points are alike if they resemble the same documents.

    Between the training documents K², over a linear base xᵀ(ΦᵀΦ)z with ΦᵀΦ never formed. A point
    lies at its kernel row.

    base     a kernel estimator; None compares rows by their inner product
    points_  the training points

    Cost of fit none; of placing n points N · n kernel values, dense.

    >>> K = counts @ counts.T
    >>> bool((GVSMKernel().fit(counts).kernel(counts) == K @ K).all())
    True
    """

    def __init__(self, *, base: Kernel | None = None) -> None:
        self.base = base

    def _learn(self, points: Points, y: Any) -> None:
        self.points_ = points

    def _place(self, points: Points) -> Matrix:
        return self._compare(points, self.points_)

    @property
    def _n_features_out(self) -> int:
        return int(self.points_.shape[0])
