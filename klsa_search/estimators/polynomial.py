"""Polynomial kernel: conjunctions of terms, or of concepts [LSK §3.1]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points
from klsa_search.estimators.limits import checked_count, checked_number
from klsa_search.estimators.pointwise import PointwiseKernel


class PolynomialKernel(PointwiseKernel):
    """Polynomial kernel: k̂ = (k + offset)^degree, whose features are conjunctions of terms.

    degree  integer from 1 to 20; with degree 1 and offset 0 it is the base kernel
    offset  at least 0: weight of single terms relative to conjunctions
    base    kernel estimator to build on; None is the inner product of the rows. With
            LatentSemanticKernel the features are conjunctions of concepts;
            LatentSemanticKernel(base=PolynomialKernel()) has concepts of conjunctions

    Cost: `fit` nothing but that of the base; `kernel` that of the base. Source: Cristianini,
    Shawe-Taylor & Lodhi, JIIS 2002, section 3.1.

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
