"""The von Neumann kernel: paths of every length, geometrically weighted [KSC §3]."""

from __future__ import annotations

from klsa_search.spectrum.functions.base import SpectralFunction


def von_neumann(gamma: float) -> SpectralFunction:
    """f(λ) = 1 / (1 - γλ), for γ below 1: D_f = (I - γK)⁻¹."""
    return SpectralFunction(lambda eigenvalues: 1 / (1 - gamma * eigenvalues), value=1.0)
