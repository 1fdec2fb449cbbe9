"""Kernels that are functions of the values of another kernel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from klsa_search.core.array_types import Matrix
from klsa_search.estimators.base import Kernel, Points, checked_count, checked_number


class PointwiseKernel(Kernel):
    """Base class of the polynomial and Gaussian kernels, which have no explicit coordinates.

    `transform` returns kernel rows with the training points, (n, N), as input for
    `SVC(kernel="precomputed")`.

    points_  the training points
    """

    has_coordinates: ClassVar[bool] = False

    def kernel(self, X: Any, Y: Any = None) -> Matrix:
        """Return the Gram matrix: (n, F) and (m, F) → (n, m); Y defaults to X."""
        check_is_fitted(self)
        left = self._points(self._checked(X))
        return self._of(left, left if Y is None else self._points(self._checked(Y)))

    def diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) of each point: (n,)."""
        check_is_fitted(self)
        return self._of_itself(self._points(self._checked(X)))

    def _learn(self, points: Points, y: Any) -> None:
        self._check()
        self.points_ = points

    def _embed(self, points: Points) -> Matrix:
        return self._of(points, self.points_)

    @abstractmethod
    def _check(self) -> None:
        """Raise ArgumentError for invalid parameters."""

    @abstractmethod
    def _of(self, left: Points, right: Points) -> Matrix:
        """Return the kernel of points: (n, m)."""

    @abstractmethod
    def _of_itself(self, points: Points) -> npt.NDArray[np.float64]:
        """Return the kernel of each point with itself: (n,)."""


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
            np.fill_diagonal(distances, 0)  # remove rounding
        return np.asarray(np.exp(-distances / self.sigma**2))

    def _of_itself(self, points: Points) -> npt.NDArray[np.float64]:
        return np.ones(points.shape[0])


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
