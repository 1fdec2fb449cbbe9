"""The Gram-Schmidt factor of a kernel: K ≈ R Rᵀ from T of its rows [LSK 2002, table 1].

This is the pivoted incomplete Cholesky factorisation: each step selects the document with the
largest residual and makes its residual the next feature. Exact after rank(K) steps; computes at
most T rows of K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg
from threadpoolctl import threadpool_limits

from klsa_search.core.array_types import DocIds, Matrix

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

    def place(self, rows: Matrix) -> Matrix:
        """Return the features of new points: (n, T).

        rows  (n, T) kernel of each point with the pivots
        Cost O(n · T²).
        """
        triangle = self.features[self.pivots]
        with threadpool_limits(limits=1, user_api="blas"):
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
    with threadpool_limits(limits=1, user_api="blas"):
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
