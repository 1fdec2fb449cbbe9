"""Restricted states: an index as if the documents that do not match a filter were deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from klsa_search.core.array_types import DocumentMask
from klsa_search.kernels.query_kernel import DocumentCounts, QueryKernel, TermWeighting
from klsa_search.search.batches import Drift
from klsa_search.search.engine.answer_cache import AnswerCache
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.engine import Bm25Engine
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.filters.masks import FilterLike, key_of
from klsa_search.search.state.state import State

_CACHE_SIZE: Final = 2**28
"""Bytes of cached states, at most: see `bytes_of`."""
_BYTES_OF_TERM: Final = 60
_BYTES_OF_DOCUMENT: Final = 2
_FEWEST: Final = 4
_MOST: Final = 256
"""Cached states, at least and at most."""


def restricted_state(state: State, filter_: FilterLike) -> State:
    """Return a state in which only documents that match a filter are live, cached in the state.

    It differs from one after deletions in what is read from the generation alone: the mean length
    of saturations and the calibration of quality. Cost: see `Index.restricted`.
    """
    capacity = min(max(_CACHE_SIZE // max(bytes_of(state), 1), _FEWEST), _MOST)
    return state.restricted.of(
        key_of(filter_), capacity, lambda: make_restricted_state(state, filter_)
    )


def make_restricted_state(state: State, filter_: FilterLike) -> State:
    """Return a state in which only documents that match a filter are live."""
    return _restricted_to(state, state.filters.of(filter_).allowed)


def with_statistics(restricted: State, statistics: CollectionStatistics) -> State:
    """Return a restricted state of a partition that weighs words by the views of all partitions.

    statistics  sums of those of the restricted states of all partitions
    Cost: O(V).
    """
    snapshot = restricted.snapshot
    assert snapshot.numbering is not None
    assert snapshot.live is not None
    counts = snapshot.numbering.counts(statistics)
    local = snapshot.query_kernel.local_counts
    weighed = _weighed(restricted, snapshot.live, local, counts)
    weighed = replace(weighed, vectors=statistics.spaces(weighed.vectors))
    return replace(restricted, snapshot=weighed)


def _restricted_to(state: State, allowed: DocumentMask) -> State:
    """Return a state in which only these documents, and their passages, are live."""
    live = allowed & state.snapshot.live_docs()
    snapshot = _weighed(state, Mask(live), _live_counts(state.snapshot, live))
    passages = state.passages
    if passages is not None:
        restricted_passages = _restricted_to(passages.state, live[passages.document_of])
        passages = replace(passages, state=restricted_passages)
    info = replace(
        state.info,
        documents=snapshot.query_kernel.local_documents,
        drift=Drift(),
        restricted=True,
    )
    # Searches return live documents of a mask only, so all views share the masks of filters.
    documents = replace(state.documents, live=live)
    return replace(state, info=info, snapshot=snapshot, documents=documents, passages=passages)


def _weighed(
    state: State, live: Mask, local: DocumentCounts, counts: DocumentCounts | None = None
) -> Snapshot:
    """Return the snapshot of a state with these live documents.

    local   their statistics
    counts  of the live documents of all partitions; None if there are no others
    """
    snapshot, settings = state.snapshot, state.info.settings
    unrestricted = snapshot.unrestricted or snapshot
    weighting = TermWeighting(
        settings.burstiness, snapshot.common, settings.common_weight, settings.idf
    )
    kernel = QueryKernel.of(snapshot.query_kernel.postings, local, weighting, counts)
    allowed = live.allowed
    return replace(
        snapshot,
        vocabulary=unrestricted.vocabulary.without(kernel.frequencies == 0),
        query_kernel=kernel,
        bm25_engine=Bm25Engine(kernel, live),
        live=live,
        vectors={
            name: space
            for name, space in snapshot.vectors.items()
            if (space.has(len(snapshot)) & allowed).any()
        },
        unrestricted=unrestricted,
        answers=AnswerCache().present(),
    )


def _live_counts(snapshot: Snapshot, live: DocumentMask) -> DocumentCounts:
    """Return the statistics of these documents, all of which are live in the snapshot."""
    terms = len(snapshot.vocabulary)
    visible, hidden = np.flatnonzero(live), np.flatnonzero(snapshot.live_docs() & ~live)
    fewer = hidden if len(hidden) < len(visible) else visible
    counts = snapshot.counts_of(fewer)
    frequencies = np.bincount(counts.indices, minlength=terms)
    occurrences = np.bincount(counts.indices, counts.data, terms).astype(np.int64)
    if fewer is hidden:
        before = snapshot.query_kernel.local_counts
        frequencies = before.frequencies - frequencies
        occurrences = before.occurrences - occurrences
    return DocumentCounts(len(visible), frequencies, occurrences)


def bytes_of(state: State) -> int:
    """Return the approximate bytes of a restricted state, once all kinds of requests used it.

    Measured: `tests/search/test_restricted_views.py`. Buffers of threads, masks of filters and
    matrices of all documents are those of the unrestricted state.
    """
    snapshot = state.snapshot
    size = _BYTES_OF_DOCUMENT * len(snapshot) + _BYTES_OF_TERM * len(snapshot.vocabulary)
    return size if state.passages is None else size + bytes_of(state.passages.state)
