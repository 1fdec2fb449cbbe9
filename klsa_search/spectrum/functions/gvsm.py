"""The generalised vector space model: D is K itself [LSK 2002]."""

from __future__ import annotations

from klsa_search.spectrum.functions.base import SpectralFunction


def gvsm(gamma: float) -> SpectralFunction:
    """f(λ) = λ; γ plays no part, and the tail is exact."""
    return SpectralFunction(lambda eigenvalues: eigenvalues, value=0.0)
