"""The top of a spectrum, and how well it is known."""

from __future__ import annotations

from dataclasses import dataclass

from klsa_search.arrays import Basis, Eigenvalues


@dataclass(frozen=True)
class Spectrum:
    """The top of the spectrum of K = UΛUᵀ.

    eigenvectors  U: (N, k) in the precision of K's features, orthonormal columns, strongest first
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
