"""Weighting: write everything that queries read, from counts to a generation.

Partitions are weighed by a training, which has what all of them share, from a sample of their
documents. K is one function of any two documents if features are weighted by the same statistics,
relative to the same mean document, and placed in the same latent space. So these are computed once:
document frequencies of terms and pairs, mean lengths, the mean document, and the vectors of terms
on the first eigenvectors. Documents of a partition are weighted as documents written after a build
are (`delta.features`). Document frequencies for BM25 are exact and not part of it: see
`search.engine.collection_statistics`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Collection
from klsa_search.core.array_types import GrowableArray, GrowableLists
from klsa_search.core.config import Settings
from klsa_search.core.progress import EXPANSION, POSTINGS, Progress, silent
from klsa_search.delta.statistics import BuildStatistics, open_statistics, statistics_arrays
from klsa_search.indexing.reading import ReadDocuments, read
from klsa_search.kernels.bm25 import average_length, length_norms, quantised_length
from klsa_search.kernels.counts import TermCounts
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.nearest_neighbours import nearest_rows
from klsa_search.kernels.postings import Postings, postings_arrays
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.kernels.weighting import feature_weighting, tfidf_features, tfidf_posting_weights
from klsa_search.lowrank.eigensolver import Decomposition, decompose
from klsa_search.lowrank.expansion_matrix import expansion_rows
from klsa_search.lowrank.latent_space import LatentSpace
from klsa_search.lowrank.sparse_expansion import (
    ENTRIES,
    SparseExpansion,
    is_multiple_of_kernel,
    scalars_of,
    sparse_expansion_arrays,
    unpack_rows,
)
from klsa_search.search.engine.snapshot import SMALL
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.storage.arrays import open_array, read_vocabulary, write_arrays, write_vocabulary
from klsa_search.storage.forward_index import Forward

_SOLVED_PER_SECOND: Final = 10**8
"""Documents times the square of the eigenvectors that are computed in about a second."""

MOST: Final = 200_000
"""Documents of a training; more are sampled."""

_ROWS: Final = ("expansion_rows", "expansion_scales")
"""Arrays of the rows of D."""


def stores_eigenvectors(documents: int, settings: Settings) -> bool:
    """Return whether the eigenvectors are stored."""
    return documents <= SMALL or needs_eigenvectors(settings) is not None


def stores_rows(documents: int, settings: Settings) -> bool:
    """Return whether the rows of D are stored completely: if it is not a multiple of K.

    In a larger collection D is computed from the eigenvectors at each search, in O(nnz + N · k).
    """
    is_multiple = is_multiple_of_kernel(settings.spectral, settings.gamma, settings.head)
    return documents <= SMALL and not is_multiple


def solved_dimensions(documents: int, settings: Settings) -> int:
    """Return the number of eigenvectors to compute: all requested if the ranking needs them.

    Otherwise the latent space needs some, and a small collection stores as many more as take about
    a second, so that spectral function and dimensions can be chosen with a query.
    """
    if needs_eigenvectors(settings):
        return settings.dimensions
    latent = min(settings.dimensions, settings.latent_dimensions)
    if not stores_eigenvectors(documents, settings):
        return latent
    affordable = math.isqrt(_SOLVED_PER_SECOND // max(documents, 1))
    return max(latent, min(settings.dimensions, affordable))


def weigh(
    counts: TermCounts,
    generation: Path,
    settings: Settings,
    report: Progress,
    *,
    is_training: bool = False,
) -> dict[str, Decomposition]:
    """Write postings, spectra and D; return the spectra by name.

    is_training  without rows of D and eigenvectors, which partitions do not read
    Cost and memory: see `build` and `plan`.
    """
    write_postings(counts, generation, settings, report)
    weights = feature_weighting(settings).of_columns(counts.matrix)
    kernel = document_kernel(counts, settings)
    write_arrays(generation, statistics_arrays(counts, settings))
    solved = solved_dimensions(len(kernel), settings)
    if is_training:
        solved = min(settings.dimensions, settings.latent_dimensions)
    spectrum = decompose(kernel, solved, seed=settings.seed, progress=report)
    latent = LatentSpace.of(kernel, spectrum, settings.latent_dimensions, weights)
    if is_training:
        from scipy import sparse

        entries = 1
        rows = sparse.csr_array((len(kernel), len(kernel)), dtype=np.float32)
    else:
        entries = max(ENTRIES, settings.neighbours)
        rows = nearest_rows(kernel, entries + 1, progress=report)
        report(EXPANSION, 0, None)
    expansion = SparseExpansion.of(kernel, rows, latent, entries)
    arrays = {"eigenvalues": spectrum.eigenvalues, **sparse_expansion_arrays(expansion)}
    write_arrays(generation, arrays)
    if not is_training and stores_eigenvectors(len(kernel), settings):
        write_arrays(generation, {"eigenvectors": spectrum.eigenvectors.astype(np.float32)})
    if not is_training and stores_rows(len(kernel), settings):
        function = settings.spectral, settings.gamma, settings.head
        write_arrays(
            generation, {"all_expansion_rows": expansion_rows(kernel, spectrum, *function)}
        )
    spectra = {"bm25": spectrum}
    if needs_eigenvectors(settings):
        features = DocumentKernel.of(tfidf_features(counts.matrix))
        lsi = decompose(features, settings.dimensions, seed=settings.seed, progress=report)
        spectra["lsi"] = lsi
        arrays = {
            "postings_tfidf": tfidf_posting_weights(counts.matrix),
            "lsi_eigenvectors": lsi.eigenvectors.astype(np.float32),
            "lsi_eigenvalues": lsi.eigenvalues,
        }
        write_arrays(generation, arrays)
    return spectra


def document_kernel(counts: TermCounts, settings: Settings) -> DocumentKernel:
    """Return K of the content terms and their pairs. Cost: O(nnz)."""
    features = feature_weighting(settings).document_features(counts.content, settings.pairs)
    return DocumentKernel.of(features, centred=settings.centred, normalised=settings.normalised)


def write_postings(
    counts: TermCounts,
    generation: Path,
    settings: Settings,
    report: Progress,
    average: float | None = None,
) -> None:
    """Write what BM25 reads: vocabulary, postings, lengths of documents. Cost: O(nnz).

    average  quantised mean length of the documents that are compared; by default of these
    """
    report(POSTINGS, 0, None)
    write_vocabulary(generation, counts.vocabulary.terms)
    lengths = counts.lengths
    if average is None:
        average = quantised_length(average_length(lengths))
    norms = length_norms(lengths, average, k1=settings.k1, b=settings.b)
    write_arrays(generation, postings_arrays(Postings.of(counts.matrix, norms, settings.k1)))
    write_arrays(generation, {"lengths": lengths.astype(np.int32)})


def train(
    folder: Path, sample: Collection, settings: Settings, report: Progress, *, memory: int
) -> Decomposition:
    """Write the statistics of a sample to a folder; return its spectrum.

    Cost: that of a build without neighbours.
    """
    counts = read(sample, folder, settings, report, memory=memory).counts
    return weigh(counts, folder, settings, report, is_training=True)["bm25"]


def open_training(folder: Path, settings: Settings) -> BuildStatistics:
    """Open the statistics that `train` has written. Cost: O(V + P)."""
    forward = Forward.open(folder, settings.searched_fields)
    return open_statistics(folder, settings, Vocabulary(read_vocabulary(folder)), forward)


def weigh_partition(
    documents: ReadDocuments,
    trained: BuildStatistics,
    training: Path,
    generation: Path,
) -> tuple[DocumentKernel, npt.NDArray[np.float32]]:
    """Write postings and features of a partition; return its kernel and K(d, d): (n,).

    training  folder of the training
    `write_rows` of `partition_tasks` writes the rows of D. Cost: that of a build without
    eigenvectors and rows.
    """
    counts, settings = documents.counts, trained.settings
    write_postings(counts, generation, settings, silent, trained.trained.length)
    write_arrays(generation, trained.trained.arrays())
    mean = trained.expansion.mean
    lists = GrowableLists(np.uint32)
    vectors = GrowableArray(np.int8, trained.expansion.document_vectors.shape[1])
    diagonals = GrowableArray(np.float32)
    for block in documents.features:
        lists.extend(block.features, block.starts)
        vectors.extend(block.document_vectors)
        diagonals.extend(block.diagonals)
    scalars = scalars_of(vectors.rows)
    matrix = unpack_rows(lists.starts, lists.numbers, scalars[:, 0], len(mean))
    no_rows = np.zeros((0, ENTRIES), np.uint32), np.zeros((0, 2), np.float32)
    expansion = SparseExpansion(
        *no_rows, lists.starts, lists.numbers, mean, vectors.rows,
        trained.expansion.terms,
    )  # fmt: skip
    arrays = sparse_expansion_arrays(expansion)
    write_arrays(generation, {name: array for name, array in arrays.items() if name not in _ROWS})
    shared = {name: open_array(training, name) for name in ("feature_pairs", "eigenvalues")}
    write_arrays(generation, shared)
    return DocumentKernel(matrix, scalars[:, 1].astype(np.float64), mean), diagonals.rows
