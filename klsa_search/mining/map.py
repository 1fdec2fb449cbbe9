"""Map of an index: a layout in two dimensions, with clusters and their words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Integers, Matrix, Numbers
from klsa_search.core.parallel import one_blas_thread
from klsa_search.mining.clusters import k_means, words_of_clusters
from klsa_search.mining.similar import LATENT, document_coordinates
from klsa_search.search.index import Index
from klsa_search.search.ranking.parameters import checked_integer

CLUSTERS: Final = 20  # limit of clusters, so that their words fit on the map
TONES: Final = 8  # number of colours, distinguishable with colour blindness
MAX_POINTS: Final = 25_000  # documents drawn, at most: more points are not distinguishable
DOCUMENTS_PER_CLUSTER: Final = 10
_CACHED: Final = 4
_CELLS: Final = 32
_BLOCK: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCluster:
    """Cluster of a map.

    words  words that are more important in it than elsewhere, most important first
    size   number of documents, on the map or not
    x, y   its densest position, each from 0 to 1
    tone   number of a colour, from 0 to 7; clusters of the same colour are far apart
    """

    words: tuple[str, ...]
    size: int
    x: float
    y: float
    tone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMap:
    """Map of an index in two dimensions; n is the number of documents on it.

    doc_ids    (n,) doc ids, in the order of `Index.ids`
    positions     (n, 2) x and y of each, from 0 to 1; the larger of both spans is 1
    cluster    (n,) index of the cluster of each
    clusters   clusters, largest first
    documents  number of documents in the index
    unplaced   number of documents without a place: without a known term, or equal to the mean; or
               without a vector
    """

    doc_ids: DocIds
    positions: Matrix
    cluster: Integers
    clusters: tuple[MapCluster, ...]
    documents: int
    unplaced: int

    def __len__(self) -> int:
        """Return the number of documents on the map."""
        return len(self.doc_ids)

    def as_integers(self, span: int) -> Integers:
        """Return the positions as integers from 0 to span: (n, 2)."""
        return np.rint(self.positions * span).astype(np.int64)


def document_map(
    index: Index, *, words: int = 4, ids: Iterable[str] | None = None, kernel: str = LATENT
) -> DocumentMap:
    """Return a map of an index, with similar documents near each other.

    words  maximum number of words of each cluster
    ids    return the positions of these documents instead, without the words of clusters; also of
           documents that the map of a large index leaves out
    kernel "latent", "vectors:SPACE" or "sum:SPACE", the sum of both

    The documents of the build are divided by k-means into at most 20 clusters, which are placed by
    their centres, and their documents around them (`klsa_search.mining.map`). Documents
    added later are placed in the nearest cluster; nothing else moves. Of more than 25,000
    documents, an evenly spaced sample is drawn. Documents of a cluster are similar; distances
    between clusters and their sizes mean little.

    Cost: O(N · m) for each round of k-means, once per process, and O(nnz) for the words.
    QueryError; DocumentNotFound.

    >>> drawn = document_map(index, words=1)
    >>> drawn
    DocumentMap(doc_ids=array([0, 1, 2, 3, 4, 5]), positions=array(...), cluster=array(...), ...)
    >>> drawn.clusters
    (MapCluster(words=(...), size=6, x=..., y=..., tone=0),)
    """
    words = checked_integer("words", words)
    coordinates = document_coordinates(index, kernel)
    arrays = index.arrays
    live = arrays.live_docs()
    placed = np.asarray(coordinates.any(axis=1))
    every = arrays.in_order(np.ones(len(placed), np.bool_))
    of_build, later = np.split(every, [index.manifest.counts.documents])
    basis = _sample(of_build[placed[of_build]])
    points = coordinates[basis].astype(np.float32, copy=False)
    layout = cluster_layout(points.tobytes(), points.shape, index.settings.seed)
    labels = _labels(coordinates, placed, layout.centres)
    labels[~live] = len(layout.centres)
    drawable = placed & live
    if ids is None:
        shown = _shown(basis, later, drawable)
    else:
        is_requested = np.zeros(len(placed), np.bool_)
        is_requested[arrays.rows_of(index.doc_ids(ids))] = True
        shown = arrays.in_order(is_requested & drawable)
    positions = layout.positions(coordinates[shown].astype(np.float64), labels[shown])
    sizes = np.bincount(labels, minlength=len(layout.centres) + 1)[:-1]
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    ranks = np.full(len(layout.centres), -1, np.int64)
    ranks[order] = np.arange(len(order))
    cluster = ranks[labels[shown]]
    return DocumentMap(
        doc_ids=arrays.doc_ids_at(shown),
        positions=positions,
        cluster=cluster,
        clusters=_clusters(index, labels, order, sizes, words, positions, cluster)
        if ids is None
        else (),
        documents=len(index),
        unplaced=int((live & ~placed).sum()),
    )


@lru_cache(maxsize=_CACHED)
def cluster_layout(points: bytes, shape: tuple[int, int], seed: int) -> ClusterLayout:
    """Return clusters and layout of points in float32; cached, because k-means takes seconds."""
    exact = np.frombuffer(points, np.float32).reshape(shape).astype(np.float64)
    distinct = len(np.unique(exact, axis=0))
    if not distinct:
        empty = np.zeros((0, exact.shape[1]))
        return ClusterLayout(empty, np.zeros((0, 2)), np.zeros((0, exact.shape[1], 2)))
    count = min(CLUSTERS, round((len(exact) / DOCUMENTS_PER_CLUSTER) ** 0.5))
    centres, labels = k_means(exact, min(max(count, 1), distinct), seed)
    used, labels = np.unique(labels, return_inverse=True)
    return ClusterLayout.of(exact, centres[used], labels)


def _sample(doc_ids: DocIds) -> DocIds:
    if len(doc_ids) <= MAX_POINTS:
        return doc_ids
    return doc_ids[np.arange(MAX_POINTS) * len(doc_ids) // MAX_POINTS]


def _labels(coordinates: Matrix, placed: npt.NDArray[np.bool_], centres: Matrix) -> Numbers:
    """Return the nearest centre of each document; the number of centres for none."""
    labels = np.full(len(coordinates), len(centres), np.int64)
    if not len(centres):
        return labels
    half = np.einsum("km,km->k", centres, centres) / 2
    for begin in range(0, len(coordinates), _BLOCK):
        block = coordinates[begin : begin + _BLOCK].astype(np.float64)
        labels[begin : begin + _BLOCK] = (np.einsum("nm,km->nk", block, centres) - half).argmax(1)
    labels[~placed] = len(centres)
    return labels


def _shown(basis: DocIds, later: DocIds, drawable: npt.NDArray[np.bool_]) -> DocIds:
    later = _sample(later[drawable[later]]) if len(basis) else basis
    return _sample(np.concatenate((basis[drawable[basis]], later)))


def _clusters(
    index: Index,
    labels: Numbers,
    order: Integers,
    sizes: Integers,
    words: int,
    positions: Matrix,
    cluster: Integers,
) -> tuple[MapCluster, ...]:
    if not len(order):
        return ()
    named = words_of_clusters(index, labels, len(sizes), words)
    middles = np.array([_densest(positions[cluster == rank]) for rank in range(len(order))])
    return tuple(
        MapCluster(
            words=named[number],
            size=int(sizes[number]),
            x=float(middle[0]),
            y=float(middle[1]),
            tone=tone,
        )
        for number, middle, tone in zip(order.tolist(), middles, tones_of(middles), strict=True)
    )


def tones_of(middles: Matrix) -> list[int]:
    """Return the colour of each cluster: the one whose nearest cluster is farthest."""
    tones: list[int] = []
    for number, middle in enumerate(middles):
        before = np.array(tones, np.int64)
        distances = np.square(middles[:number] - middle).sum(axis=1)
        distances_by_tone = [distances[before == tone].min(initial=np.inf) for tone in range(TONES)]
        tones.append(int(np.argmax(distances_by_tone)))
    return tones


def _densest(positions: Matrix) -> tuple[float, float]:
    """Return the mean of the points in the densest three by three cells of a coarse grid."""
    if not len(positions):
        return 0.5, 0.5
    cells = np.minimum((positions * _CELLS).astype(np.int64), _CELLS - 1)
    counts = np.zeros((_CELLS + 2, _CELLS + 2), np.int64)
    np.add.at(counts, (cells[:, 0] + 1, cells[:, 1] + 1), 1)
    rows = counts[:-2] + counts[1:-1] + counts[2:]
    around = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    best = np.unravel_index(int(around.argmax()), around.shape)
    near = (np.abs(cells - np.array(best)) <= 1).all(axis=1)
    x, y = positions[near].mean(axis=0).tolist()
    return x, y


_STEP = 127  # coordinates are rounded to steps of 1/127, so that their sums do not depend on BLAS
_INSIDE = 0.95  # share of the documents of a cluster within half the distance to the next one


class ClusterLayout(NamedTuple):
    """Places of documents with coordinates of m dimensions, in k clusters.

    centres    (k, m) of the clusters
    middles    (k, 2) positions of the centres
    axes       (k, m, 2) from the offset to the centre of a cluster to that to its middle
    """

    centres: Matrix
    middles: Matrix
    axes: Matrix

    @classmethod
    def of(cls, points: Matrix, centres: Matrix, labels: Numbers) -> ClusterLayout:
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

    def positions(self, points: Matrix, labels: Numbers) -> Matrix:
        """Return the positions of points (n, m) in clusters (n,): (n, 2), each within 0..1."""
        placed = np.zeros((len(points), 2))
        for number in np.unique(labels).tolist():
            members = labels == number
            offsets = points[members] - self.centres[number]
            placed[members] = self.middles[number] + np.einsum(
                "nm,ma->na", offsets, self.axes[number]
            )
        return np.clip(placed, 0.0, 1.0)

    def _scaled(self, points: Matrix, labels: Numbers) -> ClusterLayout:
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
    with one_blas_thread():
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
