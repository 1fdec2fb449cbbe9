"""Postings in segments: one of the build, and further ones of later documents.

Each segment numbers its own terms, so a small segment stays small. Term weights are computed from
all segments (`kernels.query_kernel`), so adding or removing one changes no other. Scores are sums
of whole numbers, so any division into segments gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.core.cached import lazy_property
from klsa_search.kernels.postings import Postings

_Numbers = npt.NDArray[np.int64]


class Segment(NamedTuple):
    """The postings of consecutive documents.

    first     doc id of the first document
    postings  with local term numbers
    terms     (T,) global term numbers, ascending; None if local numbers are global
    local_terms
              (T,) their local numbers; None likewise
    """

    first: int
    postings: Postings
    terms: _Numbers | None = None
    local_terms: _Numbers | None = None

    @classmethod
    def of(cls, first: int, postings: Postings, numbers: _Numbers) -> Segment:
        """Return a segment with the global numbers of its terms: (T,) in any order."""
        order = np.argsort(numbers, kind="stable")
        return cls(first, postings, numbers[order].astype(np.int64), order.astype(np.int64))

    @property
    def after(self) -> int:
        """Return the doc id after the last document."""
        return self.first + self.postings.size

    def local_number(self, term: int) -> int | None:
        """Return the local number of a term; None if it is not in the segment. Cost O(log T)."""
        if self.terms is None or self.local_terms is None:
            return term if term < len(self.postings.starts) - 1 else None
        position = int(np.searchsorted(self.terms, term))
        is_present = position < len(self.terms) and self.terms[position] == term
        return int(self.local_terms[position]) if is_present else None

    def numbers(self) -> _Numbers:
        """Return the global numbers of the local terms: (T,). Cost O(T)."""
        if self.terms is None or self.local_terms is None:
            return np.arange(len(self.postings.starts) - 1)
        numbers = np.empty_like(self.terms)
        numbers[self.local_terms] = self.terms
        return numbers

    @property
    def term_indices(self) -> slice | _Numbers:
        """Return the indices of its terms in an array of all terms."""
        return slice(len(self.postings.starts) - 1) if self.terms is None else self.numbers()


class Segments:
    """Postings of one or more segments; immutable.

    parts  segments, one after the other, with the same k1 and size of blocks
    terms  V, number of terms in all
    size   N, number of doc ids
    """

    def __init__(self, parts: Sequence[Segment], terms: int) -> None:
        self.parts, self.terms = tuple(parts), terms
        one = self.parts[0].postings
        self.k1, self.block_bits, self.step = one.k1, one.block_bits, one.step
        position = 0
        for part in self.parts:
            if part.first != position:
                raise ValueError(f"a segment at {part.first}, where {position} is next")
            if (part.postings.k1, part.postings.block_bits) != (self.k1, self.block_bits):
                raise ValueError("segments of different k1 or size of blocks")
            position = part.after
        self.size = position
        self.blocks = sum(part.postings.blocks for part in self.parts)

    @classmethod
    def single(cls, postings: Postings) -> Segments:
        """Return postings as a single segment."""
        return cls((Segment(0, postings),), len(postings.starts) - 1)

    @lazy_property
    def frequencies(self) -> _Numbers:
        """Return n_t: (V,) document frequencies. Cost O(V), once."""
        return self._sum([part.postings.frequencies for part in self.parts])

    @lazy_property
    def occurrences(self) -> _Numbers:
        """Return Σ_d f(t,d): (V,) occurrences of each term. Cost O(V), once."""
        return self._sum([part.postings.occurrences for part in self.parts])

    def _sum(self, of_parts: Sequence[_Numbers]) -> _Numbers:
        total = np.zeros(self.terms, np.int64)
        total[self.parts[0].term_indices] = of_parts[0]
        for part, numbers in zip(self.parts[1:], of_parts[1:], strict=True):
            total[part.term_indices] += numbers
        return total

    @lazy_property
    def best(self) -> npt.NDArray[np.uint16]:
        """Return (V, 4) as `Postings`: the maximum, then lower bounds of the n-th best."""
        (first, *later) = self.parts
        if not later and len(first.postings.best) == self.terms:
            return first.postings.best
        best = np.zeros((self.terms, first.postings.best.shape[1]), np.uint16)
        best[first.term_indices] = first.postings.best
        for part in later:
            best[part.term_indices] = np.maximum(best[part.term_indices], part.postings.best)
        return best

    def of_term(self, term: int) -> tuple[DocIds, npt.NDArray[np.uint16]]:
        """Return documents and saturations of one term. Cost: its postings."""
        of_segments = [
            (part.first, *part.postings.of_term(local_number))
            for part, local_number in ((part, part.local_number(term)) for part in self.parts)
            if local_number is not None
        ]
        return (
            np.concatenate(
                [np.zeros(0, np.int32), *(first + documents for first, documents, _ in of_segments)]
            ).astype(np.int32, copy=False),
            np.concatenate([np.zeros(0, np.uint16), *(impacts for *_, impacts in of_segments)]),
        )

    def batches(self, limit: int) -> Iterator[tuple[_Numbers, DocIds, npt.NDArray[np.uint16]]]:
        """Yield all postings, about `limit` at a time: term numbers, documents and saturations."""
        for part in self.parts:
            starts, numbers, first = part.postings.starts, part.numbers(), 0
            while first < len(numbers):
                after = int(np.searchsorted(starts, starts[first] + limit, side="right")) - 1
                after = min(max(after, first + 1), len(numbers))
                documents, saturations = part.postings.of_terms(first, after)
                terms = np.repeat(numbers[first:after], np.diff(starts[first : after + 1]))
                yield terms, part.first + documents, saturations
                first = after

    def steps(self, terms: _Numbers, weights: _Numbers) -> _Numbers:
        """Return k_q in steps: (size,); see `Postings.steps`."""
        row = np.zeros(self.size, np.int64)
        for part in self.parts:
            local_numbers = [part.local_number(term) for term in terms.tolist()]
            is_present = np.array([number is not None for number in local_numbers], np.bool_)
            numbers = np.array([number for number in local_numbers if number is not None], np.int64)
            row[part.first : part.after] = part.postings.steps(numbers, weights[is_present])
        return row
