"""Φ → the Gram operator K = ΦΦᵀ: implicit for work, explicit as the reference it is tested by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from klsa_search.arrays import Matrix


def explicit_gram(Phi: sparse.csr_array) -> Matrix:
    """K: (N, N) dense. Cost O(N · nnz); memory 8 N² bytes."""
    return np.asarray((Phi @ Phi.T).toarray(), dtype=np.float64)


def implicit_gram(
    Phi: sparse.csr_array, *, applied: Callable[[], None] | None = None
) -> LinearOperator:
    """K as a linear operator: x → Φ(Φᵀx). Cost O(nnz) a product; K is never built.

    `applied` is called once a product: the only sign of progress an iterative solver gives.
    """
    transposed = Phi.T.tocsr()

    def product(x: Matrix) -> Matrix:
        if applied is not None:
            applied()
        return np.asarray(Phi @ (transposed @ x))

    N = Phi.shape[0]
    return LinearOperator((N, N), matvec=product, matmat=product, dtype=np.float64)
