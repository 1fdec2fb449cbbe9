"""Kernels that are functions of a spectrum: K̂ = U λf(λ) Uᵀ between the training documents."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Final

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Eigenvalues, Matrix
from klsa_search.errors import ArgumentError, SettingsError
from klsa_search.estimators.kernel import Kernel, Points, inner_products
from klsa_search.estimators.limits import check_rank, checked_count
from klsa_search.kernel.document import DocumentKernel
from klsa_search.spectrum.eigenpairs import Spectrum
from klsa_search.spectrum.functions import SpectralFunction
from klsa_search.spectrum.gram import decompose_gram
from klsa_search.spectrum.solving import decompose

EXACT: Final = 4000
"""Rows and columns up to which a spectrum is computed to rounding.

Beyond, where less than a quarter of it is wanted, the features are handed over in float32.
"""


class SpectralKernel(Kernel):
    """Base of the kernels K̂ = U λf(λ) Uᵀ; the stored eigenvalues are all there is of them.

    A point x lies at Σ_n k(x, n) C_n, with C = U √(f(λ)/λ): for f = 1 the Λ^-½ Uᵀ t of
    [LSK, "novel inputs"]. Over a linear base the sum is taken once, at fit, so that placing costs
    O(nnz · k) whatever N is.

    spectrum_         eigenvectors and eigenvalues of the base kernel
    eigenvalues_      (k,) of the base kernel, largest first
    components_       (k, F) ΦᵀC, transposed; over a linear base
    dual_components_  (N, k) C; over any other base, with points_, the training points
    """

    n_components: int | None

    @abstractmethod
    def _function(self, relative: Eigenvalues, spectrum: Spectrum, y: Any) -> SpectralFunction:
        """Choose f, of eigenvalues divided by the first."""

    def _learn(self, points: Points, y: Any) -> None:
        N = points.shape[0]
        side = min(points.shape) if self._linear else N
        wanted = checked_count(
            "n_components", self.n_components, side, "what this X can have at most"
        )
        try:
            spectrum = self._spectrum(points, wanted)
        except SettingsError as error:  # of the solver: it did not converge
            raise ArgumentError(
                f"n_components = {wanted}: {error}", field="n_components"
            ) from error
        check_rank(self.n_components, len(spectrum.eigenvalues), N)
        self.spectrum_ = spectrum
        self.eigenvalues_ = spectrum.eigenvalues
        relative = spectrum.eigenvalues / spectrum.eigenvalues[0]
        values = self._function(relative, spectrum, y).of(relative)
        dual = spectrum.eigenvectors * np.sqrt(values / spectrum.eigenvalues)
        if self._linear:
            with threadpool_limits(limits=1, user_api="blas"):
                self.components_ = np.ascontiguousarray(np.asarray(points.T @ dual).T)
        else:
            self.dual_components_ = dual
            self.points_ = points

    def _spectrum(self, points: Points, wanted: int) -> Spectrum:
        if not self._linear or wanted >= points.shape[0]:
            return decompose_gram(self._compare(points, points), wanted)
        kernel = DocumentKernel.of(sparse.csr_array(points))
        if min(points.shape) > max(EXACT, 4 * wanted):
            kernel = replace(kernel, features=kernel.features.astype(np.float32))
        return decompose(kernel, wanted)

    def _place(self, points: Points) -> Matrix:
        if self._linear:
            return inner_products(points, self.components_)
        return inner_products(self._compare(points, self.points_), self.dual_components_.T)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
