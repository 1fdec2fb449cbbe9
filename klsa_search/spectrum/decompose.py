"""K → its top eigenvectors and eigenvalues, by an iterative solver on the implicit operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Basis, Eigenvalues, Matrix
from klsa_search.errors import SettingsError
from klsa_search.kernel.gram import explicit_gram, implicit_gram

RANK_TOLERANCE = 1e-10  # eigenvalues below this share of the first are rounding noise


@dataclass(frozen=True)
class Spectrum:
    """The top of the spectrum of K = ΦΦᵀ = UΛUᵀ.

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
    Phi: sparse.csr_array,
    dimensions: int,
    *,
    seed: int = 0,
    applied: Callable[[], None] | None = None,
) -> Spectrum:
    """Compute the `dimensions` strongest eigenpairs of K = ΦΦᵀ [KLSA §3.1].

    Phi         (N, V) document features
    dimensions  k; capped at N - 1 (at least 1) and at the rank of K
    seed        of the solver's start vector; same input and seed, same bits: the linear algebra
                runs on one thread, and each eigenvector's largest entry is made positive
    applied     called once a product with K

    Implicitly restarted Lanczos on the smaller of ΦΦᵀ and ΦᵀΦ, O(nnz · k + N · k²); where k is
    more than half of that side, a dense solver serves better. SettingsError where Lanczos does
    not converge.
    """
    trace = float(Phi.multiply(Phi).sum())
    if trace == 0:  # no document, or none with a weighted term: K is 0 and spans nothing
        return Spectrum(np.zeros((Phi.shape[0], 0)), np.zeros(0), residual=0.0, gap=0.0, trace=0.0)
    wanted = max(1, min(dimensions, Phi.shape[0] - 1))
    with threadpool_limits(limits=1, user_api="blas"):
        if Phi.shape[0] <= Phi.shape[1]:
            eigenvectors, eigenvalues = _top_of(Phi, wanted + 1, seed, applied)
        else:
            term_side, eigenvalues = _top_of(Phi.T.tocsr(), wanted + 1, seed, applied)
            eigenvectors = np.asarray(Phi @ term_side) / np.sqrt(eigenvalues)
        following = eigenvalues[wanted] if len(eigenvalues) > wanted else 0.0
        eigenvectors = _with_fixed_signs(eigenvectors[:, :wanted])
        eigenvalues = eigenvalues[:wanted]
        rest = np.asarray(Phi @ (Phi.T @ eigenvectors)) - eigenvectors * eigenvalues
    return Spectrum(
        eigenvectors=eigenvectors,
        eigenvalues=eigenvalues,
        residual=float(np.linalg.norm(rest, axis=0).max() / eigenvalues[0]),
        gap=float((eigenvalues[-1] - following) / eigenvalues[0]),
        trace=trace,
    )


def _top_of(
    Phi: sparse.csr_array, wanted: int, seed: int, applied: Callable[[], None] | None
) -> tuple[Matrix, Eigenvalues]:
    """Top eigenpairs of ΦΦᵀ, strongest first, those that are numerically zero left out."""
    side = Phi.shape[0]
    if 2 * wanted >= side:
        first = max(0, side - wanted)
        values, vectors = linalg.eigh(explicit_gram(Phi), subset_by_index=[first, side - 1])
    else:
        randomness = np.random.default_rng(seed)
        start = randomness.uniform(0.5, 1.5, side)  # all positive, as the first eigenvector is
        K = implicit_gram(Phi, applied=applied)
        try:
            values, vectors = eigsh(K, k=wanted, v0=start, rng=randomness)
        except ArpackNoConvergence as error:
            raise SettingsError(
                f"dimensions = {wanted - 1}: only {len(error.eigenvalues)} eigenvectors converged; "
                "build with fewer dimensions",
                field="dimensions",
            ) from error
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    kept = int(np.count_nonzero(values > RANK_TOLERANCE * values[0]))
    return vectors[:, :kept], values[:kept]


def _with_fixed_signs(eigenvectors: Basis) -> Basis:
    """Turn each column so that its entry of largest size is positive."""
    largest = np.argmax(np.abs(eigenvectors), axis=0)
    signs = np.sign(eigenvectors[largest, np.arange(eigenvectors.shape[1])])
    return np.ascontiguousarray(eigenvectors * signs)
