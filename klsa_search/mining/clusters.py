"""Clusters of documents, named by their strongest terms."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.array_types import Matrix, Numbers
from klsa_search.core.parallel import one_blas_thread
from klsa_search.core.wording import counted
from klsa_search.errors import QueryError
from klsa_search.mining.related_terms import words_of
from klsa_search.mining.similar import LATENT, document_coordinates
from klsa_search.search.index import Index
from klsa_search.search.ranking.parameters import checked_integer
from klsa_search.search.snippets import snippet

_TITLES: Final = 3  # of a cluster
_LENGTH: Final = 80  # characters of a text without a title that are shown
STARTS: Final = 5  # number of starts of k-means; the result with the least inertia is used
_ROUNDS: Final = 50

_COPY: Final = 1e-12  # squared distance of equal points of length 1, due to rounding
_BLOCK: Final = 2**22  # postings processed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Similar documents, as one group.

    words    words that are more important in it than elsewhere, most important first
    size     number of documents
    central  IDs of its documents, from the centre outwards
    titles   titles of the first of those, or the beginnings of their texts
    """

    words: tuple[str, ...]
    size: int
    central: tuple[str, ...]
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """Clusters of an index, largest first, and the IDs of documents in none.

    A document is in no cluster if it has no known term, or equals the mean of all documents. With
    `kernel="vectors:SPACE"` it is in none if it has no vector.
    """

    clusters: tuple[Cluster, ...]
    unplaced: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of clusters."""
        return len(self.clusters)


def cluster(index: Index, k: int = 20, *, words: int = 6, kernel: str = LATENT) -> Clustering:
    """Return k clusters of the documents; fewer if there are not enough different documents.

    words   number of words of each cluster
    kernel  "latent", "vectors:SPACE" or "sum:SPACE", the sum of both

    Method: k-means on coordinates of length 1, from five starts (k-means++) with the seed of
    the index; the best result is kept. The importance of a word is its mean BM25 impact in the
    cluster, minus that in all documents. Cost: O(N · k · m) per round, at most 50 rounds per start,
    and O(nnz) for the words; memory 8 N · (m + k) + 8 V · k bytes. QueryError, also for more
    clusters than documents.

    >>> found = cluster(index, 2, words=1)
    >>> found.clusters[0]
    Cluster(words=('tyres',), size=3, central=('tyre', 'copy', 'grip'), titles=('Tyres', ...))
    >>> found
    Clustering(clusters=(...), unplaced=())
    """
    k, words = checked_integer("k", k), checked_integer("words", words)
    coordinates = document_coordinates(index, kernel)
    arrays = index.arrays
    live = arrays.live_docs()
    placed = arrays.in_order(coordinates.any(axis=1) & live)
    if k > len(placed):
        instead = "ask for fewer" if len(placed) else "there is nothing to divide"
        raise QueryError(
            f"k = {k} is too many: only {counted(len(placed), 'document')} of index "
            f"`{index.name}` with coordinates of the kernel `{kernel}`; {instead}",
            field="k",
        )
    points = np.asarray(coordinates[placed], np.float64)
    k = min(k, len(np.unique(points, axis=0)))
    centres, labels = k_means(points, k, index.settings.seed)
    all_labels = np.full(len(coordinates), k, np.int64)
    all_labels[placed] = labels
    named = words_of_clusters(index, all_labels, k, words)
    nearness = np.einsum("nm,nm->n", points, centres[labels])
    clusters = []
    for number in np.argsort(-np.bincount(labels, minlength=k), kind="stable").tolist():
        members = np.flatnonzero(labels == number)
        if len(members):
            order = placed[members[np.argsort(-nearness[members], kind="stable")]]
            central = arrays.doc_ids_at(order)
            shown = index.documents_at(central[:_TITLES])
            clusters.append(
                Cluster(
                    words=named[number],
                    size=len(members),
                    central=tuple(index.ids(central)),
                    titles=tuple(title_of(index, document) for document in shown),
                )
            )
    unplaced = arrays.doc_ids_at(arrays.in_order((all_labels == k) & live))
    return Clustering(clusters=tuple(clusters), unplaced=tuple(index.ids(unplaced)))


def title_of(index: Index, document: Document) -> str:
    """Return the title of a document, or the beginning of its text if it has none."""
    return document.title or snippet(document.text, (), index.analyzer, length=_LENGTH)


def k_means(points: Matrix, k: int, seed: int) -> tuple[Matrix, Numbers]:
    """Return the centres (k, m) and the labels of points, with the least inertia of five starts."""
    from scipy.cluster.vq import kmeans2

    generator = np.random.default_rng(seed)

    def inertia(result: tuple[Matrix, npt.NDArray[np.int32]]) -> float:
        centres, labels = result
        return float(np.square(points - centres[labels]).sum())

    # The order of sums in BLAS depends on the number of threads.
    with one_blas_thread(), warnings.catch_warnings():
        # Empty clusters are dropped by the caller.
        warnings.filterwarnings("ignore", "One of the clusters is empty")
        results = [
            kmeans2(points, k_means_plus_plus(points, k, generator), iter=_ROUNDS, minit="matrix")
            for _ in range(STARTS)
        ]
    centres, labels = min(results, key=inertia)
    return centres, labels.astype(np.int64)


def k_means_plus_plus(points: Matrix, k: int, generator: np.random.Generator) -> Matrix:
    """Return k initial centres by k-means++ [Arthur & Vassilvitskii 2007]: (k, m).

    The probability of a point is proportional to its squared distance from the nearest chosen one.
    SciPy's own computes all distances again for each choice, which costs k times as much. Cost:
    O(N · k · m).
    """
    chosen = [int(generator.integers(len(points)))]
    squares = np.einsum("nm,nm->n", points, points)
    nearest = np.full(len(points), np.inf)
    while len(chosen) < k:
        last = chosen[-1]
        distances = squares + squares[last] - 2 * np.einsum("nm,m->n", points, points[last])
        np.minimum(nearest, np.where(distances > _COPY, distances, 0.0), out=nearest)
        chances = np.cumsum(nearest)
        drawn = np.searchsorted(chances, generator.random() * chances[-1], side="right")
        chosen.append(min(int(drawn), len(points) - 1))
    return points[chosen]


def words_of_clusters(index: Index, labels: Numbers, k: int, count: int) -> list[tuple[str, ...]]:
    """Return the words with the highest impact in each cluster; `labels` is k for none."""
    bm25 = index.arrays.query_kernel
    terms = len(bm25.counts.frequencies)
    sums = np.zeros(terms * (k + 1))
    live = index.arrays.live_docs()
    for terms_of_batch, documents, saturations in bm25.postings.batches(_BLOCK):
        cells = terms_of_batch * (k + 1) + labels[documents]
        np.add.at(sums, cells, saturations * live[documents])
    by_cluster = sums.reshape(terms, k + 1)
    by_cluster *= (bm25.postings.step * bm25.term_weights(np.arange(terms)))[:, None]
    by_cluster[index.arrays.common] = 0
    sizes = np.bincount(labels, minlength=k + 1)
    overall = by_cluster.sum(axis=1) / max(bm25.counts.documents, 1)
    strongest = []
    for number in range(k):
        strength = by_cluster[:, number] / max(sizes[number], 1) - overall
        order = np.argsort(-strength, kind="stable")[:count]
        strongest.append([int(term) for term in order if strength[term] > 0])
    # All in one call, because documents contain words of several clusters.
    written = iter(words_of(index, chain.from_iterable(strongest)))
    return [tuple(islice(written, len(terms))) for terms in strongest]
