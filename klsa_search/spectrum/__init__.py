"""Decompose: document kernel → eigenvectors and eigenvalues; functions of them."""

from klsa_search.spectrum.decompose import Spectrum, decompose
from klsa_search.spectrum.functions import SPECTRAL_FUNCTIONS, SpectralFunction
from klsa_search.spectrum.gram import decompose_gram

__all__ = ["SPECTRAL_FUNCTIONS", "SpectralFunction", "Spectrum", "decompose", "decompose_gram"]
