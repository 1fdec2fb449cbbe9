"""Documents written after a build, in order: read from the files of segments, or folded in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds, GrowableLists, SparseRows
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.segment import DeltaSegment, SegmentCache
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.lowrank.sparse_expansion import SparseExpansion
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.manifest import Manifest


class FoldedDocuments:
    """The rows, features and codes of later documents, which grow at their end.

    generation, manifest  of the build
    statistics            of the build
    Values that were returned do not change. For one thread at a time.
    """

    def __init__(self, generation: Path, manifest: Manifest, statistics: BuildStatistics) -> None:
        self._forward, self._terms = statistics.forward, len(statistics.vocabulary)
        self._builder = DeltaBuilder(statistics)
        self._cache = SegmentCache(generation, manifest, self._terms)
        self._codes = GrowableLists(np.uint8)

    @property
    def after(self) -> int:
        """Return the doc id of the next document."""
        return self._builder.after

    @property
    def expansion(self) -> SparseExpansion:
        """Return the rows and features of the documents so far."""
        return self._builder.expansion

    @property
    def bytes(self) -> int:
        """Return the bytes of rows, features and codes."""
        return self._builder.bytes + self._codes.bytes

    def next_size(self) -> int:
        """Return how many documents to append at once at most: up to the end of the block."""
        return self._cache.next_size()

    def append(self, documents: Sequence[Document]) -> tuple[DeltaSegment, SparseRows]:
        """Return the segment of the next documents, stored or new, and their counts."""
        segment = self._cache.get(documents)
        rows = None
        if segment is None:
            segment = self._builder.fold(documents)
            self._cache.append(segment)
        else:
            rows = self._builder.add_segment(segment)
        self._codes.extend(segment.forward_codes, segment.forward_starts)
        self._terms += len(segment.new_terms)
        if rows is None:
            rows = self.counts(np.arange(segment.first, segment.after))
        return segment, rows

    def counts(self, doc_ids: DocIds) -> SparseRows:
        """Return the counts of documents, also of the build: see `Forward.rows`."""
        return self.forward(self._terms).rows(doc_ids)

    def forward(self, terms: int) -> Forward:
        """Return the forward index of all documents, with so many terms in all."""
        return self._forward.extended((self._codes.numbers, self._codes.starts), terms)
