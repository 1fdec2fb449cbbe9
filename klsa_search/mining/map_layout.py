"""Layout of documents in two dimensions, by their clusters.

The centres of clusters lie on the two principal axes of all centres. Documents lie around the
centre of their cluster, on the two principal axes of the cluster, scaled so that clusters do not
overlap. The place of a document depends on its coordinates and cluster alone, so later documents
move nothing. There are no random numbers, and sums that choose axes are integers: the same
coordinates have the same layout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from klsa_search.core.array_types import Matrix

_STEP = 127
"""Coordinates are rounded to steps of 1/127, so that their sums do not depend on BLAS."""

_INSIDE = 0.95
"""Share of the documents of a cluster within half the distance to the next one."""

_Labels = npt.NDArray[np.int64]


class ClusterLayout(NamedTuple):
    """Places of documents with coordinates of m dimensions, in k clusters.

    centres    (k, m) of the clusters
    middles    (k, 2) places of the centres
    axes       (k, m, 2) from the offset to the centre of a cluster to that to its middle
    """

    centres: Matrix
    middles: Matrix
    axes: Matrix

    @classmethod
    def of(cls, points: Matrix, centres: Matrix, labels: _Labels) -> ClusterLayout:
        """Return the layout of points (n, m) of length 1, scaled to fit into 0..1.

        labels  (n,) cluster of each; each cluster has a point
        Cost: O(n · m²).
        """
        middles = (centres - centres.mean(axis=0)) @ _principal_axes(centres)
        radii = _radii(middles)
        axes = np.zeros((*centres.shape, 2))
        for number, radius in enumerate(radii.tolist()):
            offsets = points[labels == number] - centres[number]
            axes[number] = _principal_axes(offsets)
            spread = np.quantile(np.hypot(*(offsets @ axes[number]).T), _INSIDE)
            if spread > 0:
                axes[number] *= radius / spread
        return cls(centres, middles, axes)._scaled(points, labels)

    def places(self, points: Matrix, labels: _Labels) -> Matrix:
        """Return the places of points (n, m) in clusters (n,): (n, 2), each within 0..1."""
        placed = np.zeros((len(points), 2))
        for number in np.unique(labels).tolist():
            members = labels == number
            offsets = points[members] - self.centres[number]
            placed[members] = self.middles[number] + np.einsum(
                "nm,ma->na", offsets, self.axes[number]
            )
        return np.clip(placed, 0.0, 1.0)

    def _scaled(self, points: Matrix, labels: _Labels) -> ClusterLayout:
        """Return a layout whose larger span is 1, and whose smaller one is in the middle."""
        raw = [
            self.middles[number]
            + np.einsum("nm,ma->na", points[labels == number] - centre, self.axes[number])
            for number, centre in enumerate(self.centres)
        ]
        low = np.min([part.min(axis=0) for part in raw], axis=0)
        high = np.max([part.max(axis=0) for part in raw], axis=0)
        factor = 1 / ((high - low).max() or 1.0)
        middles = 0.5 + (self.middles - (low + high) / 2) * factor
        return ClusterLayout(self.centres, middles, self.axes * factor)


def _principal_axes(points: Matrix) -> Matrix:
    """Return the first two principal axes of points: (n, m) → (m, 2); 0 for missing ones."""
    rounded = np.rint(points * _STEP)
    with threadpool_limits(limits=1, user_api="blas"):
        scatter = len(rounded) * (rounded.T @ rounded)
        scatter -= np.outer(rounded.sum(0), rounded.sum(0))
        vectors = np.linalg.eigh(scatter)[1][:, :-3:-1]
    # Eigenvectors have any sign: the largest component of each is positive.
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    axes = np.zeros((points.shape[1], 2))
    axes[:, : vectors.shape[1]] = vectors
    return axes


def _radii(middles: Matrix) -> Matrix:
    """Return half the distance of each place to the next; 1 for one place, or equal ones."""
    distances = np.hypot(*(middles[:, None] - middles[None]).transpose(2, 0, 1))
    np.fill_diagonal(distances, np.inf)
    half = distances.min(axis=1, initial=np.inf) / 2
    return np.where((half > 0) & np.isfinite(half), half, 1.0)
