"""Gram-Schmidt kernel, plain and generalised [LSK 2002, table 1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_consistent_length, column_or_1d

from klsa_search.core.array_types import Matrix
from klsa_search.errors import ArgumentError
from klsa_search.estimators.base import Kernel, Points, check_rank, checked_count, checked_number
from klsa_search.kernels.gram_schmidt import gram_schmidt


class GramSchmidtKernel(Kernel):
    """Gram-Schmidt kernel: the base kernel on the span of T selected training documents.

    It approximates the latent semantic kernel without eigenvectors: each step selects the document
    that the previous ones describe least.

    n_components  T, from 1 to the rank of the base kernel; None for all, which is the base kernel
    bias          factor above 0 for the residuals of documents of one class, so that they are
                  selected first: a number for the second of two classes in sorted order, or a
                  mapping from label to number, 1 for others. With 1, labels are not used
    base          kernel estimator to build on; None is the inner product of the rows

    factor_   R of K ≈ RRᵀ, with the residuals
    pivots_   (T,) indices of the selected training rows, in order
    points_   selected training points

    Cost: `fit` O(N · T²) and T rows of the kernel, memory O(N · T); `transform` T kernel values and
    O(T²) per point. Source: Cristianini, Shawe-Taylor & Lodhi, JIIS 2002, table 1.

    >>> GramSchmidtKernel(2).fit(counts).pivots_.tolist()
    [0, 3]
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        bias: float | Mapping[Any, float] = 1.0,
        base: Kernel | None = None,
    ) -> None:
        self.n_components = n_components
        self.bias = bias
        self.base = base

    def _learn(self, points: Points, y: Any) -> None:
        N = points.shape[0]
        side = min(points.shape) if self._linear else N
        wanted = checked_count(
            "n_components", self.n_components, side, "what this X can have at most"
        )
        self.factor_ = gram_schmidt(
            self._rows(points), self._lengths(points), wanted, self._biases(N, y)
        )
        self.pivots_ = self.factor_.pivots
        check_rank(self.n_components, len(self.pivots_), N)
        self.points_ = points[self.pivots_]

    def _rows(self, points: Points) -> Callable[[int], Matrix]:
        """Return the function d → row d of the base kernel: (N,)."""
        if not self._linear or not sparse.issparse(points):
            return lambda d: self._compare(points[[d]], points)[0]
        # Transposed once, so a row costs only the entries of its features.
        by_feature = sparse.csr_array(points.T)
        return lambda d: np.asarray((points[[d]] @ by_feature).toarray())[0]

    def _biases(self, N: int, y: Any) -> npt.NDArray[np.float64] | None:
        if not isinstance(self.bias, Mapping):
            bias = checked_number("bias", self.bias, 0, open_below=True)
            if bias == 1:
                return None
        if y is None:
            raise ArgumentError(
                f"y is None, but bias = {self.bias!r} needs labels; give y to fit, or use bias = 1",
                field="y",
            )
        y = column_or_1d(y)
        check_consistent_length(np.empty(N), y)
        classes, numbers = np.unique(y, return_inverse=True)
        if isinstance(self.bias, Mapping):
            biases = self.bias
        elif len(classes) == 2:
            biases = {classes[1]: bias}
        else:
            raise ArgumentError(
                f"bias = {bias:g} is for 2 classes, and y has {len(classes)}; give "
                "a mapping from label to bias",
                field="bias",
            )
        weights = [
            checked_number(f"bias of {label!r}", biases.get(label, 1.0), 0, open_below=True)
            for label in classes.tolist()
        ]
        return np.array(weights)[numbers]

    def _place(self, points: Points) -> Matrix:
        return self.factor_.place(self._compare(points, self.points_))

    @property
    def _n_features_out(self) -> int:
        return len(self.pivots_)
