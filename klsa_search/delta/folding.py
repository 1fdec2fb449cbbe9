"""Folding-in: make delta segments of documents written after a build.

    DeltaBuilder(statistics)
    .fold(documents) -> DeltaSegment       adds documents, which later calls know
    .add_segment(segment)                  adds an existing segment
    .first, .after                         range of doc ids

The result follows from the build and all later documents so far, however they are divided among
calls and segments: merged segments equal those of one call. A document takes about 0.5 ms.

The nearest neighbours of a document are among all earlier ones. As in
`kernels.nearest_neighbours`, partial sums select the candidates; here over single terms and the
postings of the query kernel. A term t of document d adds

    S φ(d)_t · w(t)^p · saturation(t,x)

to every document x that contains it, and the sum is multiplied by S(x) · K(x,x)^-¼. Terms are
processed by descending weight. At most a fixed number of postings of the build is read for a
document; a term with more postings than are left of it is skipped, and its postings in later
documents are not read either.

K is then computed exactly for the candidates. Sums over features are integers, and the rest is
computed as in the query engine, so an entry has the same bits wherever it is computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.collection.model import Document
from klsa_search.core.array_types import (
    DocIds,
    GrowableArray,
    GrowableLists,
    Integers,
    Numbers,
    SparseRows,
    starts_of,
)
from klsa_search.core.lazy import lazy_property
from klsa_search.core.parallel import processors
from klsa_search.delta.features import CandidateTerms, TermMap, document_features
from klsa_search.delta.segment import DeltaSegment, words_of
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.errors import StoreError
from klsa_search.kernels.bm25 import length_norms
from klsa_search.kernels.counts import BlockCounts, count_block
from klsa_search.kernels.postings import UNIT
from klsa_search.lowrank import sparse_expansion
from klsa_search.lowrank.sparse_expansion import (
    LEVELS,
    SegmentedExpansion,
    SparseExpansion,
    scalars_of,
)
from klsa_search.storage.forward_index import Forward, encoded

_MAX_POSTINGS: Final = 60_000
"""Budget of postings of the build for one document."""

_CANDIDATES: Final = 500
"""Candidates for which K is computed.

With both limits, the entries found have 0.995 of the sum of those from 2,000 candidates and all
postings, among 300,000 documents; with twice the postings 0.997, for a third more time.
"""

LINK_BATCH: Final = 256  # documents whose terms are indexed before they are searched for
TASK_DOCUMENTS: Final = 32  # documents of one task of a thread

_Counts = tuple[Numbers, npt.NDArray[np.int32], npt.NDArray[np.int32]]
_Rows = npt.NDArray[np.uint32]
_Values = npt.NDArray[np.float32]


class DeltaBuilder:
    """Folds documents in, batch by batch; not safe to share between threads.

    latest  counts of the documents added last: see `Forward.rows`
    Values that were returned do not change. Memory: 600 bytes a folded document and its codes, and
    in each thread 5 bytes a doc id and one a feature of the build.
    """

    def __init__(self, statistics: BuildStatistics) -> None:
        self._statistics, built = statistics, statistics.expansion
        self._terms = TermMap(statistics)
        self._codes = GrowableLists(np.uint8)
        self._features = GrowableLists(np.uint32)
        self._vectors = GrowableArray(np.int8, built.document_vectors.shape[1])
        self._boosts = GrowableArray(np.float32)
        self._rows = GrowableArray(np.uint32, built.rows.shape[1])
        self._scales = GrowableArray(np.float32, built.scales.shape[1])
        self._postings = _native.LaterPostings(statistics.terms)
        self._indexed = 0  # documents in the postings
        self.latest = self.counts(np.zeros(0, np.int64))

    @property
    def first(self) -> int:
        """Return the doc id of the first later document."""
        return self._statistics.documents

    @property
    def after(self) -> int:
        """Return the doc id of the next document."""
        return self.first + len(self._boosts)

    @property
    def expansion(self) -> SparseExpansion:
        """Return the rows and features of the documents so far."""
        return replace(
            self._statistics.expansion,
            rows=self._rows.rows,
            scales=self._scales.rows,
            starts=self._features.starts,
            features=self._features.numbers,
            document_vectors=self._vectors.rows,
        )

    @property
    def bytes(self) -> int:
        """Return the bytes of rows, features and codes of the documents so far."""
        arrays = (self._vectors, self._rows, self._scales)
        lists = self._features.bytes + self._codes.bytes
        return lists + sum(array.rows.nbytes for array in arrays)

    def forward(self, terms: int) -> Forward:
        """Return the forward index of all documents, with so many terms in all."""
        return self._statistics.forward.extended((self._codes.numbers, self._codes.starts), terms)

    def counts(self, doc_ids: DocIds) -> SparseRows:
        """Return the counts of documents, also of the build: see `Forward.rows`."""
        return self.forward(len(self._terms.ranks)).rows(doc_ids)

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
        block, new_terms, words_before = self._terms.number(documents)
        ranks = self._terms.ranks
        content = self._terms.content
        counts = count_block(block, content, statistics.settings.searched_fields.weights)
        starts = starts_of(counts.sizes)
        lengths = np.diff(starts_of(counts.counts)[starts]).astype(np.int32)
        codes, code_sizes = encoded(block, ranks)
        features = document_features(statistics, counts, content)
        self._append(
            features.starts, features.features, features.document_vectors, features.diagonals
        )
        values, neighbours = self._nearest(features.query_terms, counts, starts, lengths)
        rows, steps = packed(values, neighbours)
        scales = np.column_stack((steps, features.diagonals))
        self._rows.extend(rows)
        self._scales.extend(scales)
        words, word_starts = words_of(new_terms)
        reverse, reverse_values = self._reverse(values, neighbours, first)
        code_starts = starts_of(code_sizes)
        self._codes.extend(codes, code_starts)
        self.latest = self.counts(np.arange(first, self.after))
        return DeltaSegment(
            first=first,
            word_starts=word_starts[words_before],
            words=words,
            lengths=lengths,
            forward_starts=code_starts,
            forward_codes=codes,
            feature_starts=features.starts,
            features=features.features,
            document_vectors=features.document_vectors,
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
        self._codes.extend(segment.forward_codes, segment.forward_starts)
        self.latest = self.counts(np.arange(segment.first, segment.after))
        self._append(
            segment.feature_starts, segment.features, segment.document_vectors, segment.scales[:, 1]
        )
        starts, terms, counts, _ = self.latest
        self._index(
            *_build_terms(self._statistics.terms, starts, terms, counts.astype(np.int32)),
            segment.lengths,
        )
        self._rows.extend(segment.rows)
        self._scales.extend(segment.scales)

    def _append(
        self, starts: Numbers, features: _Rows, vectors: npt.NDArray[np.int8], diagonals: _Values
    ) -> None:
        self._features.extend(features, starts)
        self._vectors.extend(vectors)
        self._boosts.extend(_boosts_of(scalars_of(vectors), diagonals))

    def _index(
        self,
        starts: Numbers,
        terms: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        """Index the terms of the next documents: counts by terms, and lengths."""
        settings = self._statistics.settings
        norms = length_norms(lengths, self._statistics.trained.length, k1=settings.k1, b=settings.b)
        sums = np.repeat(norms, np.diff(starts)) + counts
        shares = np.clip(np.rint(UNIT * (counts / sums)), 1, UNIT - 1).astype(np.uint16)
        self._postings.append(starts - starts[0], terms, shares)
        self._indexed += len(lengths)

    def _nearest(
        self,
        query_terms: CandidateTerms,
        counts: BlockCounts,
        starts: Numbers,
        lengths: npt.NDArray[np.int32],
    ) -> tuple[_Values, npt.NDArray[np.int32]]:
        """Return values and doc ids of the nearest neighbours of the documents appended last."""
        statistics, n = self._statistics, len(lengths)
        entries = statistics.expansion.rows.shape[1]
        values, neighbours = np.zeros((n, entries), np.float32), np.zeros((n, entries), np.int32)
        offset = self._indexed
        counted = _build_terms(statistics.terms, starts, counts.columns, counts.counts)
        threads = max(min(processors(), n // TASK_DOCUMENTS), 1)
        new = _native.KernelDocuments(
            self._features.starts,
            self._features.numbers,
            self._vectors.rows,
            self._boosts.rows,
        )

        def search(begin: int) -> None:
            end = min(begin + TASK_DOCUMENTS, last)
            self._neighbours.search(
                offset + begin, offset + end, offset, *query_terms, self._postings, new,
                _MAX_POSTINGS, _CANDIDATES, values, neighbours,
            )  # fmt: skip

        with ThreadPoolExecutor(threads) as pool:
            for first in range(0, n, LINK_BATCH):
                last = min(first + LINK_BATCH, n)
                entries = slice(*counted[0][[first, last]].tolist())
                self._index(
                    counted[0][first : last + 1], counted[1][entries], counted[2][entries],
                    lengths[first:last],
                )  # fmt: skip
                map_ = map if threads == 1 else pool.map
                deque(map_(search, range(first, last, TASK_DOCUMENTS)), maxlen=0)
        return values, neighbours

    @lazy_property
    def _neighbours(self) -> _native.FoldInNeighbours:
        expansion, postings = self._statistics.expansion, self._statistics.postings
        documents = _native.KernelDocuments(
            expansion.starts,
            expansion.features,
            expansion.document_vectors,
            _boosts_of(expansion.document_scalars, expansion.scales[:, 1]),
        )
        return _native.FoldInNeighbours(documents, postings.native, expansion.mean_square)

    def _reverse(
        self, values: _Values, neighbours: npt.NDArray[np.int32], first: int
    ) -> tuple[npt.NDArray[np.int32], _Values]:
        """Return entries for the rows of earlier documents that are strong enough for them."""
        rows, columns = np.nonzero(values)
        before, strength = neighbours[rows, columns], values[rows, columns]
        # The weakest entry of a row is 0 if it is not full.
        expansion = SegmentedExpansion([self._statistics.expansion, self.expansion])
        positions = before.astype(np.int64)
        levels = (expansion.rows(positions)[:, -1] & np.uint32(LEVELS)).astype(np.float32)
        strong = strength >= levels * expansion.scales(positions)[:, 0]
        entries = np.column_stack((before, first + rows.astype(np.int32)))[strong]
        order = np.lexsort(entries.T[::-1])
        return entries[order], strength[strong][order]


def _boosts_of(
    scalars: npt.NDArray[np.float32], diagonals: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return S · K(x,x)^-¼: (n,); without it long documents dominate the candidates."""
    lengths = np.where(diagonals > 0, diagonals, 1)
    return np.where(diagonals > 0, scalars[:, 1] / np.sqrt(np.sqrt(lengths)), 0).astype(np.float32)


def packed(values: _Values, neighbours: npt.NDArray[np.int32]) -> tuple[_Rows, _Values]:
    """Return rows in the form of `lowrank.sparse_expansion`, and their steps."""
    steps = values[:, 0] / np.float32(LEVELS)
    positive = values > 0
    levels = np.rint(np.divide(values, steps[:, None], out=np.zeros_like(values), where=positive))
    packed = (neighbours.astype(np.uint32) << np.uint32(8)) | np.maximum(levels, 1).astype(
        np.uint32
    )
    return np.where(positive, packed, np.uint32(0)), steps


def _build_terms(
    terms: int, starts: Integers, columns: Integers, counts: npt.NDArray[np.int32]
) -> _Counts:
    is_known = columns < terms
    return starts_of(is_known)[starts], columns[is_known].astype(np.int32), counts[is_known]
