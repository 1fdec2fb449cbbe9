"""Layout: two coordinates for each document, so that who is near in the latent space is near.

t-SNE [van der Maaten & Hinton 2008] of the graph of nearest neighbours, whose repulsion is one
convolution on a grid [Linderman et al. 2019]. It starts from the first two eigenvectors, as
[Kobak & Berens 2019] advise, and from nothing random: the same coordinates give the same picture.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import fft, sparse

from klsa_search.core.array_types import Matrix

MOST: Final = 25_000
"""Points that are laid out together: 5 s, and a picture has no room for more."""

NEIGHBOURS: Final = 15
"""Near points that draw a point to them, where there are three times as many others."""

_STEP: Final = 127
_PLACES: Final = 15
"""Bits of a point's number; there are fewer than 2^15 points."""

_GROUP: Final = 64
_ROWS: Final = 256

_EARLY: Final = 50
_ROUNDS: Final = 200
_EXAGGERATION: Final = 12.0
"""How much more points attract in the early rounds, in which groups find each other."""

_CELL: Final = 0.5
"""Side of a cell of the grid at most, in units of the kernel 1 / (1 + d²)."""

_FINE: Final = 128
"""Cells that what is small is divided into, at least: else groups of it would not repel."""

_STRIDE: Final = 5.0
"""How far a point moves in a round, at most: so that none is thrown out."""

_Floats = npt.NDArray[np.float32]


def layout_points(coordinates: Matrix) -> Matrix:
    """Lay points of length 1 out in the plane: (n, m) → (n, 2) float32 around 0.

    n is at most `MOST`. Cost O(n² · m) for the neighbours and O(n) a round, of which there are
    200; memory 60 MiB and some 2 kB a point.
    """
    points = len(coordinates)
    if points < 2:
        return np.zeros((points, 2), np.float32)
    near = nearest(coordinates, None, min(NEIGHBOURS, max((points - 1) // 3, 1)))
    return _spread(_shares(near), _start(np.asarray(coordinates, np.float32)))


def nearest(coordinates: Matrix, others: Matrix | None, count: int) -> npt.NDArray[np.int64]:
    """Number the `count` points of others with the largest cosines, best first: (n, count).

    coordinates  (n, m) of length 1
    others       (at most `MOST`, m); None for the points themselves, each without itself
    Coordinates are rounded to steps of 1/127, so that all sums are whole numbers and no bit hangs
    on BLAS; equals go by their order. Cost O(n · n' · m).
    """
    rows = _rounded(coordinates)
    columns = rows if others is None else _rounded(others)
    groups = -(-len(columns) // _GROUP)
    width = groups * _GROUP
    last = (1 << _PLACES) - 1
    numbers = last - np.arange(width, dtype=np.int32)
    found = np.empty((len(rows), count), np.int64)
    for begin in range(0, len(rows), _ROWS):
        block = rows[begin : begin + _ROWS]
        sums = np.full((len(block), width), -(2.0**15), np.float32)
        sums[:, : len(columns)] = block @ columns.T
        if others is None:
            at = np.arange(len(block))
            sums[at, begin + at] = -(2.0**15)
        # A sum and its number as one whole number: no two are equal.
        keys = (sums.astype(np.int32) << _PLACES) | numbers
        if groups > count:
            # The best are in the groups with the best maxima.
            grouped = keys.reshape(len(block), groups, _GROUP)
            first = np.argpartition(grouped.max(axis=2), groups - count, axis=1)[:, -count:]
            keys = np.take_along_axis(grouped, first[:, :, None], axis=1).reshape(len(block), -1)
        best = np.sort(np.partition(keys, keys.shape[1] - count, axis=1)[:, -count:], axis=1)
        found[begin : begin + len(block)] = last - (best[:, ::-1] & last)
    return found


def _rounded(coordinates: Matrix) -> _Floats:
    return np.asarray(np.rint(np.asarray(coordinates, np.float32) * np.float32(_STEP)))


def _shares(near: npt.NDArray[np.int64]) -> sparse.csr_array:
    """How much each pair attracts: as much as it is among neighbours; symmetric, of sum 1."""
    points, count = near.shape
    starts = np.arange(0, near.size + 1, count)
    ones = np.ones(near.size, np.float32)
    one_way = sparse.csr_array((ones, near.ravel(), starts), shape=(points, points))
    shares = sparse.csr_array(one_way + one_way.T)
    shares.sort_indices()
    shares.data /= shares.data.sum()
    return shares


def _start(coordinates: _Floats) -> _Floats:
    """Take the first two eigenvectors, small: (n, 2)."""
    places = np.zeros((len(coordinates), 2), np.float32)
    places[:, : coordinates.shape[1]] = coordinates[:, :2]
    places -= places.mean(axis=0)
    size = places[:, 0].std()
    return np.asarray(places * np.float32(0.01 / size)) if size > 0 else places


def _spread(shares: sparse.csr_array, places: _Floats) -> _Floats:
    """Move the points down the gradient of t-SNE, with momentum and gains."""
    points = len(places)
    rate = np.float32(points / _EXAGGERATION)  # [Belkina et al. 2019]
    counts, wanted = np.diff(shares.indptr), shares.data
    pull, repulsion = shares.copy(), _Repulsion()
    speed, gains = np.zeros_like(places), np.ones_like(places)
    for number in range(_ROUNDS):
        early = number < _EARLY
        apart = np.repeat(places, counts, axis=0) - places[shares.indices]
        pull.data = wanted / (1 + apart[:, 0] ** 2 + apart[:, 1] ** 2)
        drawn = pull @ np.column_stack((places, np.ones(points, np.float32)))
        attraction = drawn[:, 2:] * places - drawn[:, :2]
        if early:
            attraction *= np.float32(_EXAGGERATION)
        slope = 4 * (attraction - repulsion.of(places))
        turned = (slope > 0) == (speed > 0)
        gains = np.maximum(np.where(turned, gains * 0.8, gains + 0.2), 0.01).astype(np.float32)
        speed = np.float32(0.5 if early else 0.8) * speed - rate * gains * slope
        steps = np.sqrt(np.einsum("nd,nd->n", speed, speed))
        speed *= np.minimum(1, _STRIDE / np.maximum(steps, _STRIDE))[:, None].astype(np.float32)
        places = places + speed
        places -= places.mean(axis=0)
    return places


class _Repulsion:
    """What pushes points apart: the slope of their field Σ 1 / (1 + d²), over its sum.

    -½ ∇ Σ 1 / (1 + d²) = Σ (y - y') / (1 + d²)², the force of t-SNE: one field is enough for it
    and for what it is divided by.
    """

    def __init__(self) -> None:
        self._made = (0, 0.0)

    def of(self, places: _Floats) -> _Floats:
        """(n, 2) for points at (n, 2). Cost O(n + g log g) for g cells of the grid."""
        low = places.min(axis=0)
        span = max(float((places - low).max()), 1e-6)
        # In powers of two, so that the kernel is seldom computed again.
        cell = min(_CELL, 2.0 ** math.floor(math.log2(span / _FINE)))
        cells = (places - low) / np.float32(cell) + 1
        corners = cells.astype(np.int64)
        side = (int(corners.max()) + 34) // 32 * 32
        x, y = (cells - corners).astype(np.float32).T
        weights = np.stack(((1 - x) * (1 - y), (1 - x) * y, x * (1 - y), x * y))
        first = corners[:, 0] * side + corners[:, 1]
        at = np.stack((first, first + 1, first + side, first + side + 1))
        density = np.bincount(at.ravel(), weights.ravel(), minlength=side * side)
        field = self._field(density.reshape(side, side).astype(np.float32), cell)
        slopes = np.zeros((2, side, side), np.float32)
        slopes[0, 1:-1] = (field[2:] - field[:-2]) / (-4 * cell)
        slopes[1, :, 1:-1] = (field[:, 2:] - field[:, :-2]) / (-4 * cell)
        whole = float((field.ravel()[at] * weights).sum(dtype=np.float64)) - len(places)
        push = np.stack([(slope.ravel()[at] * weights).sum(axis=0) for slope in slopes], axis=1)
        return np.asarray(push / np.float32(max(whole, 1e-9)))

    def _field(self, density: _Floats, cell: float) -> _Floats:
        side = len(density)
        if (side, cell) != self._made:
            steps = np.minimum(np.arange(2 * side), 2 * side - np.arange(2 * side))
            squares = np.square(steps * np.float32(cell), dtype=np.float32)
            self._kernel = fft.rfft2(1 / (1 + squares[:, None] + squares[None, :]))
            self._made = (side, cell)
        shape = (2 * side, 2 * side)
        return np.asarray(fft.irfft2(fft.rfft2(density, shape) * self._kernel, shape))[:side, :side]
