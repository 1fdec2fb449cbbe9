"""Postings of documents that were written after a build, in few segments."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy import sparse

from klsa_search.delta.segment import DeltaSegment, distinct
from klsa_search.features import bm25
from klsa_search.growing import Growing
from klsa_search.kernel.postings import Postings
from klsa_search.kernel.segments import ALIGNED, Segment

_STAYS: Final = 1024
"""Documents from which a segment is not made again with every write."""


class _Part(NamedTuple):
    begin: int
    end: int
    segment: Segment


class Parts:
    """The counts of later documents, and segments of their postings.

    The last documents are made a segment of with every write, until there are some thousand; others
    are joined two by two, so that there are as many as the logarithm of the documents. How they are
    divided changes no bit of any score. Memory: 12 bytes a posting.

    first       position of the first document
    block_bits, k1, b  as of the postings before
    """

    def __init__(self, first: int, block_bits: int, *, k1: float, b: float) -> None:
        self._first, self._block_bits, self._k1, self._b = first, block_bits, k1, b
        self._ends = Growing(np.int64)  # where the counts of each document end
        self._terms, self._counts = Growing(np.int32), Growing(np.int32)
        self._lengths = Growing(np.int32)
        self._kept: list[_Part] = []
        self._average = 0.0

    def append(self, segment: DeltaSegment) -> None:
        """Append documents. Cost O(their counts)."""
        self._ends.extend(segment.count_starts[1:] + len(self._terms))
        self._terms.extend(segment.terms[segment.count_terms])
        self._counts.extend(segment.counts)
        self._lengths.extend(segment.lengths)

    def segments(self, average: float) -> list[Segment]:
        """Segments of all documents, saturated by a standing length.

        Cost: the documents behind the last segment that stays, and at times more; all of them where
        the length is another than before.
        """
        if average != self._average:
            self._kept, self._average = [], average
        begin, end = self._kept[-1].end if self._kept else 0, len(self._lengths)
        if end - begin >= _STAYS + ALIGNED:
            until = end // ALIGNED * ALIGNED
            while self._kept and until - begin >= self._kept[-1].end - self._kept[-1].begin:
                begin = self._kept.pop().begin
            self._kept.append(self._part(begin, until))
            begin = until
        found = [part.segment for part in self._kept]
        return found if begin == end else [*found, self._part(begin, end).segment]

    def _part(self, begin: int, end: int) -> _Part:
        ends = self._ends.held
        first, after = int(ends[begin - 1]) if begin else 0, int(ends[end - 1])
        numbers, own = distinct(self._terms.held[first:after])
        starts = np.concatenate(([first], ends[begin:end])) - first
        counts = sparse.csr_array(
            (self._counts.held[first:after], own, starts), shape=(end - begin, len(numbers))
        )
        norms = bm25.norms(self._lengths.held[begin:end], self._average, k1=self._k1, b=self._b)
        postings = Postings.of(counts, norms, self._k1, block_bits=self._block_bits)
        return _Part(begin, end, Segment.of(self._first + begin, postings, numbers))
