"""Functions of the spectrum: D_f = U f(Λ) Uᵀ, one row of the table each.

Eigenvalues come divided by the first one, so that γ means the same in every collection and
nothing overflows. Beyond the stored eigenvectors f is replaced by the line from f(0) to f(λ_k), of
slope s, so the whole tail is two terms,

    D_f ≈ f(0) I + s K + U (f(Λ) - f(0) - s Λ) Uᵀ,

and nothing of the spectrum is thrown away unless f says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klsa_search.core.array_types import Eigenvalues


@dataclass(frozen=True)
class SpectralFunction:
    """f, with what its tail needs.

    of     λ → f(λ), for eigenvalues divided by the first: within (0, 1]
    value  f(0)
    tail   whether f holds beyond the stored eigenvectors; truncation ends with them
    """

    of: Callable[[Eigenvalues], Eigenvalues]
    value: float
    tail: bool = True

    def slope(self, relative: Eigenvalues) -> float:
        """Slope of the line from f(0) to f of the last stored eigenvalue, 0 without a tail.

        The tail's eigenvalues lie between those two ends, where f is replaced by this line: it
        meets f at the cut, and is f itself where f is linear. The slope at 0 would overshoot
        wherever f bends above 0, squashing most of all.
        """
        if not self.tail or len(relative) == 0:
            return 0.0
        last = relative[-1:]
        return float(((self.of(last) - self.value) / last)[0])


def exponential(gamma: float) -> SpectralFunction:
    """f(λ) = exp(γλ): D_f = exp(γK)."""
    return SpectralFunction(lambda eigenvalues: np.exp(gamma * eigenvalues), value=1.0)


def gvsm(gamma: float) -> SpectralFunction:
    """f(λ) = λ; γ plays no part, and the tail is exact."""
    return SpectralFunction(lambda eigenvalues: eigenvalues, value=0.0)


def squashing(gamma: float) -> SpectralFunction:
    """f(λ) = λ / (λ + γ): near 1 above γ, linear below, so that D_f = K (K + γI)⁻¹."""
    return SpectralFunction(lambda eigenvalues: eigenvalues / (eigenvalues + gamma), value=0.0)


def truncation(gamma: float) -> SpectralFunction:
    """f(λ) = 1 for the k largest, else 0; γ plays no part."""
    return SpectralFunction(np.ones_like, value=0.0, tail=False)


def von_neumann(gamma: float) -> SpectralFunction:
    """f(λ) = 1 / (1 - γλ), for γ below 1: D_f = (I - γK)⁻¹."""
    return SpectralFunction(lambda eigenvalues: 1 / (1 - gamma * eigenvalues), value=1.0)


SPECTRAL_FUNCTIONS = {
    "exponential": exponential,
    "gvsm": gvsm,
    "squashing": squashing,
    "truncation": truncation,
    "von-neumann": von_neumann,
}

__all__ = ["SPECTRAL_FUNCTIONS", "SpectralFunction"]
