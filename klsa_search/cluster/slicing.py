"""Pieces of blocks of columns: the steps that make them, of what one shard or range has.

Each makes a piece, slice by slice, and where that is asked for sums it with others, by slices, in
the same step. A piece is in `piece`, or `T` where it is of a range of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from klsa_search.cluster.files import mapped, save
from klsa_search.cluster.kernels import Part, range_of
from klsa_search.cluster.work import Made
from klsa_search.spectrum.products import from_mean, to_documents, to_features
from klsa_search.spectrum.slices import (
    Block,
    combined_of,
    inner_of,
    random_of,
    slices,
    subtract_of,
)

SUMS = "sums.f32"
"""The sums of each slice, (slices, a, b); no array file, as it stays when the piece goes."""

PIECE, ITSELF = "piece", "itself"

Against = Sequence[Any] | None
"""What a piece is summed with: pairs of a folder and an array, or itself."""


def draw(
    out: Path, *, seed: int, draw: int, number: int, documents: int, columns: int, against: Against
) -> None:
    """Random numbers; `number` is that of the first slice of the documents."""
    _finish(out, _drawn(seed, draw, number, documents, columns), against)


def renew(
    out: Path, *, piece: Made, columns: list[int], length: float, seed: int, draw: int,
    number: int, documents: int, against: Against,
) -> None:  # fmt: skip
    """Replace columns by random ones, over a length."""
    W = np.array(mapped(piece, PIECE))
    W[:, columns] = _drawn(seed, draw, number, documents, len(columns))
    W[:, columns] /= np.float32(length)
    _finish(out, W, against)


def _drawn(seed: int, draw: int, number: int, documents: int, columns: int) -> Block:
    W = np.empty((documents, columns), np.float32)
    for i, rows in enumerate(slices(documents)):
        W[rows] = random_of(seed, draw, number + i, (rows.stop - rows.start, columns))
    return W


def to_range(
    out: Path, *, parts: Sequence[Part], pieces: Sequence[Made], number: int, size: int
) -> None:
    """The product of a range of features with all documents, in document order."""
    T: Block | None = None
    for part, piece in zip(parts, pieces, strict=True):
        X = mapped(piece, PIECE)
        if T is None:
            T = np.zeros((size, X.shape[1]), np.float32)
        starts, columns, weights = range_of(part, number)
        to_features(columns, weights, starts[:-1], starts[1:], X, T)
    assert T is not None
    save(out, T=T)


def to_part(
    out: Path, *, part: Part, features: Sequence[Made], shift: Block, against: Against
) -> None:
    """From the features back to the documents of a part, range by range."""
    Y = np.empty((part["documents"], shift.shape[1]), np.float32)
    from_mean(mapped(part["kernel"], "centring"), shift, Y)
    for number, of_range in enumerate(features):
        starts, columns, weights = range_of(part, number)
        to_documents(columns, weights, starts[:-1], starts[1:], mapped(of_range, "T"), Y)
    _finish(out, Y, against)


def subtract(
    out: Path, *, piece: Made, others: Sequence[Made], coefficients: Block, against: Against
) -> None:
    """Y - X C, `others` being the pieces of X."""
    Y = np.array(mapped(piece, PIECE))
    X = [mapped(other, PIECE) for other in others]
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in slices(len(Y)):
            subtract_of(X, coefficients, Y, rows)
    _finish(out, Y, against)


def combine(out: Path, *, pieces: Sequence[Made], coefficients: Block, against: Against) -> None:
    """X C, `pieces` being those of X."""
    X = [mapped(piece, PIECE) for piece in pieces]
    W = np.empty((len(X[0]), coefficients.shape[1]), np.float32)
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in slices(len(W)):
            W[rows] = combined_of(X, coefficients, rows)
    _finish(out, W, against)


def sum_up(out: Path, *, piece: Made, against: Against) -> None:
    """Sum a piece that was made before."""
    _sum(out, mapped(piece, PIECE), against)


def _finish(out: Path, W: Block, against: Against) -> None:
    save(out, **{PIECE: W})
    _sum(out, W, against)


def _sum(out: Path, W: Block, against: Against) -> None:
    """Sum each slice: (slices, a, b)."""
    if against is None:
        return
    X = [W if each == ITSELF else mapped(*each) for each in against]
    with threadpool_limits(limits=1, user_api="blas"):
        sums = [inner_of(X, W, rows) for rows in slices(len(W))]
    shape = (0, sum(block.shape[1] for block in X), W.shape[1])
    with (out / SUMS).open("wb") as stream:
        np.save(stream, np.stack(sums) if sums else np.empty(shape, np.float32))
