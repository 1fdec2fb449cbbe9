"""Layout of points in two dimensions, with near neighbours in the latent space near each other.

t-SNE [van der Maaten & Hinton 2008] of the graph of nearest neighbours, with the repulsion computed
by convolution on a grid [Linderman et al. 2019]. It is initialised with the first two eigenvectors,
as [Kobak & Berens 2019] recommend, and uses no random numbers, so it is deterministic.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import fft, sparse
from threadpoolctl import threadpool_limits

from klsa_search.core.array_types import Matrix

MAX_POINTS: Final = 25_000
"""Largest layout: 5 s, and more points are not distinguishable."""

NEIGHBOURS: Final = 15
"""Neighbours that attract a point, if there are three times as many others."""

_STEP: Final = 127
_INDEX_BITS: Final = 15
"""Bits of the index of a point; there are fewer than 2^15 points."""

_GROUP: Final = 64
_ROWS: Final = 256

_EARLY: Final = 50
_ROUNDS: Final = 200
_EXAGGERATION: Final = 12.0
"""Factor of attraction in the early rounds, in which groups form."""

_CELL: Final = 0.5
"""Largest side of a grid cell, in units of the kernel 1 / (1 + d²)."""

_FINE: Final = 128
"""Least number of cells a side, so that small groups repel each other."""

_STRIDE: Final = 5.0
"""Largest step of a point in a round, so that none diverges."""

_Floats = npt.NDArray[np.float32]


def layout_points(coordinates: Matrix, start: Matrix | None = None) -> Matrix:
    """Return a layout of points of length 1: (n, m) → (n, 2) float32 around 0.

    start  (n, at most 2) initial layout; the first two coordinates by default
    n is at most `MAX_POINTS`. Cost: O(n² · m) for the neighbours and O(n) for each of 200 rounds.
    Memory: 60 MiB and about 2 kB a point.
    """
    points = len(coordinates)
    if points < 2:
        return np.zeros((points, 2), np.float32)
    near = nearest(coordinates, None, min(NEIGHBOURS, max((points - 1) // 3, 1)))
    return _spread(_shares(near), _start(coordinates[:, :2] if start is None else start))


def first_axes(coordinates: Matrix) -> Matrix:
    """Return the first two principal components of points: (n, m) → (n, 2). Cost: O(n · m²)."""
    # Integers, whose sums do not depend on BLAS; eigenvectors have any sign.
    points = _rounded(coordinates).astype(np.float64)
    with threadpool_limits(limits=1, user_api="blas"):
        squares = len(points) * (points.T @ points) - np.outer(points.sum(0), points.sum(0))
        axes = np.linalg.eigh(squares)[1][:, :-3:-1]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(np.einsum("nm,ma->na", points, axes), np.float32)


def nearest(coordinates: Matrix, others: Matrix | None, count: int) -> npt.NDArray[np.int64]:
    """Return the indices of the `count` others with the largest cosines, best first: (n, count).

    coordinates  (n, m) of length 1
    others       (at most `MAX_POINTS`, m); None for the points themselves, each without itself
    Coordinates are rounded to steps of 1/127, so that sums are integers and do not depend on BLAS;
    ties are ordered by index. Cost: O(n · n' · m).
    """
    rows = _rounded(coordinates)
    columns = rows if others is None else _rounded(others)
    groups = -(-len(columns) // _GROUP)
    width = groups * _GROUP
    last = (1 << _INDEX_BITS) - 1
    numbers = last - np.arange(width, dtype=np.int32)
    neighbours = np.empty((len(rows), count), np.int64)
    for begin in range(0, len(rows), _ROWS):
        block = rows[begin : begin + _ROWS]
        sums = np.full((len(block), width), -(2.0**15), np.float32)
        sums[:, : len(columns)] = block @ columns.T
        if others is None:
            at = np.arange(len(block))
            sums[at, begin + at] = -(2.0**15)
        # A sum and an index as one integer: no two are equal.
        keys = (sums.astype(np.int32) << _INDEX_BITS) | numbers
        if groups > count:
            # The largest keys are in the groups with the largest maxima.
            grouped = keys.reshape(len(block), groups, _GROUP)
            first = np.argpartition(grouped.max(axis=2), groups - count, axis=1)[:, -count:]
            keys = np.take_along_axis(grouped, first[:, :, None], axis=1).reshape(len(block), -1)
        best = np.sort(np.partition(keys, keys.shape[1] - count, axis=1)[:, -count:], axis=1)
        neighbours[begin : begin + len(block)] = last - (best[:, ::-1] & last)
    return neighbours


def _rounded(coordinates: Matrix) -> _Floats:
    return np.asarray(np.rint(np.asarray(coordinates, np.float32) * np.float32(_STEP)))


def _shares(near: npt.NDArray[np.int64]) -> sparse.csr_array:
    """Return the attraction of each pair, proportional to its neighbour links; symmetric, sum 1."""
    points, count = near.shape
    starts = np.arange(0, near.size + 1, count)
    ones = np.ones(near.size, np.float32)
    one_way = sparse.csr_array((ones, near.ravel(), starts), shape=(points, points))
    shares = sparse.csr_array(one_way + one_way.T)
    shares.sort_indices()
    shares.data /= shares.data.sum()
    return shares


def _start(places: Matrix) -> _Floats:
    """Return an initial layout, scaled down: (n, at most 2) → (n, 2)."""
    points = np.zeros((len(places), 2), np.float32)
    points[:, : places.shape[1]] = places
    points -= points.mean(axis=0)
    size = points[:, 0].std()
    return np.asarray(points * np.float32(0.01 / size)) if size > 0 else points


def _spread(shares: sparse.csr_array, places: _Floats) -> _Floats:
    """Minimise the t-SNE loss by gradient descent with momentum and gains."""
    points = len(places)
    rate = np.float32(points / _EXAGGERATION)  # [Belkina et al. 2019]
    counts, targets = np.diff(shares.indptr), shares.data
    pull, repulsion = shares.copy(), _Repulsion()
    velocity, gains = np.zeros_like(places), np.ones_like(places)
    for number in range(_ROUNDS):
        early = number < _EARLY
        offsets = np.repeat(places, counts, axis=0) - places[shares.indices]
        pull.data = targets / (1 + offsets[:, 0] ** 2 + offsets[:, 1] ** 2)
        pulled = pull @ np.column_stack((places, np.ones(points, np.float32)))
        attraction = pulled[:, 2:] * places - pulled[:, :2]
        if early:
            attraction *= np.float32(_EXAGGERATION)
        gradient = 4 * (attraction - repulsion.of(places))
        turned = (gradient > 0) == (velocity > 0)
        gains = np.maximum(np.where(turned, gains * 0.8, gains + 0.2), 0.01).astype(np.float32)
        velocity = np.float32(0.5 if early else 0.8) * velocity - rate * gains * gradient
        steps = np.sqrt(np.einsum("nd,nd->n", velocity, velocity))
        velocity *= np.minimum(1, _STRIDE / np.maximum(steps, _STRIDE))[:, None].astype(np.float32)
        places = places + velocity
        places -= places.mean(axis=0)
    return places


class _Repulsion:
    """Repulsion of points: the gradient of their field Σ 1 / (1 + d²), divided by its sum.

    -½ ∇ Σ 1 / (1 + d²) = Σ (y - y') / (1 + d²)², the repulsive force of t-SNE, so that one field
    gives both the force and its normalisation.
    """

    def __init__(self) -> None:
        self._cached = (0, 0.0)

    def of(self, places: _Floats) -> _Floats:
        """Return (n, 2) for points (n, 2). Cost: O(n + g log g) for g cells of the grid."""
        low = places.min(axis=0)
        span = max(float((places - low).max()), 1e-6)
        # In powers of two, so that the kernel is rarely computed again.
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
        if (side, cell) != self._cached:
            steps = np.minimum(np.arange(2 * side), 2 * side - np.arange(2 * side))
            squares = np.square(steps * np.float32(cell), dtype=np.float32)
            self._kernel = fft.rfft2(1 / (1 + squares[:, None] + squares[None, :]))
            self._cached = (side, cell)
        shape = (2 * side, 2 * side)
        return np.asarray(fft.irfft2(fft.rfft2(density, shape) * self._kernel, shape))[:side, :side]
