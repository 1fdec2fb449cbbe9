"""Base class of the kernel estimators, and checks of their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from klsa_search.core.array_types import Matrix
from klsa_search.core.parallel import one_blas_thread
from klsa_search.errors import ArgumentError


def checked_number(
    name: str,
    value: Any,
    minimum: float,
    maximum: float = float("inf"),
    *,
    open_below: bool = False,
    open_above: bool = False,
) -> float:
    """Return `value` as a float; ArgumentError if it is not a number in the interval."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = number > minimum if open_below else number >= minimum
        below = number < maximum if open_above else number <= maximum
        if above and below:
            return number
    left, right = "(" if open_below else "[", ")" if open_above or maximum == float("inf") else "]"
    raise ArgumentError(
        f"{name} = {value!r} is outside {left}{minimum:g}, {maximum:g}{right}; choose a number "
        "within",
        field=name,
    )


def check_rank(n_components: int | None, rank: int, N: int) -> None:
    """Raise ArgumentError if the rank of the kernel of N rows is 0 or below `n_components`."""
    if rank == 0:
        raise ArgumentError(
            f"X: the kernel of its {N} rows is all 0; remove empty documents, or "
            "check the features",
            field="X",
        )
    if n_components is not None and rank < n_components:
        raise ArgumentError(
            f"n_components = {n_components} is above {rank}, the rank of the "
            f"kernel of these {N} rows; choose at most that, or None for all",
            field="n_components",
        )


def checked_count(name: str, value: Any, maximum: int, of_what: str) -> int:
    """Return `value` as an int from 1 to `maximum`, which None stands for; or ArgumentError."""
    if value is None:
        return maximum
    if isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= maximum:
        return int(value)
    raise ArgumentError(
        f"{name} = {value!r} is outside 1..{maximum}, {of_what}; choose a whole "
        "number within, or None for all",
        field=name,
    )


Points: TypeAlias = Matrix | sparse.csr_array
"""(n, F) points as rows, dense or sparse."""


# scikit-learn is untyped, so mypy takes its classes for Any.
class Kernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of all kernels; each builds on another one, `base`.

    `base=None` is the inner product of the rows of X.

    This class checks the input, applies the base, and computes Gram matrices. A subclass defines
    what is learned from the training points and how points are transformed. New points are
    transformed without fitting again.

    base_           fitted base, or None
    n_features_in_  number of columns of X

    >>> [base.__name__ for base in (LatentSemanticKernel, GVSMKernel) if issubclass(base, Kernel)]
    ['LatentSemanticKernel', 'GVSMKernel']
    """

    base: Kernel | None = None
    has_coordinates: ClassVar[bool] = True
    """Whether `kernel` is the inner product of the rows of `transform`."""

    base_: Kernel | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the kernel to training points.

        X  (N, F) dense or sparse, finite
        y  (N,) labels, for kernels that use them

        ArgumentError, which is a ValueError, names the argument that is outside its limits.
        """
        X = self._checked(X, reset=True)
        self.base_ = None if self.base is None else clone(self.base).fit(X, y)
        points = self._points(X)
        self._learn(points, y)
        self._n_features_out = int(self._embed(points[:1]).shape[1])
        return self

    def transform(self, X: Any) -> Points:
        """Return coordinates (n, T) of points (n, F); their inner products are the kernel."""
        check_is_fitted(self)
        return self._embed(self._points(self._checked(X)))

    def kernel(self, X: Any, Y: Any = None) -> Matrix:
        """Return the Gram matrix (n, m) of points (n, F) and (m, F); Y defaults to X.

        For X with itself it is symmetric and positive semi-definite, as
        `SVC(kernel="precomputed")` needs.
        """
        points = self.transform(X)
        return inner_products(points, points if Y is None else self.transform(Y))

    def diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) of each point: (n,)."""
        return squared_lengths(self.transform(X))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _learn(self, points: Points, y: Any) -> None:
        """Learn from training points of the base; ArgumentError."""

    @abstractmethod
    def _embed(self, points: Points) -> Points:
        """Return the coordinates of points of the base: (n, T)."""

    def _checked(self, X: Any, *, reset: bool = False) -> Points:
        checked = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        return sparse.csr_array(checked) if sparse.issparse(checked) else np.asarray(checked)

    @property
    def _linear(self) -> bool:
        """Return whether the base kernel is the inner product of `_points`."""
        return self.base_ is None or self.base_.has_coordinates

    def _points(self, X: Points) -> Points:
        """Return the coordinates of X in the base if it has coordinates, else X."""
        return self.base_.transform(X) if self.base_ is not None and self._linear else X

    def _compare(self, left: Points, right: Points) -> Matrix:
        """Return the base kernel of points: (n, m)."""
        if self.base_ is None or self.base_.has_coordinates:
            return inner_products(left, right)
        return self.base_.kernel(left, None if right is left else right)

    def _lengths(self, points: Points) -> npt.NDArray[np.float64]:
        """Return the base kernel of each point with itself: (n,)."""
        if self.base_ is None or self.base_.has_coordinates:
            return squared_lengths(points)
        return self.base_.diagonal(points)


def inner_products(left: Points, right: Points) -> Matrix:
    """Return inner products of rows: (n, F), (m, F) → (n, m) dense; on one thread, repeatable."""
    with one_blas_thread():
        product: Any = left @ right.T
    return np.asarray(product.toarray() if sparse.issparse(product) else product)


def squared_lengths(points: Points) -> npt.NDArray[np.float64]:
    """Return the squared length of each row: (n,)."""
    if sparse.issparse(points):
        return np.asarray((points * points).sum(axis=1)).ravel()
    return np.asarray(np.einsum("nf,nf->n", points, points))
