"""Polynomial kernel: conjunctions of terms, or of concepts [LSK §3.1]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points
from klsa_search.estimators.limits import checked_count, checked_number
from klsa_search.estimators.pointwise import PointwiseKernel


class PolynomialKernel(PointwiseKernel):
    """k̂ = (k + offset)^degree.

    degree  a whole number of 1 to 20; with offset = 0, 1 leaves the base kernel as it is
    offset  0 or more: how much single terms count beside conjunctions of them
    base    a kernel estimator: LatentSemanticKernel makes conjunctions of concepts, while
            LatentSemanticKernel(base=PolynomialKernel()) makes concepts of conjunctions; None
            compares rows by their inner product

    >>> PolynomialKernel(2).fit(counts).kernel(counts[:1])
    array([[36.]])
    """

    def __init__(self, degree: int = 2, *, offset: float = 1.0, base: Kernel | None = None) -> None:
        self.degree = degree
        self.offset = offset
        self.base = base

    def _check(self) -> None:
        checked_count("degree", self.degree, 20, "beyond which values overflow")
        checked_number("offset", self.offset, 0)

    def _of(self, left: Points, right: Points) -> Matrix:
        return np.asarray((self._compare(left, right) + self.offset) ** self.degree)

    def _of_itself(self, points: Points) -> npt.NDArray[np.float64]:
        return np.asarray((self._lengths(points) + self.offset) ** self.degree)
