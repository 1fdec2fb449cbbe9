"""Training: what all partitions of an index have in common, from a sample of its documents.

K is one function of any two documents if features are weighted by the same statistics, relative to
the same mean document, and placed in the same latent space. So these are computed once: document
frequencies of terms and pairs, mean lengths, the mean document, and the vectors of terms on the
first eigenvectors. Documents of a partition are weighted as documents written after a build are
(`delta.features`). Document frequencies for BM25 are exact and not part of it: see
`search.engine.collection_statistics`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.collection.model import Collection
from klsa_search.core.array_types import GrowableArray, GrowableLists
from klsa_search.core.config import Settings
from klsa_search.core.progress import Progress
from klsa_search.delta.statistics import BuildStatistics, open_statistics, statistics_arrays
from klsa_search.indexing.reading import ReadDocuments, read
from klsa_search.indexing.weighing import document_kernel, write_postings
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.plugins import feature_weighting
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.lowrank.eigensolver import Spectrum, decompose
from klsa_search.lowrank.latent_space import LatentSpace
from klsa_search.lowrank.sparse_expansion import (
    ENTRIES,
    SparseExpansion,
    scalars_of,
    sparse_expansion_arrays,
    unpack_rows,
)
from klsa_search.storage.arrays import open_array, read_vocabulary, write_arrays

MOST: Final = 200_000
"""Documents of a training; more are sampled."""

_ROWS: Final = ("cut_rows", "cut_scales")
"""Arrays of the rows of D."""


def train(
    folder: Path, sample: Collection, settings: Settings, report: Progress, *, memory: int
) -> Spectrum:
    """Write the statistics of a sample to a folder; return its spectrum.

    Cost: that of a build without neighbours.
    """
    counts = read(sample, folder, settings, report, memory=memory).counts
    write_postings(counts, folder, settings, report)
    write_arrays(folder, statistics_arrays(counts, settings))
    kernel = document_kernel(counts, settings)
    dimensions = min(settings.dimensions, settings.latent_dimensions)
    spectrum = decompose(kernel, dimensions, seed=settings.seed, progress=report)
    weights = feature_weighting(settings).of_columns(counts.matrix)
    latent = LatentSpace.of(kernel, spectrum, dimensions, weights)
    none = sparse.csr_array((len(kernel), len(kernel)), dtype=np.float32)
    expansion = SparseExpansion.of(kernel, none, latent, entries=1)
    arrays = sparse_expansion_arrays(expansion)
    write_arrays(folder, {"eigenvalues": spectrum.eigenvalues, **arrays})
    return spectrum


def open_training(folder: Path, settings: Settings) -> BuildStatistics:
    """Open the statistics that `train` has written. Cost: O(V + P)."""
    return open_statistics(folder, settings, Vocabulary(read_vocabulary(folder)))


def weigh_partition(
    documents: ReadDocuments,
    trained: BuildStatistics,
    training: Path,
    generation: Path,
    report: Progress,
) -> tuple[DocumentKernel, npt.NDArray[np.float32]]:
    """Write postings and features of a partition; return its kernel and K(d, d): (n,).

    training  folder of the training
    `partition_rows.write_rows` writes the rows of D. Cost: that of a build without eigenvectors and
    rows.
    """
    counts, settings = documents.counts, trained.settings
    write_postings(counts, generation, settings, report, trained.trained.length)
    write_arrays(generation, trained.trained.arrays())
    mean, width = trained.expansion.mean, trained.expansion.document_vectors.shape[1]
    lists, vectors = GrowableLists(np.uint32), GrowableArray(np.int8, width)
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
    shared = {name: open_array(training, name) for name in ("epoch_pairs", "eigenvalues")}
    write_arrays(generation, shared)
    return DocumentKernel(matrix, scalars[:, 1].astype(np.float64), mean), diagonals.rows
