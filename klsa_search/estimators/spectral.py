"""Spectral kernels: K̂ = U λf(λ) Uᵀ between the training documents [LSK; KSC]."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from sklearn.utils.validation import check_consistent_length, column_or_1d

from klsa_search.core.array_types import Eigenvalues, Matrix
from klsa_search.core.parallel import one_blas_thread
from klsa_search.errors import ArgumentError, SettingsError
from klsa_search.estimators.alignment import AlignmentCurve, SpectralAlignment, line_search
from klsa_search.estimators.base import (
    Kernel,
    Points,
    check_rank,
    checked_count,
    checked_number,
    inner_products,
)
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.lowrank.eigensolver import Decomposition, decompose, decompose_gram
from klsa_search.lowrank.expansion_matrix import SPECTRAL_FUNCTIONS, SpectralFunction

EXACT: Final = 4000
"""Rows and columns up to which a spectrum is computed in float64.

Above, float32 is used if less than a quarter of the spectrum is wanted.
"""


class SpectralKernel(Kernel):
    """Base class of the kernels K̂ = U λf(λ) Uᵀ, without the tail of the spectrum.

    The coordinates of a point x are Σ_n k(x, n) C_n with C = U √(f(λ)/λ), for f = 1 the Λ^-½ Uᵀ t
    of [LSK, "novel inputs"]. For a linear base the sum is computed by `fit`, so `transform` costs
    O(nnz · k) for any N.

    spectrum_         eigenvectors and eigenvalues of the base kernel
    eigenvalues_      (k,) of the base kernel, largest first
    components_       (k, F) ΦᵀC, transposed, for a linear base
    dual_components_  (N, k) C for any other base, with points_, the training points
    """

    n_components: int | None

    @abstractmethod
    def _function(self, relative: Eigenvalues, spectrum: Decomposition, y: Any) -> SpectralFunction:
        """Return f, for eigenvalues divided by the first."""

    def _learn(self, points: Points, y: Any) -> None:
        N = points.shape[0]
        side = min(points.shape) if self._linear else N
        wanted = checked_count(
            "n_components", self.n_components, side, "what this X can have at most"
        )
        try:
            spectrum = self._spectrum(points, wanted)
        except SettingsError as error:  # the solver did not converge
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
            with one_blas_thread():
                self.components_ = np.ascontiguousarray(np.asarray(points.T @ dual).T)
        else:
            self.dual_components_ = dual
            self.points_ = points

    def _spectrum(self, points: Points, wanted: int) -> Decomposition:
        if not self._linear or wanted >= points.shape[0]:
            return decompose_gram(self._compare(points, points), wanted)
        kernel = DocumentKernel.of(sparse.csr_array(points))
        if min(points.shape) > max(EXACT, 4 * wanted):
            kernel = replace(kernel, features=kernel.features.astype(np.float32))
        return decompose(kernel, wanted)

    def _embed(self, points: Points) -> Matrix:
        if self._linear:
            return inner_products(points, self.components_)
        return inner_products(self._compare(points, self.points_), self.dual_components_.T)


class AlignedKernel(SpectralKernel):
    """Base class of the von Neumann and exponential kernels.

    γ is in units of 1/λ_1, so it does not depend on the scale of X; the papers' λ is
    γ / `eigenvalues_[0]`.

    gamma_            γ in use
    alignment_curve_  alignment against γ on the training labels, with its maximum, if
                      gamma = "alignment"; else None
    """

    spectral: ClassVar[str]
    max_gamma: ClassVar[float]
    max_gamma_is_open: ClassVar[bool]
    _gammas: ClassVar[npt.NDArray[np.float64]]
    """Those of the line search, ascending."""
    _growth: ClassVar[staticmethod[[Eigenvalues, Eigenvalues], Eigenvalues]]
    """Returns d log f / dγ of relative eigenvalues and f of them."""

    def __init__(
        self,
        gamma: float | Literal["alignment"],
        *,
        n_components: int | None,
        centred: bool,
        base: Kernel | None,
    ) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.centred = centred
        self.base = base

    def _function(self, relative: Eigenvalues, spectrum: Decomposition, y: Any) -> SpectralFunction:
        made = SPECTRAL_FUNCTIONS[self.spectral]
        if isinstance(self.gamma, str) and self.gamma == "alignment":
            self.alignment_curve_: AlignmentCurve | None = self._aligned(relative, spectrum, y)
            self.gamma_ = self.alignment_curve_.best
        else:
            self.alignment_curve_ = None
            self.gamma_ = checked_number(
                "gamma", self.gamma, 0, self.max_gamma, open_above=self.max_gamma_is_open
            )
        return made(self.gamma_)

    def _aligned(self, relative: Eigenvalues, spectrum: Decomposition, y: Any) -> AlignmentCurve:
        if y is None:
            raise ArgumentError(
                "y is None, but gamma = 'alignment' needs labels; give y to fit, "
                "or a number as gamma",
                field="y",
            )
        y = column_or_1d(y)
        check_consistent_length(spectrum.eigenvectors, y)

        def transformed(gamma: float) -> tuple[Eigenvalues, Eigenvalues]:
            values = SPECTRAL_FUNCTIONS[self.spectral](gamma).of(relative)
            mu = relative * values
            return mu, mu * self._growth(relative, values)

        aligned = SpectralAlignment.of(spectrum.eigenvectors, y, centred=self.centred)
        return line_search(aligned, transformed, self._gammas)


class ExponentialKernel(AlignedKernel):
    """Exponential (diffusion) kernel: K̂ = K exp(γK/λ_1).

    Documents are similar through chains of documents, as in the von Neumann kernel, but long chains
    count much less.

    gamma         from 0 (the base kernel) to 300; or "alignment", for the γ with the largest
                  alignment with the labels given to `fit`. The kernel grows like exp(γ), so search
                  C over many powers of ten
    n_components  number of eigenvectors, from 1 to the rank of the base kernel; None for all
    centred       use the centred alignment, for classes of very different size
    base          kernel estimator to build on; None is the inner product of the rows

    Cost: `fit` as LatentSemanticKernel; the line search adds O(k) per step. Source: Kandola,
    Shawe-Taylor & Cristianini, NIPS 2002, section 4.

    >>> ExponentialKernel(2.0).fit(counts).gamma_
    2.0
    """

    spectral = "exponential"
    max_gamma = 300.0  # exp of it squared is still a float64
    max_gamma_is_open = False
    _gammas = np.concatenate(([0.0], np.geomspace(1e-2, max_gamma, 120)))
    _growth = staticmethod(lambda relative, values: relative)

    def __init__(
        self,
        gamma: float | Literal["alignment"] = 1.0,
        *,
        n_components: int | None = None,
        centred: bool = False,
        base: Kernel | None = None,
    ) -> None:
        super().__init__(gamma, n_components=n_components, centred=centred, base=base)


class VonNeumannKernel(AlignedKernel):
    """Von Neumann kernel: K̂ = K (I - γK/λ_1)⁻¹.

    Documents are similar through every chain of documents and terms: K̂ = (γ/λ_1) XĜXᵀ + K, where Ĝ
    is the same kernel of the terms.

    gamma         from 0 (the base kernel) to below 1; or "alignment", for the γ with the largest
                  alignment with the labels given to `fit`
    n_components  number of eigenvectors, from 1 to the rank of the base kernel; None for all
    centred       use the centred alignment, for classes of very different size
    base          kernel estimator to build on; None is the inner product of the rows

    Cost: `fit` as LatentSemanticKernel; the line search adds O(k) per step. Source: Kandola,
    Shawe-Taylor & Cristianini, NIPS 2002, section 3.

    >>> kernel = VonNeumannKernel(0.9).fit(counts)
    >>> bool(kernel.kernel(counts)[0, 2] > (counts @ counts.T)[0, 2])
    True
    """

    spectral = "von-neumann"
    max_gamma = 1.0
    max_gamma_is_open = True
    _gammas = 1 - np.logspace(0, -6, 121)
    _growth = staticmethod(lambda relative, values: relative * values)

    def __init__(
        self,
        gamma: float | Literal["alignment"] = 0.5,
        *,
        n_components: int | None = None,
        centred: bool = False,
        base: Kernel | None = None,
    ) -> None:
        super().__init__(gamma, n_components=n_components, centred=centred, base=base)


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

    def _function(self, relative: Eigenvalues, spectrum: Decomposition, y: Any) -> SpectralFunction:
        return SPECTRAL_FUNCTIONS["truncation"](0.0)


_MIN_GAMMA = 1e-10  # below it K + γλ_1 I is not positive definite in float64


class SquashedKernel(Kernel):
    """Squashed kernel: K̂ = K (K + γλ_1 I)⁻¹ K, a soft form of the latent semantic kernel.

    An eigenvalue λ becomes λ²/(λ + γλ_1): those far above γλ_1 stay, those far below vanish. No
    eigenvectors are computed: the coordinates of a point are L⁻¹t, with t its kernel row and L the
    Cholesky factor of K + γλ_1 I.

    gamma  γ above 1e-10, in units of the first eigenvalue
    base   kernel estimator to build on; None is the inner product of the rows

    eigenvalue_  λ_1 of the base kernel
    factor_      L: (N, N) lower triangular
    points_      training points

    Cost: `fit` O(N³/3), memory 8 N² bytes; `transform` N kernel values and O(N²) per point. Source:
    Cristianini, Shawe-Taylor & Lodhi, JIIS 2002, section 4.1.

    >>> SquashedKernel(0.1).fit_transform(counts).shape
    (4, 4)
    """

    def __init__(self, gamma: float = 0.01, *, base: Kernel | None = None) -> None:
        self.gamma = gamma
        self.base = base

    def _learn(self, points: Points, y: Any) -> None:
        gamma = checked_number("gamma", self.gamma, _MIN_GAMMA)
        K = self._compare(points, points)
        first = decompose_gram(K, 1).eigenvalues
        check_rank(None, len(first), len(K))
        self.eigenvalue_ = float(first[0])
        K[np.diag_indices_from(K)] += gamma * self.eigenvalue_
        with one_blas_thread():
            self.factor_ = linalg.cholesky(K, lower=True, overwrite_a=True)
        self.points_ = points

    def _embed(self, points: Points) -> Matrix:
        rows = self._compare(points, self.points_)
        with one_blas_thread():
            return np.asarray(linalg.solve_triangular(self.factor_, rows.T, lower=True).T)


class GVSMKernel(Kernel):
    """Generalised vector space model: k̂(x, z) = Σ_n k(x, n) k(n, z).

    Two points are similar if they are similar to the same training documents.

    Between training documents this is K². The coordinates of a point are its kernel row.

    base     kernel estimator to build on; None is the inner product of the rows
    points_  training points

    Cost: `fit` nothing; `transform` of n points N · n kernel values, dense. Source: Cristianini,
    Shawe-Taylor & Lodhi, JIIS 2002.

    >>> K = counts @ counts.T
    >>> bool((GVSMKernel().fit(counts).kernel(counts) == K @ K).all())
    True
    """

    def __init__(self, *, base: Kernel | None = None) -> None:
        self.base = base

    def _learn(self, points: Points, y: Any) -> None:
        self.points_ = points

    def _embed(self, points: Points) -> Matrix:
        return self._compare(points, self.points_)
