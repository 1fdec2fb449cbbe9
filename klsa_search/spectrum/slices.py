"""Slices of blocks of columns: what one task does, and what float32 sums before float64 does.

A slice is the same rows wherever they are kept, so that blocks in parts of whole slices give the
same bits as blocks in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix

ROWS = 8192
"""Rows of a slice."""

WIDTH = 32
"""Columns of a block: more read K less often, fewer make more of each product."""

Block = npt.NDArray[np.float32]
"""(N, b) contiguous, b <= WIDTH."""


def slices(rows: int) -> list[slice]:
    """Cut so many rows into slices; the last may be short."""
    return [slice(first, min(first + ROWS, rows)) for first in range(0, rows, ROWS)]


def number_of(row: int) -> int:
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
