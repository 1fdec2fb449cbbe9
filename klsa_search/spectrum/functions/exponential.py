"""The exponential (diffusion) kernel: paths of length t weighted by 1/t! [KSC §4]."""

from __future__ import annotations

import numpy as np

from klsa_search.spectrum.functions.base import SpectralFunction


def exponential(gamma: float) -> SpectralFunction:
    """f(λ) = exp(γλ): D_f = exp(γK)."""
    return SpectralFunction(lambda eigenvalues: np.exp(gamma * eigenvalues), value=1.0)
