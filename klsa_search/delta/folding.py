"""Folding-in: make delta segments of documents written after a build.

    DeltaBuilder(statistics, segments=())  continues after existing segments, in order
    .fold(documents) -> DeltaSegment       adds documents, which later calls know
    .add_segment(segment)                  adds an existing segment
    .first, .after                         range of doc ids

The result follows from the build and all later documents so far, however they are divided among
calls and segments: merged segments equal those of one call. A document takes about 0.5 ms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.collection.model import Document
from klsa_search.core.cached import lazy_property
from klsa_search.core.parallel import processors
from klsa_search.delta.features import TermMap, document_features
from klsa_search.delta.neighbours import (
    CANDIDATES,
    MAX_POSTINGS,
    CandidateTerms,
    LaterDocuments,
    boosts,
)
from klsa_search.delta.segment import DeltaSegment, distinct, words_of
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.errors import StoreError
from klsa_search.kernels.counts import BlockCounts, count_block
from klsa_search.lowrank import sparse_expansion
from klsa_search.lowrank.sparse_expansion import LEVELS, SparseExpansion
from klsa_search.storage.forward_index import encoded

LINK_BATCH: Final = 256  # documents whose terms are indexed before they are searched for
TASK_DOCUMENTS: Final = 32  # documents of one task of a thread

_Counts = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]
_Rows = npt.NDArray[np.uint32]
_Values = npt.NDArray[np.float32]


class DeltaBuilder:
    """Folds documents in, batch by batch; not safe to share between threads.

    Memory: 600 bytes a folded document, and in each thread 5 bytes a doc id and one a feature of
    the build.
    """

    def __init__(self, statistics: BuildStatistics, segments: Sequence[DeltaSegment] = ()) -> None:
        self._statistics = statistics
        self._terms = TermMap(statistics)
        self._later = LaterDocuments(statistics)
        for segment in segments:
            self.add_segment(segment)

    @property
    def first(self) -> int:
        """Return the doc id of the first later document."""
        return self._statistics.documents

    @property
    def after(self) -> int:
        """Return the doc id of the next document."""
        return self.first + len(self._later)

    @property
    def expansion(self) -> SparseExpansion:
        """Return the rows and features of the documents so far; it does not change."""
        return self._later.expansion

    @property
    def bytes(self) -> int:
        """Return the bytes of the rows and features of the documents so far."""
        return self._later.bytes

    def fold(self, documents: Sequence[Document]) -> DeltaSegment:
        """Fold documents in; return the segment of these documents.

        Raise StoreError, with nothing changed, above `MAX_DOCUMENTS` doc ids.
        """
        first, statistics = self.after, self._statistics
        if first + len(documents) > sparse_expansion.MAX_DOCUMENTS:
            raise StoreError(
                f"the log of writes needs {first + len(documents):,} doc ids, more "
                f"than the limit of {sparse_expansion.MAX_DOCUMENTS:,}; undo the last "
                "batches with `klsa-index rollback NAME --writes N`, then run "
                "`klsa-index refit NAME`"
            )
        block, words = self._terms.number(documents)
        ranks = self._terms.ranks
        content = self._terms.content
        counts = count_block(block, content, statistics.settings.searched_fields.weights)
        starts = _starts(counts.sizes)
        tokens = np.concatenate(([0], np.cumsum(counts.counts, dtype=np.int64)))
        lengths = np.diff(tokens[starts]).astype(np.int32)
        codes, code_sizes = encoded(block, ranks)
        features = document_features(statistics, counts, content)
        self._later.append(
            features.starts, features.features, features.document_vectors, features.diagonals
        )
        values, neighbours = self._nearest(features.query_terms, counts, starts, lengths)
        rows, steps = _packed(values, neighbours)
        scales = np.column_stack((steps, features.diagonals))
        self._later.append_rows(rows, scales)
        distinct_terms, count_terms = distinct(counts.columns)
        reverse, reverse_values = self._reverse(values, neighbours, first)
        return DeltaSegment(
            first=first,
            words=words_of(words),
            terms=distinct_terms.astype(np.int32),
            count_starts=starts,
            count_terms=count_terms,
            counts=counts.counts.copy(),
            lengths=lengths,
            forward_starts=_starts(code_sizes),
            forward_codes=codes,
            feature_starts=features.starts,
            features=features.features,
            cards=features.document_vectors,
            rows=rows,
            scales=scales,
            reverse=reverse,
            reverse_values=reverse_values,
        )

    def add_segment(self, segment: DeltaSegment) -> None:
        """Add the documents of an existing segment; ValueError if it is not the next one."""
        if segment.first != self.after:
            raise ValueError(f"a segment at {segment.first}, where {self.after} is next")
        self._terms.add_terms(segment.new_terms)
        documents = self._later
        documents.append(
            segment.feature_starts, segment.features, segment.cards, segment.scales[:, 1]
        )
        documents.index(
            *_build_terms(
                self._statistics.terms,
                segment.count_starts,
                segment.terms[segment.count_terms],
                segment.counts,
            ),
            segment.lengths,
        )
        documents.append_rows(segment.rows, segment.scales)

    def _nearest(
        self,
        query_terms: CandidateTerms,
        counts: BlockCounts,
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int32],
    ) -> tuple[_Values, npt.NDArray[np.int32]]:
        """Return values and doc ids of the nearest neighbours of the documents appended last."""
        statistics, documents, n = self._statistics, self._later, len(lengths)
        entries = statistics.expansion.rows.shape[1]
        values, neighbours = np.zeros((n, entries), np.float32), np.zeros((n, entries), np.int32)
        offset = documents.indexed
        counted = _build_terms(statistics.terms, starts, counts.columns, counts.counts)
        threads = max(min(processors(), n // TASK_DOCUMENTS), 1)
        new = documents.arrays

        def search(begin: int) -> None:
            end = min(begin + TASK_DOCUMENTS, last)
            self._neighbours.search(
                offset + begin, offset + end, offset, *query_terms, later, new,
                MAX_POSTINGS, CANDIDATES, values, neighbours,
            )  # fmt: skip

        with ThreadPoolExecutor(threads) as pool:
            for first in range(0, n, LINK_BATCH):
                last = min(first + LINK_BATCH, n)
                documents.index(*_slice(counted, first, last), lengths[first:last])
                later = documents.postings
                map_ = map if threads == 1 else pool.map
                deque(map_(search, range(first, last, TASK_DOCUMENTS)), maxlen=0)
        return values, neighbours

    @lazy_property
    def _neighbours(self) -> _native.FoldInNeighbours:
        expansion, postings = self._statistics.expansion, self._statistics.postings
        documents = _native.KernelDocuments(
            expansion.starts,
            expansion.features,
            expansion.document_scalars,
            boosts(expansion.document_scalars, expansion.scales[:, 1]),
        )
        return _native.FoldInNeighbours(
            documents, postings.starts, postings.entries, postings.run_starts, postings.runs,
            postings.block_bits, expansion.mean_square,
        )  # fmt: skip

    def _reverse(
        self, values: _Values, neighbours: npt.NDArray[np.int32], first: int
    ) -> tuple[npt.NDArray[np.int32], _Values]:
        """Return entries for the rows of earlier documents that are strong enough for them."""
        rows, columns = np.nonzero(values)
        before, strength = neighbours[rows, columns], values[rows, columns]
        strong = strength >= self._later.weakest(before.astype(np.int64))
        entries = np.column_stack((before, first + rows.astype(np.int32)))[strong]
        order = np.lexsort(entries.T[::-1])
        return entries[order], strength[strong][order]


def _starts(sizes: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _packed(values: _Values, neighbours: npt.NDArray[np.int32]) -> tuple[_Rows, _Values]:
    """Return rows in the form of `lowrank.sparse_expansion`, and their steps."""
    steps = values[:, 0] / np.float32(LEVELS)
    positive = values > 0
    levels = np.rint(np.divide(values, steps[:, None], out=np.zeros_like(values), where=positive))
    packed = (neighbours.astype(np.uint32) << np.uint32(8)) | np.maximum(levels, 1).astype(
        np.uint32
    )
    return np.where(positive, packed, np.uint32(0)), steps


def _build_terms(
    terms: int,
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int32],
) -> _Counts:
    """Return the counts of terms of the build."""
    is_known = columns < terms
    before = np.concatenate(([0], np.cumsum(is_known)))
    return before[starts], columns[is_known], counts[is_known]


def _slice(counts: _Counts, first: int, after: int) -> _Counts:
    """Return the counts of some documents."""
    starts, columns, times = counts
    entries = slice(starts[first], starts[after])
    return starts[first : after + 1], columns[entries], times[entries]
