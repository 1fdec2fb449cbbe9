"""Gaussian kernel, in the space of any other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points
from klsa_search.estimators.limits import checked_number
from klsa_search.estimators.pointwise import PointwiseKernel


class GaussianKernel(PointwiseKernel):
    """Gaussian kernel: k̂ = exp(-‖x - z‖² / sigma²), with distances in the space of the base kernel.

    sigma  width, above 0: points much nearer than this are similar
    base   kernel estimator to build on; None is the inner product of the rows

    Cost: `fit` nothing but that of the base; `kernel` that of the base.

    >>> GaussianKernel(2.0).fit(counts).diagonal(counts)
    array([1., 1., 1., 1.])
    """

    def __init__(self, sigma: float = 1.0, *, base: Kernel | None = None) -> None:
        self.sigma = sigma
        self.base = base

    def _check(self) -> None:
        checked_number("sigma", self.sigma, 0, open_below=True)

    def _of(self, left: Points, right: Points) -> Matrix:
        squares = self._lengths(left)[:, None] + self._lengths(right)
        distances = np.maximum(squares - 2 * self._compare(left, right), 0)
        if left is right:
            np.fill_diagonal(distances, 0)  # rounding would leave a point apart from itself
        return np.asarray(np.exp(-distances / self.sigma**2))

    def _of_itself(self, points: Points) -> npt.NDArray[np.float64]:
        return np.ones(points.shape[0])
