"""The generalised vector space model [LSK 2002]."""

from __future__ import annotations

from typing import Any

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points


class GVSMKernel(Kernel):
    """Generalised vector space model: k̂(x, z) = Σ_n k(x, n) k(n, z).

    Two points are similar if they are similar to the same training documents.

    Between training documents this is K². The coordinates of a point are its kernel row.

    base     kernel estimator to build on; None is the inner product of the rows
    points_  training points

    Cost: `fit` nothing; `transform` of n points N · n kernel values, dense. Source: Cristianini,
    Shawe-Taylor & Lodhi, JIIS 2002.

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
