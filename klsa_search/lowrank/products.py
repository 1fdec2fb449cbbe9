"""Products of K with blocks of vectors in float32, in parallel.

Blocks are processed in slices of rows. Parts of whole slices give the same bits as one piece.

The features are not transposed: for Φᵀ X each thread sums over its own range of features, document
by document; for Φ T each thread computes its own rows. All sums are in document or feature order,
so the bits do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from klsa_search._native import Features
from klsa_search.core.array_types import Integers, Matrix
from klsa_search.kernels.document_kernel import DocumentKernel

ROWS = 8192
"""Rows of a slice."""

WIDTH = 32
"""Columns of a block: a wider one reads K less often, a narrower one needs fewer products."""

Block = npt.NDArray[np.float32]
"""(N, b) contiguous, b <= WIDTH."""


def slices(rows: int) -> list[slice]:
    """Return the slices of so many rows; the last may be shorter."""
    return [slice(first, min(first + ROWS, rows)) for first in range(0, rows, ROWS)]


class BlockProducts:
    """Operations of the block solver on blocks of columns.

    Memory: the features in float32 unless they are, F floats per column of a block, and N offsets
    per thread. The caller limits BLAS to one thread, because slices run in parallel.
    """

    def __init__(
        self, kernel: DocumentKernel, workers: ThreadPoolExecutor, threads: int, *, seed: int
    ) -> None:
        features = kernel.features
        if not features.has_sorted_indices:
            features = features.sorted_indices()
        self.shape = features.shape
        self._workers, self._seed, self._draws = workers, seed, 0
        columns = features.indices.astype(np.int32, copy=False)
        weights = features.data.astype(np.float32, copy=False)
        self._features = Features(columns, weights, self.shape[1])
        self._cuts = self._cut_features(features.indptr, columns, threads)
        centring = np.stack((kernel.scales, kernel.towards_mean), axis=1)
        self._centring = centring.astype(np.float32)
        self._mean_square = kernel.mean_square
        self._on_features = np.empty((self.shape[1], 0), np.float32)

    def random(self) -> Block:
        """Return a random block of WIDTH columns."""
        return self._draw(WIDTH)

    def renew(self, W: Block, columns: Integers) -> Block:
        """Replace columns by random ones of length about 1, in place."""
        W[:, columns] = self._draw(len(columns))
        W[:, columns] /= np.float32(math.sqrt(len(W)))
        return W

    def apply(self, X: Block) -> Block:
        """Return K X: (N, b) → (N, b). Cost O(nnz · b)."""
        F = self.shape[1]
        if self._on_features.shape[1] != X.shape[1]:
            self._on_features = np.empty((F, X.shape[1]), np.float32)
        T = self._on_features
        T[:] = 0
        cuts = self._cuts
        for _ in self._workers.map(
            lambda i: self._features.add_to_features(cuts[i], cuts[i + 1], X, T),
            range(len(cuts) - 1),
        ):
            pass
        # The centring term of K X has rank 2.
        scaled, towards = self.inner([self._centring], X)
        shift = np.stack((towards - self._mean_square * scaled, scaled)).astype(np.float32)
        Y = np.empty_like(X)

        def of_slice(rows: slice) -> None:
            centring = self._centring[rows]
            Y[rows] = -centring[:, :1] * shift[0] - centring[:, 1:] * shift[1]
            self._features.add_to_documents(cuts[0][rows], cuts[-1][rows], T, Y[rows])

        self._for_slices(of_slice)
        return Y

    def inner(self, X: Sequence[Block], Y: Block) -> Matrix:
        """Return Xᵀ Y in float64: (N, a), (N, b) → (a, b). Cost O(N · a · b)."""
        total = np.zeros((sum(block.shape[1] for block in X), Y.shape[1]))

        def of_slice(rows: slice) -> Matrix:
            return np.concatenate([block[rows].T @ Y[rows] for block in X])

        for part in self._workers.map(of_slice, slices(len(Y))):
            total += part
        return total

    def subtract(self, X: Sequence[Block], C: Matrix, Y: Block) -> Block:
        """Subtract X C from Y, in place: (N, a), (a, b), (N, b). Cost O(N · a · b)."""
        pairs = _pairs(X, C.astype(np.float32))

        def of_slice(rows: slice) -> None:
            for block, some in pairs:
                Y[rows] -= block[rows] @ some

        self._for_slices(of_slice)
        return Y

    def combine(self, X: Sequence[Block], C: Matrix) -> list[Block]:
        """Return X C in the memory of X: (N, a), (a, b), b <= a. Cost O(N · a · b)."""
        coefficients = [
            np.ascontiguousarray(C[:, first : first + WIDTH], np.float32)
            for first in range(0, C.shape[1], WIDTH)
        ]
        out = [
            block if block.shape[1] == some.shape[1] else np.empty((len(block), some.shape[1]), "f")
            for block, some in zip(X, coefficients, strict=False)
        ]

        pairs = [_pairs(X, some) for some in coefficients]

        def of_slice(rows: slice) -> None:
            results = []
            for (first, factor), *rest in pairs:
                result = first[rows] @ factor
                for block, some in rest:
                    result += block[rows] @ some
                results.append(result)
            for block, result in zip(out, results, strict=True):
                block[rows] = result

        self._for_slices(of_slice)
        return out

    def _cut_features(
        self, starts: Integers, columns: npt.NDArray[np.int32], ranges: int
    ) -> npt.NDArray[np.int64]:
        """Return the first entry of each document in ranges of equally many entries, and the end.

        Ranges are of features: (ranges + 1, N).
        """
        weight = np.cumsum(np.bincount(columns, minlength=self.shape[1]))
        edges = np.searchsorted(weight, np.arange(1, ranges) * weight[-1] / ranges)
        cuts = np.empty((ranges + 1, len(starts) - 1), np.int64)
        cuts[0], cuts[-1] = starts[:-1], starts[1:]
        for i, edge in enumerate(edges, start=1):
            self._features.find_edge(cuts[0], cuts[-1], int(edge), cuts[i])
        return cuts

    def _draw(self, columns: int) -> Block:
        W = np.empty((self.shape[0], columns), np.float32)
        for number, rows in enumerate(slices(len(W))):
            generator = np.random.default_rng((self._seed, self._draws, number))
            W[rows] = generator.standard_normal((rows.stop - rows.start, columns), np.float32)
        self._draws += 1
        return W

    def _for_slices(self, task: Callable[[slice], None]) -> None:
        for _ in self._workers.map(task, slices(self.shape[0])):
            pass


def _pairs(X: Sequence[Block], C: Block) -> list[tuple[Block, Block]]:
    """Return each block of X with its rows of C, the factors of X C."""
    edges = accumulate((block.shape[1] for block in X), initial=0)
    rows = [np.ascontiguousarray(C[first:last]) for first, last in pairwise(edges)]
    return list(zip(X, rows, strict=True))
