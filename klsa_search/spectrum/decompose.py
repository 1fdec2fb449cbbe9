"""K → its top eigenvectors and eigenvalues, by an iterative solver on the implicit operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Basis, Eigenvalues, Matrix
from klsa_search.errors import SettingsError
from klsa_search.kernel import DocumentKernel

RANK_TOLERANCE = 1e-10  # eigenvalues below this share of the first are rounding noise


@dataclass(frozen=True)
class Spectrum:
    """The top of the spectrum of K = UΛUᵀ.

    eigenvectors  U: (N, k) float64, orthonormal columns, strongest first
    eigenvalues   Λ: (k,) float64, largest first, all positive
    residual      max ‖K u_i - λ_i u_i‖ / λ_1
    gap           (λ_k - λ_{k+1}) / λ_1: near 0, the k-th direction is not well determined
    trace         Σ of all N eigenvalues
    """

    eigenvectors: Basis
    eigenvalues: Eigenvalues
    residual: float
    gap: float
    trace: float


def decompose(
    kernel: DocumentKernel,
    dimensions: int,
    *,
    seed: int = 0,
    applied: Callable[[], None] | None = None,
) -> Spectrum:
    """Compute the `dimensions` strongest eigenpairs of K = A Aᵀ [KLSA §3.1].

    dimensions  k; capped at N - 1 (at least 1) and at the rank of K
    seed        of the solver's start vector; same input and seed, same bits: the linear algebra
                runs on one thread, and each eigenvector's largest entry is made positive
    applied     called once a product with K

    Implicitly restarted Lanczos on the smaller of A Aᵀ and Aᵀ A, O(nnz · k + N · k²); where k is
    more than half of that side, a dense solver serves better. SettingsError where Lanczos does
    not converge.
    """
    N, F = kernel.features.shape
    trace = float(kernel.diagonal.sum())
    if trace == 0:  # no document, or none with a weighted term: K is 0 and spans nothing
        return Spectrum(np.zeros((N, 0)), np.zeros(0), residual=0.0, gap=0.0, trace=0.0)
    wanted = max(1, min(dimensions, N - 1))
    with threadpool_limits(limits=1, user_api="blas"):
        if 2 * (wanted + 1) >= N:
            eigenvalues, eigenvectors = _dense(kernel, wanted + 1)
        elif N <= F:
            eigenvalues, eigenvectors = _iterative(
                N, lambda x: kernel.apply(x, applied), wanted + 1, seed
            )
        else:

            def apply_on_features(x: Matrix) -> Matrix:
                if applied is not None:
                    applied()
                return kernel.backward(kernel.forward(x))

            # The feature side has at most F directions; one fewer is all Lanczos can give.
            found = min(wanted + 1, F - 1)
            eigenvalues, on_features = (
                _iterative(F, apply_on_features, found, seed)
                if 2 * found < F
                else _dense_on_features(kernel, wanted + 1)
            )
            eigenvectors = kernel.forward(on_features) / np.sqrt(eigenvalues)
        following = eigenvalues[wanted] if len(eigenvalues) > wanted else 0.0
        eigenvectors = _with_fixed_signs(eigenvectors[:, :wanted])
        eigenvalues = eigenvalues[:wanted]
        rest = kernel.apply(eigenvectors) - eigenvectors * eigenvalues
    return Spectrum(
        eigenvectors=eigenvectors,
        eigenvalues=eigenvalues,
        residual=float(np.linalg.norm(rest, axis=0).max() / eigenvalues[0]),
        gap=float((eigenvalues[-1] - following) / eigenvalues[0]),
        trace=trace,
    )


def _iterative(
    side: int, product: Callable[[Matrix], Matrix], wanted: int, seed: int
) -> tuple[Eigenvalues, Matrix]:
    randomness = np.random.default_rng(seed)
    start = randomness.uniform(0.5, 1.5, side)
    operator = LinearOperator((side, side), matvec=product, matmat=product, dtype=np.float64)
    try:
        return _strongest_first(*eigsh(operator, k=wanted, v0=start, rng=randomness))
    except ArpackNoConvergence as error:
        raise SettingsError(
            f"dimensions = {wanted - 1}: only {len(error.eigenvalues)} eigenvectors converged; "
            "build with fewer dimensions",
            field="dimensions",
        ) from error


def _dense(kernel: DocumentKernel, wanted: int) -> tuple[Eigenvalues, Matrix]:
    N = len(kernel)
    return _strongest_first(
        *linalg.eigh(kernel.explicit(), subset_by_index=[max(0, N - wanted), N - 1])
    )


def _dense_on_features(kernel: DocumentKernel, wanted: int) -> tuple[Eigenvalues, Matrix]:
    F = kernel.features.shape[1]
    gram = kernel.backward(kernel.forward(np.eye(F)))
    first = max(0, F - wanted)
    return _strongest_first(*linalg.eigh((gram + gram.T) / 2, subset_by_index=[first, F - 1]))


def _strongest_first(values: Eigenvalues, vectors: Matrix) -> tuple[Eigenvalues, Matrix]:
    """Largest eigenvalues first, those that are numerically zero left out."""
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    kept = int(np.count_nonzero(values > RANK_TOLERANCE * values[0]))
    return values[:kept], vectors[:, :kept]


def _with_fixed_signs(eigenvectors: Basis) -> Basis:
    """Turn each column so that its entry of largest size is positive."""
    largest = np.argmax(np.abs(eigenvectors), axis=0)
    signs = np.sign(eigenvectors[largest, np.arange(eigenvectors.shape[1])])
    return np.ascontiguousarray(eigenvectors * signs)
