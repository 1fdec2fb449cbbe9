"""Opening the snapshot of a generation: its arrays, mapped from their files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.config import Settings
from klsa_search.delta.statistics import TrainedStatistics, trained_statistics
from klsa_search.errors import IndexDamaged
from klsa_search.kernels.postings import Segment, Segments, postings_of_arrays
from klsa_search.kernels.query_kernel import QueryKernel, TermWeighting
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.lowrank.sparse_expansion import (
    NO_REMOTE_ROWS,
    SegmentedExpansion,
    open_remote_rows,
    open_sparse_expansion,
)
from klsa_search.search.engine.lsi import MIN_EIGENVECTORS
from klsa_search.search.engine.snapshot import SMALL, Snapshot
from klsa_search.storage.arrays import has_array, open_array, read_vocabulary
from klsa_search.storage.current import step_for
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.manifest import SpaceEntry
from klsa_search.storage.names import MANIFEST, folder_of
from klsa_search.storage.partitions import CollectionTerms, number_of_partition
from klsa_search.storage.vectors import open_vectors


def open_snapshot(
    generation: Path,
    settings: Settings,
    vectors: Sequence[SpaceEntry] = (),
    collection: CollectionTerms | None = None,
) -> Snapshot:
    """Map the arrays of a generation; `settings` are those it was built with.

    vectors     spaces of its manifest
    collection  of a partition: the terms of all, by default those of its files

    Cost O(V) for the vocabulary; the rest is read on use. Raise IndexDamaged if a partition has
    other terms than `collection` says.
    """
    trained = trained_statistics(generation)
    segment = Segment(0, postings_of_arrays(partial(open_array, generation), settings.k1))
    forward = Forward.open(generation, settings.searched_fields)
    if collection is None:
        vocabulary = _vocabulary(generation, trained)
    else:
        vocabulary = collection.vocabulary
        numbers = collection.numbers_of(number_of_partition(folder_of(generation)))
        if len(segment.postings.frequencies) != len(numbers):
            file = generation / MANIFEST
            raise IndexDamaged(f"`{file}` is not of the build of its index; {step_for(file)}")
        if len(numbers) < len(vocabulary):
            segment = Segment.of(0, segment.postings, numbers)
            forward = forward.renumbered(numbers, len(vocabulary))
    is_partition = has_array(generation, "ordinals")
    stored = has_array(generation, "eigenvectors")
    eigenvalues = open_array(generation, "eigenvalues")
    common = np.zeros(0, np.int64)
    if settings.common_weight < 1:
        terms = sorted(Analyzer(settings).common() & vocabulary.numbers.keys())
        common = np.array([vocabulary.numbers[term] for term in terms], np.int64)
    query_kernel = QueryKernel.of(
        Segments([segment], len(vocabulary)),
        weighting=TermWeighting(settings.burstiness, common, settings.common_weight, settings.idf),
    )
    if trained is not None and not is_partition:  # after a compaction
        vocabulary = vocabulary.without(query_kernel.counts.frequencies == 0)
        small = trained.documents <= SMALL
    else:
        small = stored
    snapshot = Snapshot(
        generation=generation,
        vocabulary=vocabulary,
        query_kernel=query_kernel,
        common=common,
        lengths=open_array(generation, "lengths"),
        eigenvalues=eigenvalues,
        eigenvectors=open_array(generation, "eigenvectors")
        if stored
        else np.zeros((query_kernel.size, 0), np.float32),
        has_spectrum=stored,
        small=small,
        latent_dimensions=min(settings.dimensions, settings.latent_dimensions, len(eigenvalues)),
        lsi_dimensions=min(settings.dimensions, max(len(eigenvalues), MIN_EIGENVECTORS)),
        expansion=open_array(generation, "expansion")
        if has_array(generation, "expansion")
        else None,
        expansion_key=(settings.spectral, settings.gamma, settings.head),
        sparse_expansion=SegmentedExpansion(
            [open_sparse_expansion(partial(open_array, generation))]
        ),
        neighbour_count=settings.neighbours,
        seed=settings.seed,
        b=settings.b,
        forward=forward,
        vectors=open_vectors(generation, vectors),
        ordinals=open_array(generation, "ordinals") if is_partition else None,
        collection=collection,
        remote_rows=open_remote_rows(partial(open_array, generation))
        if has_array(generation, "elsewhere_rows")
        else NO_REMOTE_ROWS,
    )
    if has_array(generation, "lsi_eigenvectors"):
        # Mapped now, so that an open index still works after its files are deleted.
        _ = snapshot.lsi.arrays
    return snapshot


def _vocabulary(generation: Path, trained: TrainedStatistics | None) -> Vocabulary:
    terms = read_vocabulary(generation)
    if trained is None:
        return Vocabulary(terms)
    shared = len(trained.frequencies)
    return Vocabulary(terms[:shared]).extended(terms[shared:])
