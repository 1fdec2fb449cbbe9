"""Semantic smoothing: terms matched through concepts given from outside [LSK 2002]."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_array

from klsa_search.errors import ArgumentError
from klsa_search.estimators.kernel import Kernel, Points


class SemanticSmoothingKernel(Kernel):
    """Semantic smoothing kernel: k(x, z) = (Rx)ᵀ(Rz), which matches terms through given concepts.

    concepts  R: (C, V) dense or sparse, the weight of each of V terms in each of C concepts; for
              example a matrix of terms (V, V) as `TermNetwork.proximities` returns. None is the
              inner product

    concepts_  R, checked

    Cost: `fit` nothing; `transform` one product with R. Source: Cristianini, Shawe-Taylor & Lodhi,
    JIIS 2002.

    >>> concepts = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> SemanticSmoothingKernel(concepts).fit_transform(counts)
    array([[3., 0.],
           [3., 0.],
           [0., 2.],
           [1., 2.]])
    """

    def __init__(self, concepts: npt.ArrayLike | sparse.sparray | None = None) -> None:
        self.concepts = concepts

    def _learn(self, points: Points, y: Any) -> None:
        V = points.shape[1]
        if self.concepts is None:
            self.concepts_ = sparse.eye_array(V, format="csr")
            return
        given = check_array(
            self.concepts, accept_sparse="csr", dtype=np.float64, input_name="concepts"
        )
        if given.shape[1] != V:
            raise ArgumentError(
                f"concepts has {given.shape[1]} columns, and X {V}; give one "
                "column a term, in the order of X",
                field="concepts",
            )
        self.concepts_ = sparse.csr_array(given) if sparse.issparse(given) else given

    def _place(self, points: Points) -> Points:
        placed = points @ self.concepts_.T
        return sparse.csr_array(placed) if sparse.issparse(placed) else np.asarray(placed)

    @property
    def _n_features_out(self) -> int:
        return int(self.concepts_.shape[0])
