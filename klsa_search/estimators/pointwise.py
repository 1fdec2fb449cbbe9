"""Kernels that are functions of another kernel's values, entry by entry."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from klsa_search.arrays import Matrix
from klsa_search.estimators.kernel import Kernel, Points


class PointwiseKernel(Kernel):
    """Base of the polynomial and Gaussian kernels, whose own coordinates are never formed.

    `transform` gives kernel rows with the training points, (n, N): a pipeline that ends in one of
    them feeds `SVC(kernel="precomputed")`.

    points_  the training points
    """

    has_coordinates: ClassVar[bool] = False

    def kernel(self, X: Any, Y: Any = None) -> Matrix:
        """Gram matrix: (n, F) and (m, F) → (n, m); of X with itself where Y is None."""
        check_is_fitted(self)
        left = self._points(self._checked(X))
        return self._of(left, left if Y is None else self._points(self._checked(Y)))

    def diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        """k(x, x) of each point: (n,)."""
        check_is_fitted(self)
        return self._of_itself(self._points(self._checked(X)))

    def _learn(self, points: Points, y: Any) -> None:
        self._check()
        self.points_ = points

    def _place(self, points: Points) -> Matrix:
        return self._of(points, self.points_)

    @property
    def _n_features_out(self) -> int:
        return int(self.points_.shape[0])

    @abstractmethod
    def _check(self) -> None:
        """Check the parameters; ArgumentError."""

    @abstractmethod
    def _of(self, left: Points, right: Points) -> Matrix:
        """Kernel of points: (n, m)."""

    @abstractmethod
    def _of_itself(self, points: Points) -> npt.NDArray[np.float64]:
        """Kernel of each point with itself: (n,)."""
