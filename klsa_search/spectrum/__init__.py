"""Decompose: Gram operator → eigenvectors and eigenvalues."""

from klsa_search.spectrum.decompose import Spectrum, decompose

__all__ = ["Spectrum", "decompose"]
