"""Functions of the spectrum: D_f = U f(Λ) Uᵀ, each one small file and one row of this table.

Eigenvalues come divided by the first one, so that γ means the same in every collection and
nothing overflows. Beyond the stored eigenvectors f is replaced by the line from f(0) to f(λ_k), of
slope s, so the whole tail is two terms,

    D_f ≈ f(0) I + s K + U (f(Λ) - f(0) - s Λ) Uᵀ,

and nothing of the spectrum is thrown away unless f says so.
"""

from klsa_search.spectrum.functions.base import SpectralFunction
from klsa_search.spectrum.functions.exponential import exponential
from klsa_search.spectrum.functions.gvsm import gvsm
from klsa_search.spectrum.functions.squashing import squashing
from klsa_search.spectrum.functions.truncation import truncation
from klsa_search.spectrum.functions.von_neumann import von_neumann

SPECTRAL_FUNCTIONS = {
    "exponential": exponential,
    "gvsm": gvsm,
    "squashing": squashing,
    "truncation": truncation,
    "von-neumann": von_neumann,
}

__all__ = ["SPECTRAL_FUNCTIONS", "SpectralFunction"]
