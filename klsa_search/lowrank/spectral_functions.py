"""Functions f of the spectrum, for D_f = U f(Λ) Uᵀ.

Eigenvalues are divided by the first, so γ does not depend on the collection, and nothing overflows.
Beyond the stored eigenvectors f is replaced by the line from f(0) to f(λ_k), with slope s:

    D_f ≈ f(0) I + s K + U (f(Λ) - f(0) - s Λ) Uᵀ,

so the tail of the spectrum is kept, unless f is 0 there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klsa_search.core.array_types import Eigenvalues
from klsa_search.core.plugins import load_plugin
from klsa_search.errors import PluginFailed


@dataclass(frozen=True)
class SpectralFunction:
    """A function f of the spectrum.

    of     λ → f(λ), for eigenvalues divided by the first, in (0, 1]
    value  f(0)
    tail   whether f applies beyond the stored eigenvectors
    """

    of: Callable[[Eigenvalues], Eigenvalues]
    value: float
    tail: bool = True

    def slope(self, relative: Eigenvalues) -> float:
        """Return the slope of the line from f(0) to f at the last eigenvalue, 0 without a tail.

        The eigenvalues of the tail lie between these ends. The tangent at 0 would overestimate a
        concave f such as squashing.
        """
        if not self.tail or len(relative) == 0:
            return 0.0
        last = relative[-1:]
        return float(((self.of(last) - self.value) / last)[0])


def exponential(gamma: float) -> SpectralFunction:
    """Return f(λ) = exp(γλ): D_f = exp(γK)."""
    return SpectralFunction(lambda eigenvalues: np.exp(gamma * eigenvalues), value=1.0)


def gvsm(gamma: float) -> SpectralFunction:
    """Return f(λ) = λ; γ is not used, and the tail is exact."""
    return SpectralFunction(lambda eigenvalues: eigenvalues, value=0.0)


def squashing(gamma: float) -> SpectralFunction:
    """Return f(λ) = λ / (λ + γ): near 1 above γ, linear below; D_f = K (K + γI)⁻¹."""
    return SpectralFunction(lambda eigenvalues: eigenvalues / (eigenvalues + gamma), value=0.0)


def truncation(gamma: float) -> SpectralFunction:
    """Return f(λ) = 1 for the k largest, else 0; γ is not used."""
    return SpectralFunction(np.ones_like, value=0.0, tail=False)


def von_neumann(gamma: float) -> SpectralFunction:
    """Return f(λ) = 1 / (1 - γλ), for γ below 1: D_f = (I - γK)⁻¹."""
    return SpectralFunction(lambda eigenvalues: 1 / (1 - gamma * eigenvalues), value=1.0)


SPECTRAL_FUNCTIONS = {
    "exponential": exponential,
    "gvsm": gvsm,
    "squashing": squashing,
    "truncation": truncation,
    "von-neumann": von_neumann,
}


def spectral_function(name: str, gamma: float) -> SpectralFunction:
    """Return the function of a built-in name or of a plug-in, for a γ; PluginFailed."""
    if name in SPECTRAL_FUNCTIONS:
        return SPECTRAL_FUNCTIONS[name](gamma)
    try:
        function = load_plugin("spectral", name)(gamma)
    except Exception as error:  # code of another package may raise anything
        raise PluginFailed(
            f"spectral `{name}` failed with gamma = {gamma} ({type(error).__name__}: {error}); "
            "correct it, or use another gamma",
            field="spectral",
        ) from error
    if not isinstance(function, SpectralFunction):
        raise PluginFailed(
            f"spectral `{name}` returned {function!r}; it must return a SpectralFunction",
            field="spectral",
        )
    return function


__all__ = ["SPECTRAL_FUNCTIONS", "SpectralFunction", "spectral_function"]
