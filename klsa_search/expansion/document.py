"""The document expansion D = U I_k Uᵀ, whole or in its factors [KLSA §3.3].

Both forms answer one question: what does a sparse kernel row, some seed documents and their
weights, become after k_q · D?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from klsa_search.arrays import Basis, Matrix, Positions, Scores

ROUNDING = 1e-6


class Expansion(Protocol):
    """k_q · D for a row that is 0 but for its seeds."""

    def expand(self, seeds: Positions, weights: Scores) -> Scores:
        """Return (N,) scores of the row with `weights` at `seeds`."""


@dataclass(frozen=True)
class WholeExpansion:
    """D as an (N, N) array; z rows of it are read. Cost O(z · N)."""

    matrix: Matrix

    def expand(self, seeds: Positions, weights: Scores) -> Scores:
        """Σ weight · row of D, added seed by seed, so that no thread count changes the bits."""
        scores = np.zeros(self.matrix.shape[1], dtype=np.float32)
        for seed, weight in zip(seeds.tolist(), weights, strict=True):
            scores += weight * self.matrix[seed]
        return _without_rounding(scores, weights)


@dataclass(frozen=True)
class FactoredExpansion:
    """D as U: project the seeds onto the k eigenvectors and back. Cost O((z + N) · k)."""

    eigenvectors: Basis

    def expand(self, seeds: Positions, weights: Scores) -> Scores:
        """(weights · U_seeds) · Uᵀ [LSK §3]; not by BLAS, whose bits change with its threads."""
        coordinates = np.einsum("z,zk->k", weights, self.eigenvectors[seeds])
        return _without_rounding(np.einsum("nk,k->n", self.eigenvectors, coordinates), weights)


def _without_rounding(scores: Scores, weights: Scores) -> Scores:
    """Set to 0 what is no more than the rounding of float32, so that it counts as no match.

    The entries of a projection are at most 1, so a score is at most the sum of the weights.
    """
    scores[np.abs(scores) < ROUNDING * np.abs(weights).sum()] = 0
    return scores


def expansion_matrix(eigenvectors: Basis) -> Matrix:
    """D: (N, N) float32. Cost O(N² · k), memory 4 N² bytes."""
    factor = eigenvectors.astype(np.float32)
    with threadpool_limits(limits=1, user_api="blas"):
        return np.asarray(factor @ factor.T)
