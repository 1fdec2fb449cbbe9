"""Truncation: 1 for the stored eigenvectors, 0 beyond [LSK §3; KLSA]."""

from __future__ import annotations

import numpy as np

from klsa_search.spectrum.functions.base import SpectralFunction


def truncation(gamma: float) -> SpectralFunction:
    """f(λ) = 1 for the k largest, else 0; γ plays no part."""
    return SpectralFunction(np.ones_like, value=0.0, tail=False)
