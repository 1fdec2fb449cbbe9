"""The expansion matrix D = U f(Λ) Uᵀ, dense or factored, and the top-z threshold [KLSA §3.3].

Both forms answer one question: what does a sparse kernel row, some seed documents and their
weights, become after k_q · D?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from klsa_search.core.array_types import Basis, Eigenvalues, Matrix, Positions, Scores
from klsa_search.lowrank.eigensolver import Spectrum
from klsa_search.lowrank.spectral_functions import SPECTRAL_FUNCTIONS, SpectralFunction

if TYPE_CHECKING:
    from klsa_search.kernels.document_kernel import DocumentKernel


def top_z(row: npt.NDArray[Any], z: int) -> tuple[Positions, npt.NDArray[Any]]:
    """Return positions and values of the z largest positive entries, largest first.

    Ties go by document order; fewer than z are returned where fewer are above 0.
    Cost O(N + z log z).
    """
    held = np.flatnonzero(row > 0)
    values = row[held]
    if len(held) > z:
        threshold = np.partition(values, len(held) - z)[len(held) - z]
        above = held[values > threshold]
        level = held[values == threshold][: z - len(above)]
        held = np.sort(np.concatenate((above, level)))
        values = row[held]
    order = np.argsort(-values, kind="stable")
    return held[order], values[order]


ROUNDING = 1e-6


class Expansion(Protocol):
    """k_q · D for a row that is 0 but for its seeds."""

    def expand(self, seeds: Positions, weights: Scores) -> Scores:
        """Return (N,) scores of the row with `weights` at `seeds`."""

    def entries(self, seeds: Positions, document: int) -> Scores:
        """Return what D holds of a document in the rows of the seeds: (z,)."""


@dataclass(frozen=True)
class DenseExpansion:
    """D as an (N, N) array; z rows of it are read. Cost O(z · N)."""

    matrix: Matrix

    def expand(self, seeds: Positions, weights: Scores) -> Scores:
        """Σ weight · row of D, added seed by seed, so that no thread count changes the bits."""
        scores = np.zeros(self.matrix.shape[1], dtype=np.float32)
        for seed, weight in zip(seeds.tolist(), weights, strict=True):
            scores += weight * self.matrix[seed]
        return _without_rounding(scores, weights)

    def entries(self, seeds: Positions, document: int) -> Scores:
        """D(s, d): (z,). Cost: a look at each."""
        return np.asarray(self.matrix[seeds, document])


@dataclass(frozen=True)
class FactoredExpansion:
    """D_f as f(0) I + s K + U (f(Λ) - f(0) - s Λ) Uᵀ, never built.

    Cost O((z + N) · k) for the stored eigenvectors, and one product with the features, O(nnz), for
    the tail where f has one.

    eigenvectors  U: (N, k)
    correction    (k,) f(Λ) - f(0) - s Λ, Λ divided by its first; 0 throughout where f is linear
    value         f(0)
    slope         s / λ_1, the slope of the tail
    kernel        gives K where the slope is not 0; called only then
    """

    eigenvectors: Basis
    correction: Eigenvalues
    value: float = 0.0
    slope: float = 0.0
    kernel: Callable[[], DocumentKernel] | None = None

    @classmethod
    def of(
        cls,
        eigenvectors: Basis,
        eigenvalues: Eigenvalues,
        function: SpectralFunction,
        *,
        head: int = 0,
        kernel: Callable[[], DocumentKernel] | None = None,
    ) -> FactoredExpansion:
        """Take f of a spectrum; the first `head` eigenvectors are left out, tail and all."""
        first = eigenvalues[0] if len(eigenvalues) else 1.0
        relative = eigenvalues / first
        values = np.array(function.of(relative))
        values[:head] = 0
        slope = function.slope(relative)
        correction = values - function.value - slope * relative
        return cls(
            eigenvectors,
            correction.astype(eigenvectors.dtype),
            function.value,
            slope / float(first),
            kernel,
        )

    def expand(self, seeds: Positions, weights: Scores) -> Scores:
        """Return k_q · D_f; not by BLAS, whose bits change with its threads."""
        row = np.zeros(len(self.eigenvectors))
        row[seeds] = weights
        scores: Scores = np.zeros(len(row))
        if self.correction.any():
            coordinates = np.einsum("z,zk->k", weights, self.eigenvectors[seeds])
            scores = np.einsum("nk,k->n", self.eigenvectors, coordinates * self.correction)
        if self.slope and self.kernel is not None:
            scores = scores + self.slope * self.kernel().apply(row)
        if self.value:
            scores = scores + self.value * row
        return _without_rounding(scores.astype(np.float32), weights)

    def entries(self, seeds: Positions, document: int) -> Scores:
        """D_f(s, d): (z,). Cost O(z · k), and their features where f has a tail."""
        entries: Scores = self.value * (seeds == document).astype(np.float64)
        if self.correction.any():
            place = self.correction * self.eigenvectors[document]
            entries += np.einsum("zk,k->z", self.eigenvectors[seeds], place)
        if self.slope and self.kernel is not None:
            entries += self.slope * self.kernel().between(document, seeds)
        return entries


def _without_rounding(scores: Scores, weights: Scores) -> Scores:
    """Set to 0 what is no more than the rounding of float32, so that it counts as no match.

    No score is larger than the length of the weights times the largest f(λ), and the error of
    float32 grows with that length.
    """
    scores[np.abs(scores) < ROUNDING * np.sqrt(np.square(weights).sum())] = 0
    return scores


def expansion_matrix(
    kernel: DocumentKernel, spectrum: Spectrum, spectral: str, gamma: float, head: int = 0
) -> Matrix:
    """D_f: (N, N) float32. Cost O(N² · k), and N rows of K where f has a tail; 4 N² bytes."""
    factors = FactoredExpansion.of(
        spectrum.eigenvectors,
        spectrum.eigenvalues,
        SPECTRAL_FUNCTIONS[spectral](gamma),
        head=head,
    )
    U = factors.eigenvectors.astype(np.float32)
    with threadpool_limits(limits=1, user_api="blas"):
        D = (
            (U * factors.correction.astype(np.float32)) @ U.T
            if factors.correction.any()
            else np.zeros((len(U), len(U)), dtype=np.float32)
        )
    if factors.slope:
        D += (factors.slope * kernel.explicit()).astype(np.float32)
    if factors.value:
        D[np.diag_indices_from(D)] += np.float32(factors.value)
    return np.asarray(D)
