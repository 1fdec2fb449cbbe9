"""Gram-Schmidt kernel, plain and generalised [LSK 2002, table 1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from sklearn.utils.validation import check_consistent_length, column_or_1d

from klsa_search.core.array_types import DocIds, Matrix
from klsa_search.core.parallel import one_blas_thread
from klsa_search.errors import ArgumentError
from klsa_search.estimators.base import Kernel, Points, check_rank, checked_count, checked_number


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

    def _embed(self, points: Points) -> Matrix:
        return self.factor_.embed(self._compare(points, self.points_))


EXHAUSTED = 1e-10  # residual that is rounding noise, relative to the largest K(d, d)


@dataclass(frozen=True)
class GramSchmidt:
    """K ≈ R Rᵀ of N documents.

    features   R: (N, T) float64; the rows of the pivots, in their order, are lower triangular
    pivots     (T,) the documents selected, in order
    residuals  (N,) K(d, d) - ‖R_d‖²
    """

    features: Matrix
    pivots: DocIds
    residuals: npt.NDArray[np.float64]

    def embed(self, rows: Matrix) -> Matrix:
        """Return the features of new points: (n, T).

        rows  (n, T) kernel of each point with the pivots
        Cost O(n · T²).
        """
        triangle = self.features[self.pivots]
        with one_blas_thread():
            return np.asarray(linalg.solve_triangular(triangle, rows.T, lower=True).T)


def gram_schmidt(
    row: Callable[[int], npt.NDArray[np.floating]],
    diagonal: npt.NDArray[np.floating],
    dimensions: int,
    bias: npt.NDArray[np.floating] | None = None,
) -> GramSchmidt:
    """Return the factor with the features of `dimensions` documents [LSK 2002, table 1].

    row         d → (N,), row d of K
    diagonal    (N,) K(d, d)
    dimensions  T; limited by the rank of K
    bias        (N,) above 0, multiplies residuals when selecting pivots, so that documents with
                more weight are selected first (the generalised form); ties go to the first document

    Cost O(N · T²) and T rows of K; memory 8 N T bytes.
    """
    residuals = np.array(diagonal, dtype=np.float64)
    least = EXHAUSTED * residuals.max(initial=0.0)
    weights = np.ones_like(residuals) if bias is None else np.asarray(bias, dtype=np.float64)
    # One row per feature, so that earlier features are contiguous.
    made = np.empty((min(dimensions, len(residuals)), len(residuals)))
    pivots: list[int] = []
    with one_blas_thread():
        for step, feature in enumerate(made):
            pivot = int(np.argmax(np.where(residuals > least, weights * residuals, -1.0)))
            if residuals.size == 0 or residuals[pivot] <= least:
                break
            earlier = made[:step]
            np.subtract(row(pivot), earlier[:, pivot] @ earlier, out=feature)
            feature /= np.sqrt(residuals[pivot])
            feature[pivots] = 0  # their residuals are only rounding
            residuals -= feature**2
            residuals[pivot] = 0
            pivots.append(pivot)
    if len(pivots) < len(made):
        made = made[: len(pivots)].copy()  # frees the unused rows
    return GramSchmidt(made.T, np.array(pivots, dtype=np.int64), np.maximum(residuals, 0))
