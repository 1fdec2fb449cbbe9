"""Latent semantic kernel: the base kernel on its strongest eigenvectors [LSK §3]."""

from __future__ import annotations

from typing import Any

from klsa_search.arrays import Eigenvalues
from klsa_search.estimators.kernel import Kernel
from klsa_search.estimators.spectral import SpectralKernel
from klsa_search.spectrum.eigenpairs import Spectrum
from klsa_search.spectrum.functions import SPECTRAL_FUNCTIONS, SpectralFunction


class LatentSemanticKernel(SpectralKernel):
    """Latent semantic kernel: K̂ = U_k Λ_k U_kᵀ, which is LSI in the space of any kernel.

    n_components  k, from 1 to the rank of the base kernel; None for all, which is the base kernel
    base          kernel estimator to build on; None is the inner product of the rows, which is LSI

    Cost: `fit` O(nnz · k + N · k²) without a base, O(N²) kernel values and memory with one, O(N³)
    for all components. Source: Cristianini, Shawe-Taylor & Lodhi, JIIS 2002, section 3.

    >>> LatentSemanticKernel(2).fit_transform(counts).shape
    (4, 2)
    """

    def __init__(self, n_components: int | None = None, *, base: Kernel | None = None) -> None:
        self.n_components = n_components
        self.base = base

    def _function(self, relative: Eigenvalues, spectrum: Spectrum, y: Any) -> SpectralFunction:
        return SPECTRAL_FUNCTIONS["truncation"](0.0)
