"""The Gram-Schmidt factor of a kernel: K ≈ R Rᵀ from T of its rows [LSK 2002, table 1].

The same as a pivoted, incomplete Cholesky factorisation: each step takes the document whose part
outside the features so far is longest, and makes that part the next feature. Exact after as many
steps as K has rank, and never more than T rows of K are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg
from threadpoolctl import threadpool_limits

from klsa_search.core.array_types import Matrix, Positions

EXHAUSTED = 1e-10  # of the largest K(d, d): a residual below it is rounding noise


@dataclass(frozen=True)
class GramSchmidt:
    """K ≈ R Rᵀ of N documents.

    features   R: (N, T) float64; rows of the pivots are lower triangular, in the order picked
    pivots     (T,) the documents picked
    residuals  (N,) K(d, d) - ‖R_d‖², what of each document is outside the features
    """

    features: Matrix
    pivots: Positions
    residuals: npt.NDArray[np.float64]

    def place(self, rows: Matrix) -> Matrix:
        """Features of new points: (n, T), by the recurrence that made those of the documents.

        rows  (n, T) kernel of each point with the pivots. Cost O(n · T²).
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
    """Pick `dimensions` documents and make their features [LSK 2002, table 1].

    row         d → (N,), row d of K
    diagonal    (N,) K(d, d)
    dimensions  T; fewer where nothing is left outside the features, which is the rank of K
    bias        (N,) above 0: residuals are multiplied by it before the pick, and only there, so
                that documents of more weight are described first (the generalised form); ties
                go to the first document

    Cost O(N · T²) and T rows of K; memory 8 N T bytes.
    """
    residuals = np.array(diagonal, dtype=np.float64)
    least = EXHAUSTED * residuals.max(initial=0.0)
    weights = np.ones_like(residuals) if bias is None else np.asarray(bias, dtype=np.float64)
    # Feature by feature, so that the ones made so far lie together in memory.
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
            feature[pivots] = 0  # they are described in full; what is left there is rounding
            residuals -= feature**2
            residuals[pivot] = 0
            pivots.append(pivot)
    if len(pivots) < len(made):
        made = made[: len(pivots)].copy()  # lets go of the room that was not needed
    return GramSchmidt(made.T, np.array(pivots, dtype=np.int64), np.maximum(residuals, 0))
