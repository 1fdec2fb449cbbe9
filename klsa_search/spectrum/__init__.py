"""Decompose: document kernel → eigenvectors and eigenvalues; functions of them."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.spectrum.eigenpairs import Spectrum
    from klsa_search.spectrum.functions import SPECTRAL_FUNCTIONS, SpectralFunction
    from klsa_search.spectrum.gram import decompose_gram
    from klsa_search.spectrum.solving import decompose
else:
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "eigenpairs": "Spectrum",
            "functions": "SPECTRAL_FUNCTIONS SpectralFunction",
            "gram": "decompose_gram",
            "solving": "decompose",
        },
    )

__all__ = ["SPECTRAL_FUNCTIONS", "SpectralFunction", "Spectrum", "decompose", "decompose_gram"]
