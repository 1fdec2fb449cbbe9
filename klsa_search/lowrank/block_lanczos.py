"""K → its top eigenpairs where documents are many: block Lanczos with thick restarts.

A random block Ω, K Ω, K² Ω, ... span a space in which the top eigenvectors appear first [Golub,
Underwood 1977; Musco, Musco 2015]; the best of it is kept when room runs out, and the rest grows
again [Wu, Simon 2000]. A block costs a third of what its columns cost one by one, since K is read
once for all of them. Vectors and products are float32, everything of the size of the space is
float64: eigenvalues are good to a millionth of the first, far below `TOLERANCE`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from scipy import linalg

from klsa_search.core.array_types import Eigenvalues, Matrix
from klsa_search.core.progress import EIGENVECTORS, Progress
from klsa_search.errors import SettingsError
from klsa_search.lowrank.products import WIDTH, Products

GROWTH = 6 * WIDTH
"""Columns for which there is room besides those that a restart keeps."""

TOLERANCE = 1e-4
"""Largest ‖K u_i - λ_i u_i‖ / λ_1 that is accepted.

The cosine of the largest angle to the exact space is then above .99999 at 300,000 documents, and of
the 20 nearest documents by the first 50 dimensions 99.9 % are the same; ten times more changes
one in a hundred.
"""

PRODUCTS = 100
"""Products after which the solver gives up; a million documents need 14."""

RANK_TOLERANCE = 1e-5
"""Eigenvalues below this share of the first are rounding noise of float32."""

_PASSES = 8  # of orthogonalisation; two do, unless a block has lost rank
_LOST = 1e-10  # squared length, of the largest, below which a direction is rounding noise
_FLOOR = 1e-6  # the same below which float32 cannot scale a direction to length 1 at once

B = TypeVar("B")


def _kept(wanted: int) -> int:
    """How many columns a restart keeps: whole blocks, and half a one more than are wanted."""
    return -(-(wanted + WIDTH // 2) // WIDTH) * WIDTH


def max_columns(wanted: int) -> int:
    """How many columns the space may have."""
    return _kept(wanted) + GROWTH


def largest_eigenpairs(
    products: Products[B], wanted: int, *, progress: Progress | None = None
) -> tuple[Eigenvalues, list[B], float]:
    """Find the `wanted` strongest eigenpairs of K.

    Returns (wanted,) eigenvalues in float64, (N, wanted) eigenvectors in blocks of WIDTH columns,
    and the largest residual, max ‖K u_i - λ_i u_i‖ / λ_1. The same bits for any number of threads,
    and wherever blocks are kept. `progress` is called as "eigenvectors" with the products done and,
    by the fall of the residual, expected.

    Cost some 15 products with 32 columns, O(nnz · 32) each, and O(N · wanted) for each column;
    memory 4 N (wanted + 10 · 32) + 128 F bytes. SettingsError if 100 products are not enough.
    """
    kept, size = _kept(wanted), max_columns(wanted)
    V: list[B] = []
    H = np.zeros((size, size))
    W = products.random()
    for done in range(1, PRODUCTS + 1):
        W = _orthonormalised(products, V, W)
        first = len(V) * WIDTH
        held = first + WIDTH
        V.append(W)
        W = products.apply(W)
        column = products.inner(V, W)
        W = products.subtract(V, column, W)
        H[:held, first:held], H[first:held, :held] = column, column.T
        values, vectors = linalg.eigh((H[:held, :held] + H[:held, :held].T) / 2)
        values, vectors = values[::-1], vectors[:, ::-1]
        # K V = V H but for what the newest columns left over: that is the residual.
        residual = _lengths(products.inner([W], W), vectors[first:, :wanted]) / values[0]
        if progress is not None:
            progress(EIGENVECTORS, done, _expected(done, residual))
        if held >= wanted and residual <= TOLERANCE:
            break
        if held + WIDTH > size:
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


def _orthonormalised(products: Products[B], V: Sequence[B], W: B) -> B:
    """Make the columns of W orthonormal, and orthogonal to V; random ones replace what is lost."""
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
    """The length of the longest column of W C, with the Gram matrix WᵀW."""
    squares = np.einsum("ai,ab,bi->i", coefficients, gram, coefficients)
    return float(np.sqrt(max(squares.max(), 0.0)))


def _residual(products: Products[B], U: Sequence[B], values: Eigenvalues) -> float:
    """The residual max ‖K u_i - λ_i u_i‖ / λ_1 of the vectors as they are handed out."""
    longest = 0.0
    for i, some in enumerate(U):
        own = values[i * WIDTH : (i + 1) * WIDTH]
        rest = products.subtract([some], np.diag(own), products.apply(some))
        longest = max(longest, float(products.inner([rest], rest).diagonal().max()))
    return math.sqrt(longest) / float(values[0])


def _expected(done: int, residual: float) -> int:
    """Products in all, if each takes the same share of the residual away."""
    fall = math.log(min(max(residual, TOLERANCE), 0.5)) / math.log(TOLERANCE)
    return max(done, math.ceil(done / fall))
