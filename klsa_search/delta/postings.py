"""Postings of an index to which documents are written: those of the build, and later segments."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Integers, SparseRows
from klsa_search.delta.saturated_postings import SaturatedPostings
from klsa_search.kernels.bm25 import length_norms
from klsa_search.kernels.postings import Postings, Segment
from klsa_search.storage.forward_index import Forward

_MERGE_SIZE: Final = 128
"""Documents from which a segment is kept instead of being rebuilt with every write."""


class _Later(NamedTuple):
    begin: int
    end: int
    segment: Segment


class DeltaPostings:
    """The postings of all documents in segments, saturated by a quantised mean length.

    The last segment is rebuilt with every write up to a hundred documents; others are merged in
    pairs, so their number is logarithmic. The division into segments changes no bit of any score.
    Memory: 4 bytes a posting of later documents.

    base       segment of the build
    saturated  its postings
    b          of BM25
    """

    def __init__(self, base: Segment, saturated: SaturatedPostings, b: float) -> None:
        self._base, self._saturated, self._b = base, saturated, b
        self._first = base.after
        self._average = 0.0  # by which `_base` and `_later` are saturated
        self._later: list[_Later] = []

    def segments(
        self,
        forward: Forward,
        lengths: npt.NDArray[np.int32],
        latest: SparseRows,
        average: float,
    ) -> list[Segment]:
        """Return segments of all documents.

        forward, lengths  of these documents and those of the build
        latest  counts of the last of them
        Cost: the documents after the last kept segment, and some merges; if the length has changed,
        all later documents, and `SaturatedPostings.at`.
        """
        if average != self._average:
            self._base = self._base._replace(postings=self._saturated.at(average))
            self._later, self._average = [], average
        begin, end = self._later[-1].end if self._later else self._first, len(lengths)
        if end - begin >= _MERGE_SIZE:
            while self._later and end - begin >= self._later[-1].end - self._later[-1].begin:
                begin = self._later.pop().begin
            self._later.append(self._segment_of(begin, end, forward, lengths, latest))
            begin = end
        segments_ = [self._base, *(later.segment for later in self._later)]
        if begin == end:
            return segments_
        return [*segments_, self._segment_of(begin, end, forward, lengths, latest).segment]

    def _segment_of(
        self,
        begin: int,
        end: int,
        forward: Forward,
        lengths: npt.NDArray[np.int32],
        latest: SparseRows,
    ) -> _Later:
        is_latest = end - begin == latest.shape[0]
        rows = latest if is_latest else forward.rows(np.arange(begin, end))
        numbers, term_numbers = distinct_terms(rows.indices)
        counts = rows._replace(indices=term_numbers, shape=(end - begin, len(numbers)))
        built = self._base.postings
        norms = length_norms(lengths[begin:end], self._average, k1=built.k1, b=self._b)
        postings = Postings.of(counts, norms, built.k1, block_bits=built.block_bits)
        return _Later(begin, end, Segment.of(begin, postings, numbers))


def distinct_terms(terms: Integers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the distinct terms, ascending, and the index of each among them. Cost: O(V + n)."""
    present = np.zeros(terms.max(initial=-1) + 1, np.bool_)
    present[terms] = True
    numbers = np.flatnonzero(present)
    positions = np.empty(len(present), np.int32)
    positions[numbers] = np.arange(len(numbers), dtype=np.int32)
    return numbers, positions[terms]
