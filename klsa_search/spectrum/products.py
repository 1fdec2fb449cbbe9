"""Products of K with blocks of columns, compiled, over all processors, in float32.

The features are read as they stand, without a transposed copy: on the way to the features each
thread adds to a range of its own, document by document, and on the way back each makes rows of its
own. Every sum is taken in document or feature order, so no bit depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix
from klsa_search.compiled import compiled
from klsa_search.kernel import DocumentKernel

ROWS = 8192
"""Rows of a slice: what one task of a thread does, and what float32 sums before float64 does."""

Block = npt.NDArray[np.float32]


class BlockProducts:
    """K X for blocks X of columns, and the dense products a block solver needs beside it.

    Memory: the features in float32 if they are not, F floats for each column of a block, and the
    places where N documents are cut, once for each thread. BLAS has to be held to one thread: the
    slices are what runs side by side.
    """

    def __init__(self, kernel: DocumentKernel, workers: ThreadPoolExecutor, threads: int) -> None:
        features = kernel.features
        if not features.has_sorted_indices:
            features = features.sorted_indices()
        self.shape = features.shape
        self._workers = workers
        self._features = (
            features.indptr,
            features.indices,
            features.data.astype(np.float32, copy=False),
        )
        self._cuts = _cuts(features.indptr, features.indices, self.shape[1], threads)
        self._centring = np.stack((kernel.scales, kernel.towards_mean), axis=1).astype(np.float32)
        self._mean_square = kernel.mean_square
        self._on_features = np.empty((self.shape[1], 0), np.float32)

    def apply(self, X: Block) -> Block:
        """K X: (N, b) → (N, b). Cost O(nnz · b)."""
        N, F = self.shape
        if self._on_features.shape[1] != X.shape[1]:
            self._on_features = np.empty((F, X.shape[1]), np.float32)
        T = self._on_features
        T[:] = 0
        cuts = self._cuts
        self._each(
            lambda i: _to_features(*self._features, cuts[i], cuts[i + 1], X, T), len(cuts) - 1
        )
        # The mean document comes out last, as a product of rank two: it meets no block.
        scaled, towards = self.inner(self._centring, X)
        shift = np.stack((towards - self._mean_square * scaled, scaled)).astype(np.float32)
        Y = np.empty_like(X)
        self._each_slice(
            lambda rows: _to_documents(
                *self._features, T, self._centring, shift, Y, rows.start, min(rows.stop, N)
            )
        )
        return Y

    def inner(self, X: Block, Y: Block) -> Matrix:
        """Xᵀ Y in float64: (N, a), (N, b) → (a, b). Cost O(N · a · b)."""
        total = np.zeros((X.shape[1], Y.shape[1]))
        for part in self._workers.map(lambda rows: X[rows].T @ Y[rows], self._slices()):
            total += part
        return total

    def subtract(self, X: Block, C: Matrix, Y: Block) -> None:
        """Y -= X C, in place: (N, a), (a, b), (N, b). Cost O(N · a · b)."""
        coefficients = C.astype(np.float32)

        def of_slice(rows: slice) -> None:
            Y[rows] -= X[rows] @ coefficients

        self._each_slice(of_slice)

    def combine(self, X: Block, C: Matrix, out: Block) -> None:
        """Write X C to `out`, which may be columns of X: (N, a), (a, b), (N, b). O(N · a · b)."""
        coefficients = C.astype(np.float32)

        def of_slice(rows: slice) -> None:
            out[rows] = X[rows] @ coefficients

        self._each_slice(of_slice)

    def _slices(self) -> list[slice]:
        return [slice(first, first + ROWS) for first in range(0, self.shape[0], ROWS)]

    def _each_slice(self, task: Callable[[slice], None]) -> None:
        for _ in self._workers.map(task, self._slices()):
            pass

    def _each(self, task: Callable[[int], None], count: int) -> None:
        for _ in self._workers.map(task, range(count)):
            pass


def _cuts(starts: Any, columns: Any, F: int, ranges: int) -> npt.NDArray[np.integer[Any]]:
    """Where each of some ranges of features, equally heavy, begins in each document, and ends."""
    weight = np.cumsum(np.bincount(columns, minlength=F))
    edges = np.searchsorted(weight, np.arange(1, ranges) * weight[-1] / ranges)
    cuts = np.empty((ranges + 1, len(starts) - 1), starts.dtype)
    cuts[0], cuts[-1] = starts[:-1], starts[1:]
    for i, edge in enumerate(edges, start=1):
        _find(starts, columns, edge, cuts[i])
    return cuts


@compiled
def _find(starts: Any, columns: Any, edge: int, places: Any) -> None:
    for d in range(len(places)):
        places[d] = starts[d] + np.searchsorted(columns[starts[d] : starts[d + 1]], edge)


@compiled
def _to_features(
    starts: Any, columns: Any, weights: Any, begins: Any, ends: Any, X: Any, T: Any
) -> None:
    width = T.shape[1]
    for d in range(len(begins)):
        x = X[d]
        for p in range(begins[d], ends[d]):
            t, weight = T[columns[p]], weights[p]
            for j in range(width):
                t[j] += weight * x[j]


@compiled
def _to_documents(
    starts: Any, columns: Any, weights: Any, T: Any, centring: Any, shift: Any, Y: Any,
    first: int, last: int,
) -> None:  # fmt: skip
    width = T.shape[1]
    for d in range(first, last):
        y = Y[d]
        for j in range(width):
            y[j] = -centring[d, 0] * shift[0, j] - centring[d, 1] * shift[1, j]
        for p in range(starts[d], starts[d + 1]):
            t, weight = T[columns[p]], weights[p]
            for j in range(width):
                y[j] += weight * t[j]
