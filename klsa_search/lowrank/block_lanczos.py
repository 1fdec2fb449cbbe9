"""Block Lanczos with thick restarts: the top eigenpairs of K for many documents.

A random block Ω, K Ω, K² Ω, ... span a space that contains the top eigenvectors first [Golub,
Underwood 1977; Musco, Musco 2015]; a restart keeps the best part of a full space [Wu, Simon 2000].
A block costs a third of its columns one by one, because K is read once. Vectors and products are
float32, small matrices float64; eigenvalues are accurate to 1e-6 of the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import linalg

from klsa_search.core.array_types import Eigenvalues, Matrix
from klsa_search.core.progress import EIGENVECTORS, Progress
from klsa_search.errors import SettingsError
from klsa_search.lowrank.products import WIDTH, Block, BlockProducts

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
