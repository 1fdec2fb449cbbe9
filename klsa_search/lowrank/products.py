"""Products of K with blocks of vectors, compiled, on all processors, in float32.

A slice is the same rows wherever they are kept, so that blocks in parts of whole slices give the
same bits as blocks in one piece.

The features are read as they stand, without a transposed copy: on the way to the features each
thread adds to a range of its own, document by document, and on the way back each makes rows of its
own. Every sum is taken in document or feature order, so no bit depends on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Matrix, Positions
from klsa_search.core.compiling import compiled
from klsa_search.kernels.document_kernel import DocumentKernel

ROWS = 8192
"""Rows of a slice."""

WIDTH = 32
"""Columns of a block: more read K less often, fewer make more of each product."""

Block = npt.NDArray[np.float32]
"""(N, b) contiguous, b <= WIDTH."""


def slices(rows: int) -> list[slice]:
    """Cut so many rows into slices; the last may be short."""
    return [slice(first, min(first + ROWS, rows)) for first in range(0, rows, ROWS)]


def slice_number(row: int) -> int:
    """The number of the slice that a row is in."""
    return row // ROWS


def inner_of(X: Sequence[Block], Y: Block, rows: slice) -> Matrix:
    """Xᵀ Y of a slice: (n, a), (n, b) → (a, b), X in blocks of columns."""
    return np.concatenate([block[rows].T @ Y[rows] for block in X])


def subtract_of(X: Sequence[Block], C: Block, Y: Block, rows: slice) -> None:
    """Y -= X C of a slice, in place: (n, a), (a, b), (n, b)."""
    for block, some in zip(X, split(C, X), strict=True):
        Y[rows] -= block[rows] @ some


def combined_of(X: Sequence[Block], C: Block, rows: slice) -> Block:
    """X C of a slice: (n, a), (a, b) → (n, b)."""
    first, *others = zip(X, split(C, X), strict=True)
    out: Block = first[0][rows] @ first[1]
    for block, some in others:
        out += block[rows] @ some
    return out


def random_of(seed: int, draw: int, number: int, shape: tuple[int, int]) -> Block:
    """Random numbers of the slice of that number, the same wherever it is drawn."""
    return np.random.default_rng((seed, draw, number)).standard_normal(shape, np.float32)


def split(C: Block, X: Sequence[Block]) -> list[Block]:
    """The rows of C that meet each block of X."""
    edges = accumulate((block.shape[1] for block in X), initial=0)
    return [np.ascontiguousarray(C[first:last]) for first, last in pairwise(edges)]


B = TypeVar("B")


class Products(Protocol[B]):
    """What the block solver does with blocks B of columns, wherever they are kept."""

    def random(self) -> B:
        """Draw a block of WIDTH columns."""

    def renew(self, W: B, columns: Positions) -> B:
        """Replace columns of a block by random ones of about length 1; W is gone."""

    def apply(self, X: B) -> B:
        """K X: (N, b) → (N, b). Cost O(nnz · b)."""

    def inner(self, X: Sequence[B], Y: B) -> Matrix:
        """Xᵀ Y in float64: (N, a), (N, b) → (a, b). Cost O(N · a · b)."""

    def subtract(self, X: Sequence[B], C: Matrix, Y: B) -> B:
        """Y - X C: (N, a), (a, b), (N, b) → (N, b); Y is gone. Cost O(N · a · b)."""

    def combine(self, X: Sequence[B], C: Matrix) -> list[B]:
        """X C: (N, a), (a, b) → (N, b), b <= a; X is gone. Cost O(N · a · b)."""


class BlockProducts:
    """The products in memory.

    Memory: the features in float32 if they are not, F floats for each column of a block, and the
    places where N documents are cut, once for each thread. BLAS has to be held to one thread: the
    slices are what runs side by side.
    """

    def __init__(
        self, kernel: DocumentKernel, workers: ThreadPoolExecutor, threads: int, *, seed: int
    ) -> None:
        features = kernel.features
        if not features.has_sorted_indices:
            features = features.sorted_indices()
        self.shape = features.shape
        self._workers, self._seed, self._draws = workers, seed, 0
        self._features = (features.indices, features.data.astype(np.float32, copy=False))
        self._cuts = _cuts(features.indptr, features.indices, self.shape[1], threads)
        self._centring = centring_of(kernel)
        self._mean_square = kernel.mean_square
        self._on_features = np.empty((self.shape[1], 0), np.float32)

    def random(self) -> Block:
        """Draw a block of WIDTH columns."""
        return self._drawn(WIDTH)

    def renew(self, W: Block, columns: Positions) -> Block:
        """Replace columns, in place."""
        W[:, columns] = self._drawn(len(columns))
        W[:, columns] /= np.float32(math.sqrt(len(W)))
        return W

    def apply(self, X: Block) -> Block:
        """K X: (N, b) → (N, b). Cost O(nnz · b)."""
        F = self.shape[1]
        if self._on_features.shape[1] != X.shape[1]:
            self._on_features = np.empty((F, X.shape[1]), np.float32)
        T = self._on_features
        T[:] = 0
        cuts = self._cuts
        for _ in self._workers.map(
            lambda i: to_features(*self._features, cuts[i], cuts[i + 1], X, T),
            range(len(cuts) - 1),
        ):
            pass
        shift = shift_of(self.inner([self._centring], X), self._mean_square)
        Y = np.empty_like(X)

        def of_slice(rows: slice) -> None:
            from_mean(self._centring[rows], shift, Y[rows])
            to_documents(*self._features, cuts[0][rows], cuts[-1][rows], T, Y[rows])

        self._each_slice(of_slice)
        return Y

    def inner(self, X: Sequence[Block], Y: Block) -> Matrix:
        """Xᵀ Y: slices are added one after the other."""
        total = np.zeros((sum(block.shape[1] for block in X), Y.shape[1]))
        for part in self._workers.map(lambda rows: inner_of(X, Y, rows), slices(len(Y))):
            total += part
        return total

    def subtract(self, X: Sequence[Block], C: Matrix, Y: Block) -> Block:
        """Y - X C, in place."""
        coefficients = C.astype(np.float32)
        self._each_slice(lambda rows: subtract_of(X, coefficients, Y, rows))
        return Y

    def combine(self, X: Sequence[Block], C: Matrix) -> list[Block]:
        """X C, in the place of X."""
        coefficients = columns_of(C)
        out = [
            block if block.shape[1] == some.shape[1] else np.empty((len(block), some.shape[1]), "f")
            for block, some in zip(X, coefficients, strict=False)
        ]

        def of_slice(rows: slice) -> None:
            results = [combined_of(X, some, rows) for some in coefficients]
            for block, result in zip(out, results, strict=True):
                block[rows] = result

        self._each_slice(of_slice)
        return out

    def _drawn(self, columns: int) -> Block:
        W = np.empty((self.shape[0], columns), np.float32)
        for number, rows in enumerate(slices(len(W))):
            shape = (rows.stop - rows.start, columns)
            W[rows] = random_of(self._seed, self._draws, number, shape)
        self._draws += 1
        return W

    def _each_slice(self, task: Callable[[slice], None]) -> None:
        for _ in self._workers.map(task, slices(self.shape[0])):
            pass


def columns_of(C: Matrix) -> list[Block]:
    """The coefficients of each block of a product X C."""
    return [
        np.ascontiguousarray(C[:, first : first + WIDTH], np.float32)
        for first in range(0, C.shape[1], WIDTH)
    ]


def centring_of(kernel: DocumentKernel) -> Block:
    """What the mean document takes from each other one: (N, 2), S and SΦμ."""
    return np.stack((kernel.scales, kernel.towards_mean), axis=1).astype(np.float32)


def shift_of(centred: Matrix, mean_square: float) -> Block:
    """What of the mean document comes out of a product: (2, b), a product of rank two.

    centred  (2, b), the centring times the block: so the mean meets no block
    """
    scaled, towards = centred
    return np.stack((towards - mean_square * scaled, scaled)).astype(np.float32)


def _cuts(starts: Any, columns: Any, F: int, ranges: int) -> npt.NDArray[np.integer[Any]]:
    """Where each of some ranges of features, equally heavy, begins in each document, and ends."""
    weight = np.cumsum(np.bincount(columns, minlength=F))
    edges = np.searchsorted(weight, np.arange(1, ranges) * weight[-1] / ranges)
    cuts = np.empty((ranges + 1, len(starts) - 1), starts.dtype)
    cuts[0], cuts[-1] = starts[:-1], starts[1:]
    for i, edge in enumerate(edges, start=1):
        find_edge(starts, columns, edge, cuts[i])
    return cuts


@compiled
def find_edge(starts: Any, columns: Any, edge: int, places: Any) -> None:
    """Find where the features of each document come to an edge: (N,) places."""
    for d in range(len(places)):
        places[d] = starts[d] + np.searchsorted(columns[starts[d] : starts[d + 1]], edge)


@compiled
def to_features(columns: Any, weights: Any, begins: Any, ends: Any, X: Any, T: Any) -> None:
    """T += Φᵀ X, document by document, of the features between `begins` and `ends` of each."""
    width = T.shape[1]
    for d in range(len(begins)):
        x = X[d]
        for p in range(begins[d], ends[d]):
            t, weight = T[columns[p]], weights[p]
            for j in range(width):
                t[j] += weight * x[j]


@compiled
def from_mean(centring: Any, shift: Any, Y: Any) -> None:
    """Y = what the mean document takes away."""
    for d in range(len(Y)):
        y = Y[d]
        for j in range(Y.shape[1]):
            y[j] = -centring[d, 0] * shift[0, j] - centring[d, 1] * shift[1, j]


@compiled
def to_documents(columns: Any, weights: Any, begins: Any, ends: Any, T: Any, Y: Any) -> None:
    """Y += Φ T, of the features between `begins` and `ends` of each document, in their order."""
    width = T.shape[1]
    for d in range(len(begins)):
        y = Y[d]
        for p in range(begins[d], ends[d]):
            t, weight = T[columns[p]], weights[p]
            for j in range(width):
                y[j] += weight * t[j]
