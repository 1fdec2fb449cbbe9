"""Squashing: the soft form of truncation [LSK §4.1]."""

from __future__ import annotations

from klsa_search.spectrum.functions.base import SpectralFunction


def squashing(gamma: float) -> SpectralFunction:
    """f(λ) = λ / (λ + γ): near 1 above γ, linear below, so that D_f = K (K + γI)⁻¹."""
    return SpectralFunction(lambda eigenvalues: eigenvalues / (eigenvalues + gamma), value=0.0)
