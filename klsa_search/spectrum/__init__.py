"""Decompose: document kernel → eigenvectors and eigenvalues; functions of them."""

from klsa_search.spectrum.decompose import Spectrum, decompose
from klsa_search.spectrum.functions import SPECTRAL_FUNCTIONS, SpectralFunction

__all__ = ["SPECTRAL_FUNCTIONS", "SpectralFunction", "Spectrum", "decompose"]
