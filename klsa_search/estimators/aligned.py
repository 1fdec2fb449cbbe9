"""Spectral kernels with a γ, given or found by aligning the kernel with labels [KSC §5]."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, column_or_1d

from klsa_search.arrays import Eigenvalues
from klsa_search.errors import ArgumentError
from klsa_search.estimators.kernel import Kernel
from klsa_search.estimators.limits import checked_number
from klsa_search.estimators.spectral import SpectralKernel
from klsa_search.kernel.alignment import AlignmentCurve, SpectralAlignment, line_search
from klsa_search.spectrum.eigenpairs import Spectrum
from klsa_search.spectrum.functions import SPECTRAL_FUNCTIONS, SpectralFunction


class AlignedKernel(SpectralKernel):
    """Base of the von Neumann and exponential kernels.

    γ counts in units of 1/λ_1, so that it means the same for every X; the papers' λ is
    γ / `eigenvalues_[0]`.

    gamma_            γ in use
    alignment_curve_  alignment against γ on the training labels, with its maximum, where
                      gamma = "alignment"; else None
    """

    spectral: ClassVar[str]
    most: ClassVar[float]
    most_is_open: ClassVar[bool]

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

    @staticmethod
    @abstractmethod
    def _grid() -> npt.NDArray[np.float64]:
        """γ of the line search, ascending."""

    @staticmethod
    @abstractmethod
    def _growth(relative: Eigenvalues, values: Eigenvalues) -> Eigenvalues:
        """Return d log f / dγ, where `values` are f(λ)."""

    def _function(self, relative: Eigenvalues, spectrum: Spectrum, y: Any) -> SpectralFunction:
        made = SPECTRAL_FUNCTIONS[self.spectral]
        if isinstance(self.gamma, str) and self.gamma == "alignment":
            self.alignment_curve_: AlignmentCurve | None = self._aligned(relative, spectrum, y)
            self.gamma_ = self.alignment_curve_.best
        else:
            self.alignment_curve_ = None
            self.gamma_ = checked_number(
                "gamma", self.gamma, 0, self.most, open_above=self.most_is_open
            )
        return made(self.gamma_)

    def _aligned(self, relative: Eigenvalues, spectrum: Spectrum, y: Any) -> AlignmentCurve:
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
        return line_search(aligned, transformed, self._grid())
