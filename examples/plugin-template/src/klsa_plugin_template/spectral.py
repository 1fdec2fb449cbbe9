"""Powers of the eigenvalues: f(λ) = λ^γ, from all directions alike (γ near 0) to K itself (1)."""

from __future__ import annotations

import numpy as np

from klsa_search.plugins import SpectralFunction


def power(gamma: float) -> SpectralFunction:
    """Return f(λ) = λ^γ, of eigenvalues divided by the first; f(0) = 0."""
    return SpectralFunction(lambda eigenvalues: np.power(eigenvalues, gamma), value=0.0)
