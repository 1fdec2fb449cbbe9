"""Block Lanczos with thick restarts: the top eigenpairs of K for many documents.

A random block Ω, K Ω, K² Ω, ... span a space that contains the top eigenvectors first [Golub,
Underwood 1977; Musco, Musco 2015]; a restart keeps the best part of a full space [Wu, Simon 2000].
A block costs a third of its columns one by one, because K is read once. Vectors and products are
float32, small matrices float64; eigenvalues are accurate to 1e-6 of the first.

Products with blocks of vectors are computed in parallel, in slices of rows. Parts of whole slices
give the same bits as one piece. The features are not transposed: for Φᵀ X each thread sums over its
own range of features, document by document; for Φ T each thread computes its own rows. All sums are
in document or feature order, so the bits do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from klsa_search._native import Features
from klsa_search.core.array_types import Eigenvalues, Integers, Matrix, Numbers, csr_arrays
from klsa_search.core.progress import EIGENVECTORS, Progress
from klsa_search.errors import SettingsError
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
        starts, columns, weights = csr_arrays(features)
        weights = weights.astype(np.float32, copy=False)
        self._features = Features(columns, weights, self.shape[1])
        self._cuts = self._cut_features(starts, columns, threads)
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
    ) -> Numbers:
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


GROWTH = 6 * WIDTH
"""Columns that the space grows by between restarts."""

TOLERANCE = 1e-4
"""Limit of ‖K u_i - λ_i u_i‖ / λ_1.

At 300,000 documents the cosine of the largest angle to the exact space is then above 0.99999, and
99.9% of the 20 nearest documents by the first 50 dimensions agree; with 1e-3 it is 99%.
"""

PRODUCTS = 100
"""Limit of products; a million documents need 14."""

RANK_TOLERANCE = 1e-5
"""Eigenvalues below this, relative to the first, are rounding noise of float32."""

_PASSES = 8  # of orthogonalisation; two suffice unless a block has lost rank
_LOST = 1e-10  # relative squared length below which a direction is rounding noise
_FLOOR = 1e-6  # relative squared length below which float32 needs two passes to normalise


def _kept(wanted: int) -> int:
    """Return the number of columns that a restart keeps: `wanted` and half a block, in blocks."""
    return -(-(wanted + WIDTH // 2) // WIDTH) * WIDTH


def max_columns(wanted: int) -> int:
    """Return the maximum number of columns of the space."""
    return _kept(wanted) + GROWTH


def largest_eigenpairs(
    products: BlockProducts, wanted: int, *, progress: Progress | None = None
) -> tuple[Eigenvalues, list[Block], float]:
    """Return the `wanted` largest eigenvalues of K, their eigenvectors and the residual.

    Eigenvalues are (wanted,) float64, eigenvectors (N, wanted) in blocks of WIDTH columns, and the
    residual is max ‖K u_i - λ_i u_i‖ / λ_1. Threads do not change a bit.

    progress  called as "eigenvectors" with the products done and the estimated total

    Cost about 15 products with 32 columns, O(nnz · 32) each, and O(N · wanted) per column; memory
    4 N (wanted + 10 · 32) + 128 F bytes. SettingsError if 100 products do not suffice.
    """
    from scipy import linalg

    kept, size = _kept(wanted), max_columns(wanted)
    V: list[Block] = []
    H = np.zeros((size, size))
    W = products.random()
    for done in range(1, PRODUCTS + 1):
        W = _orthonormalised(products, V, W)
        first = len(V) * WIDTH
        size_now = first + WIDTH
        V.append(W)
        W = products.apply(W)
        column = products.inner(V, W)
        W = products.subtract(V, column, W)
        H[:size_now, first:size_now], H[first:size_now, :size_now] = column, column.T
        active = H[:size_now, :size_now]
        values, vectors = linalg.eigh((active + active.T) / 2)
        values, vectors = values[::-1], vectors[:, ::-1]
        # K V = V H up to the remainder W of the newest columns, which gives the residual.
        residual = _lengths(products.inner([W], W), vectors[first:, :wanted]) / values[0]
        if progress is not None:
            progress(EIGENVECTORS, done, _expected(done, residual))
        if size_now >= wanted and residual <= TOLERANCE:
            break
        if size_now + WIDTH > size:
            V = products.combine(V, vectors[:, :kept])
            H[:] = 0
            np.fill_diagonal(H[:kept, :kept], values[:kept])
    else:
        raise SettingsError(
            f"dimensions = {wanted - 1} did not converge: after {PRODUCTS} "
            f"products the residual is {residual:.0e} of the first eigenvalue; "
            "build with fewer dimensions",
            field="dimensions",
        )
    U = products.combine(V, vectors[:, :wanted])
    return values[:wanted], U, _residual(products, U, values[:wanted])


def _orthonormalised(products: BlockProducts, V: Sequence[Block], W: Block) -> Block:
    """Return W orthonormalised against V; random columns replace those that lost rank."""
    from scipy import linalg

    for done in range(_PASSES):
        if V:
            W = products.subtract(V, products.inner(V, W), W)
        squares, directions = linalg.eigh(products.inner([W], W))
        largest = squares[-1] or 1.0
        turn = directions / np.sqrt(np.maximum(squares, _FLOOR * largest))
        (W,) = products.combine([W], turn)
        lost = np.flatnonzero(squares <= _LOST * largest)
        if len(lost):
            W = products.renew(W, lost)
        elif done > 0 and squares[0] > 0.5:
            break
    return W


def _lengths(gram: Matrix, coefficients: Matrix) -> float:
    """Return the length of the longest column of W C, given the Gram matrix WᵀW."""
    squares = np.einsum("ai,ab,bi->i", coefficients, gram, coefficients)
    return float(np.sqrt(max(squares.max(), 0.0)))


def _residual(products: BlockProducts, U: Sequence[Block], values: Eigenvalues) -> float:
    """Return the residual max ‖K u_i - λ_i u_i‖ / λ_1 of the final vectors."""
    longest = 0.0
    for i, some in enumerate(U):
        block = values[i * WIDTH : (i + 1) * WIDTH]
        rest = products.subtract([some], np.diag(block), products.apply(some))
        longest = max(longest, float(products.inner([rest], rest).diagonal().max()))
    return math.sqrt(longest) / float(values[0])


def _expected(done: int, residual: float) -> int:
    """Return the estimated total of products if the residual falls geometrically."""
    fall = math.log(min(max(residual, TOLERANCE), 0.5)) / math.log(TOLERANCE)
    return max(done, math.ceil(done / fall))
