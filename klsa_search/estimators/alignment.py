"""Alignment of a kernel with labels: the cosine of two matrices [KSC §5].

    A(K, T) = ⟨K, T⟩_F / (‖K‖_F ‖T‖_F),   T = Σ_c y_c y_cᵀ

with one target y_c of ±1 per class, the class against the rest. For two classes this is
yᵀKy / (m ‖K‖_F). The centred alignment first subtracts the mean of rows and columns from both
matrices: if one class is rare, T is otherwise almost constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize

from klsa_search.core.array_types import Basis, Eigenvalues, Matrix
from klsa_search.errors import ArgumentError

_Vector = npt.NDArray[np.float64]


def one_vs_rest(y: npt.ArrayLike) -> Matrix:
    """Return the targets of labels: (m, classes), 1 for the class of the label and -1 for others.

    Two classes have one column, 1 for the last in sorted order. ArgumentError for a single class.
    """
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) < 2:
        raise ArgumentError(
            f"y has {len(classes)} class, and alignment needs at least 2; give labels of both",
            field="y",
        )
    targets = 2.0 * (numbers[:, None] == np.arange(len(classes))) - 1.0
    return np.asarray(targets[:, 1:] if len(classes) == 2 else targets)


def alignment(K: npt.ArrayLike, y: npt.ArrayLike, *, centred: bool = False) -> float:
    """Return the alignment of a kernel matrix with labels, from -1 to 1; 0 if all of it is 0.

    K        (m, m) kernel matrix, symmetric
    y        (m,) labels of at least two classes
    centred  subtract the mean from both matrices first; better if one class is rare

    Several classes are each compared with the rest. Cost: O(m² · classes). ArgumentError if the
    shapes differ or there is only one class. Source: Kandola, Shawe-Taylor & Cristianini, NIPS
    2002.

    >>> alignment(np.array([[1, 0], [0, 1]]), ["a", "b"])
    0.7071067811865475
    """
    matrix = np.asarray(K, dtype=np.float64)
    targets = one_vs_rest(y)
    m = len(targets)
    if matrix.shape != (m, m):
        raise ArgumentError(
            f"K has shape {matrix.shape}, and y {m} labels; give K as ({m}, {m})", field="K"
        )
    if centred:
        means = matrix.mean(axis=0)
        matrix = matrix - means - means[:, None] + means.mean()
        targets = targets - targets.mean(axis=0)
    agreement = float(np.einsum("mc,mc->", matrix @ targets, targets))
    size = float(np.linalg.norm(matrix) * np.linalg.norm(targets.T @ targets))
    return agreement / size if size else 0.0


@dataclass(frozen=True)
class SpectralAlignment:
    """Alignment of kernels with the same eigenvectors, as a function of the eigenvalues μ.

    agreements  Σ_c (v_iᵀ y_c)²: (k,)
    shares      (v_iᵀ 1)² / m: (k,), subtracted by centring; 0 without
    size        ‖T‖_F
    """

    agreements: _Vector
    shares: _Vector
    size: float

    @classmethod
    def of(
        cls, eigenvectors: Basis, y: npt.ArrayLike, *, centred: bool = False
    ) -> SpectralAlignment:
        """Return the alignment of eigenvectors (m, k) with labels (m,). Cost O(m · k · classes)."""
        targets = one_vs_rest(y)
        shares = np.zeros(eigenvectors.shape[1])
        if centred:
            targets = targets - targets.mean(axis=0)
            shares = eigenvectors.sum(axis=0) ** 2 / len(targets)
        agreements = np.einsum("mk,mc->kc", eigenvectors, targets) ** 2
        return cls(agreements.sum(axis=1), shares, float(np.linalg.norm(targets.T @ targets)))

    def value(self, mu: Eigenvalues) -> float:
        """Return A of the kernel Σ μ_i v_i v_iᵀ. Cost O(k)."""
        scaled = mu / np.max(mu)  # A is scale-free, and squares of exponentials overflow
        return float(self.agreements @ scaled) / (self._norm(scaled) * self.size)

    def derivative(self, mu: Eigenvalues, slope: Eigenvalues) -> float:
        """Return dA/dγ with dμ/dγ = slope [KSC, propositions 6 and 7]. Cost O(k)."""
        scaled, slope = mu / np.max(mu), slope / np.max(mu)
        norm = self._norm(scaled)
        agreement = self.agreements @ scaled
        pull = (1 - 2 * self.shares) @ (scaled * slope)
        pull += (self.shares @ scaled) * (self.shares @ slope)
        change = self.agreements @ slope - agreement * pull / norm**2
        return float(change / (norm * self.size))

    def _norm(self, mu: Eigenvalues) -> float:
        """Return ‖Σ μ_i v_i v_iᵀ‖_F, centred: v_iᵀ H v_j = δ_ij - √(share_i share_j)."""
        square = (1 - 2 * self.shares) @ mu**2 + (self.shares @ mu) ** 2
        return float(np.sqrt(max(float(square), float(np.finfo(np.float64).tiny))))


@dataclass(frozen=True)
class AlignmentCurve:
    """Alignment of a kernel with labels, as a function of γ.

    gammas      (n,) ascending
    alignments  (n,) alignment at each of them
    best        γ with the largest alignment: a zero of the derivative, or an end of the interval
    alignment   alignment at `best`

    >>> kernel = VonNeumannKernel("alignment").fit(counts, ["a", "a", "b", "b"])
    >>> isinstance(kernel.alignment_curve_, AlignmentCurve)
    True
    """

    gammas: _Vector
    alignments: _Vector
    best: float
    alignment: float


def line_search(
    aligned: SpectralAlignment,
    transformed: Callable[[float], tuple[Eigenvalues, Eigenvalues]],
    gammas: _Vector,
) -> AlignmentCurve:
    """Return the curve with the γ of the largest alignment between `gammas`' ends [KSC, def. 8].

    transformed  γ → (μ, dμ/dγ)
    gammas       (n,) grid, ascending; if the derivative changes from positive to negative between
                 two of them, its zero is found to machine precision

    The highest of several maxima is chosen, the smallest γ among equals. Cost O(n · k).
    """

    def slope_at(gamma: float) -> float:
        return aligned.derivative(*transformed(gamma))

    alignments = np.array([aligned.value(transformed(gamma)[0]) for gamma in gammas])
    slopes = [slope_at(gamma) for gamma in gammas]
    candidates = [float(gammas[0]), float(gammas[-1])]
    for low, high, rising, falling in zip(gammas, gammas[1:], slopes, slopes[1:], strict=False):
        if rising > 0 >= falling:
            candidates.append(float(optimize.brentq(slope_at, low, high)))
    heights = [aligned.value(transformed(gamma)[0]) for gamma in candidates]
    height, negative = max((h, -gamma) for h, gamma in zip(heights, candidates, strict=True))
    return AlignmentCurve(gammas, alignments, -negative, height)
