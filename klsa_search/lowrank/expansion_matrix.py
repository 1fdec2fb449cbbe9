"""The expansion matrix D = U f(Λ) Uᵀ, by a function f of the spectrum, and the top-z threshold.

[KLSA §3.3]. Eigenvalues are divided by the first, so γ does not depend on the collection, and
nothing overflows. Beyond the stored eigenvectors f is replaced by the line from f(0) to f(λ_k),
with slope s:

    D_f ≈ f(0) I + s K + U (f(Λ) - f(0) - s Λ) Uᵀ,

so the tail of the spectrum is kept, unless f is 0 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Basis, DocIds, Eigenvalues, Matrix, Scores
from klsa_search.core.parallel import one_blas_thread
from klsa_search.core.plugins import load_plugin
from klsa_search.errors import PluginFailed

if TYPE_CHECKING:
    from klsa_search.kernels.document_kernel import DocumentKernel, FeatureSums
    from klsa_search.lowrank.eigensolver import Decomposition


@dataclass(frozen=True)
class SpectralFunction:
    """A function f of the spectrum.

    of     λ → f(λ), for eigenvalues divided by the first, in (0, 1]
    value  f(0)
    tail   whether f applies beyond the stored eigenvectors
    """

    of: Callable[[Eigenvalues], Eigenvalues]
    value: float
    tail: bool = True

    def slope(self, relative: Eigenvalues) -> float:
        """Return the slope of the line from f(0) to f at the last eigenvalue, 0 without a tail.

        The eigenvalues of the tail lie between these ends. The tangent at 0 would overestimate a
        concave f such as squashing.
        """
        if not self.tail or len(relative) == 0:
            return 0.0
        last = relative[-1:]
        return float(((self.of(last) - self.value) / last)[0])


SPECTRAL_FUNCTIONS: Final[Mapping[str, Callable[[float], SpectralFunction]]] = {
    # D_f = exp(γK)
    "exponential": lambda gamma: SpectralFunction(lambda x: np.exp(gamma * x), value=1.0),
    # f(λ) = λ; γ is not used, and the tail is exact
    "gvsm": lambda gamma: SpectralFunction(lambda x: x, value=0.0),
    # near 1 above γ, linear below; D_f = K (K + γI)⁻¹
    "squashing": lambda gamma: SpectralFunction(lambda x: x / (x + gamma), value=0.0),
    # 1 for the k largest, else 0; γ is not used
    "truncation": lambda gamma: SpectralFunction(np.ones_like, value=0.0, tail=False),
    # for γ below 1: D_f = (I - γK)⁻¹
    "von-neumann": lambda gamma: SpectralFunction(lambda x: 1 / (1 - gamma * x), value=1.0),
}
"""Functions of the spectrum by name, for a γ."""


def spectral_function(name: str, gamma: float) -> SpectralFunction:
    """Return the function of a built-in name or of a plug-in, for a γ; PluginFailed."""
    if name in SPECTRAL_FUNCTIONS:
        return SPECTRAL_FUNCTIONS[name](gamma)
    try:
        function = load_plugin("spectral", name)(gamma)
    except Exception as error:  # code of another package may raise anything
        raise PluginFailed(
            f"spectral `{name}` failed with gamma = {gamma} ({type(error).__name__}: {error}); "
            "correct it, or use another gamma",
            field="spectral",
        ) from error
    if not isinstance(function, SpectralFunction):
        raise PluginFailed(
            f"spectral `{name}` returned {function!r}; it must return a SpectralFunction",
            field="spectral",
        )
    return function


def largest_entries(row: npt.NDArray[Any], z: int) -> tuple[DocIds, npt.NDArray[Any]]:
    """Return doc ids and values of the z largest positive entries, largest first.

    Ties are ordered by doc id; fewer than z are returned if fewer are positive.
    Cost O(N + z log z).
    """
    documents = np.flatnonzero(row > 0)
    values = row[documents]
    if len(documents) > z:
        threshold = np.partition(values, len(documents) - z)[len(documents) - z]
        above = documents[values > threshold]
        tied = documents[values == threshold][: z - len(above)]
        documents = np.sort(np.concatenate((above, tied)))
        values = row[documents]
    order = np.argsort(-values, kind="stable")
    return documents[order], values[order]


ROUNDING = 1e-6


@dataclass(frozen=True)
class Expansion:
    """D_f = f(0) I + s K + U (f(Λ) - f(0) - s Λ) Uᵀ, by its rows if they are stored.

    eigenvectors  U: (N, k)
    correction    (k,) f(Λ) - f(0) - s Λ, with Λ divided by λ_1; 0 if f is linear
    value         f(0)
    slope         s / λ_1, the slope of the tail
    kernel        returns K; called only if the slope is not 0
    rows          (N, N) float32, all entries of the rows of D

    Cost: O(z · N) for z stored rows; otherwise O((z + N) · k) for the eigenvectors, and one product
    with the features, O(nnz), if f has a tail.
    """

    eigenvectors: Basis
    correction: Eigenvalues
    value: float = 0.0
    slope: float = 0.0
    kernel: Callable[[], DocumentKernel] | None = None
    rows: Matrix | None = None

    @classmethod
    def of(
        cls,
        eigenvectors: Basis,
        eigenvalues: Eigenvalues,
        function: SpectralFunction,
        *,
        head: int = 0,
        kernel: Callable[[], DocumentKernel] | None = None,
    ) -> Expansion:
        """Return the expansion by f of a spectrum, without the first `head` eigenvectors."""
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

    def expand(
        self,
        seeds: DocIds,
        weights: Scores,
        of_all: Callable[[FeatureSums], FeatureSums] = lambda sums: sums,
    ) -> Scores:
        """Return (N,) scores k_q · D of the row k_q with `weights` at `seeds`, and 0 elsewhere.

        of_all  returns the sums over the seeds of all partitions, given those of this one
        Without BLAS, and row by row, so the bits do not depend on threads.
        """
        if self.rows is not None:
            total = np.zeros(self.rows.shape[1], dtype=np.float32)
            for seed, weight in zip(seeds.tolist(), weights, strict=True):
                total += weight * self.rows[seed]
            return _without_rounding(total, weights)
        row = np.zeros(len(self.eigenvectors))
        row[seeds] = weights
        scores: Scores = np.zeros(len(row))
        if self.correction.any():
            coordinates = np.einsum("z,zk->k", weights, self.eigenvectors[seeds])
            scores = np.einsum("nk,k->n", self.eigenvectors, coordinates * self.correction)
        if self.slope and self.kernel is not None:
            kernel = self.kernel()
            scores = scores + self.slope * kernel.with_sums(of_all(kernel.sums(row)))
        if self.value:
            scores = scores + self.value * row
        return _without_rounding(scores.astype(np.float32), weights)

    def entries(self, seeds: DocIds, document: int) -> Scores:
        """Return D(s, d) for each seed: (z,). Cost O(z · k), and their features if f has a tail."""
        if self.rows is not None:
            return np.asarray(self.rows[seeds, document])
        entries: Scores = self.value * (seeds == document).astype(np.float64)
        if self.correction.any():
            weighted = self.correction * self.eigenvectors[document]
            entries += np.einsum("zk,k->z", self.eigenvectors[seeds], weighted)
        if self.slope and self.kernel is not None:
            entries += self.slope * self.kernel().between(document, seeds)
        return entries


def _without_rounding(scores: Scores, weights: Scores) -> Scores:
    """Set scores that are only rounding of float32 to 0, so that they do not count as matches.

    The error grows with the norm of the weights.
    """
    scores[np.abs(scores) < ROUNDING * np.sqrt(np.square(weights).sum())] = 0
    return scores


_BLOCK = 1024  # rows of K at a time, in float64


def expansion_rows(
    kernel: DocumentKernel, spectrum: Decomposition, spectral: str, gamma: float, head: int = 0
) -> Matrix:
    """Return D_f: (N, N) float32. Cost O(N² · k), N rows of K if f has a tail; 4 N² bytes."""
    factors = Expansion.of(
        spectrum.eigenvectors, spectrum.eigenvalues, spectral_function(spectral, gamma), head=head
    )
    U = factors.eigenvectors.astype(np.float32)
    with one_blas_thread():
        D = (U * factors.correction.astype(np.float32)) @ U.T
    if factors.slope:
        for begin in range(0, len(D), _BLOCK):
            documents = np.arange(begin, min(begin + _BLOCK, len(D)))
            D[documents] += (factors.slope * kernel.rows(documents)).astype(np.float32)
    D[np.diag_indices_from(D)] += np.float32(factors.value)
    return np.asarray(D)
