"""Latent semantic kernel: the base kernel on its strongest eigenvectors [LSK §3]."""

from __future__ import annotations

from typing import Any

from klsa_search.arrays import Eigenvalues
from klsa_search.estimators.kernel import Kernel
from klsa_search.estimators.spectral import SpectralKernel
from klsa_search.spectrum import SPECTRAL_FUNCTIONS, SpectralFunction, Spectrum


class LatentSemanticKernel(SpectralKernel):
    """K̂ = U_k Λ_k U_kᵀ: latent semantic indexing, in the space of any kernel.

    n_components  k, 1 to the rank of the base kernel; None takes all, which is the base kernel
    base          a kernel estimator; None compares rows by their inner product, which is LSI

    Cost of fit over a linear base O(nnz · k + N · k²), over any other O(N²) products and memory;
    for None O(N³).

    >>> LatentSemanticKernel(2).fit_transform(counts).shape
    (4, 2)
    """

    def __init__(self, n_components: int | None = None, *, base: Kernel | None = None) -> None:
        self.n_components = n_components
        self.base = base

    def _function(self, relative: Eigenvalues, spectrum: Spectrum, y: Any) -> SpectralFunction:
        return SPECTRAL_FUNCTIONS["truncation"](0.0)
