"""Postings of the query kernel: the documents of each term, with saturated counts.

    k_q(d) = step · Σ_t (1 + ⌊weight(t) · saturation(t,d) / 2^16⌋)            [KLSA eq. 3]

    saturation(t,d) = f / (K_d + f) in 65,536ths, from 1 to 65,535
    weight(t)       = f(t,q) · w(t) in 65,536ths
    step            = (k1 + 1) / 65,536

All summands are integers, so their sum does not depend on the order. Term weights are not part of
postings, so adding or deleting documents does not change them.

A posting has 32 bits. Doc ids are divided into blocks of 2^b, b <= 16; the postings of a term in
one block are a run, each with 16 bits for the offset in the block and 16 for the saturation. For
each run its block, length and maximum saturation are stored: an upper bound as in block-max WAND
[Ding, Suel 2011], with blocks of doc ids as in [Dimopoulos, Nepomnyashchiy, Suel 2013]. The n-th
best saturation of a term is a lower bound of the n-th best score.

Postings are in segments: one of the build, and further ones of later documents. Each segment
numbers its own terms, so a small segment stays small. Term weights are computed from all segments
(`kernels.query_kernel`), so adding or removing one changes no other, and any division into segments
gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.array_types import DocIds, Numbers, SparseRows, csr_arrays, starts_of
from klsa_search.core.lazy import lazy_property

if TYPE_CHECKING:
    from scipy import sparse


UNIT: Final = 1 << 16
"""Steps of a saturation of 1, and of a weight of 1."""

DEPTHS: Final = (1, 10, 100, 1000)
"""The n of the n-th best saturations that are stored; a search for k uses the next one above k."""

ONE_BLOCK: Final = 1 << 16
"""Number of documents up to which there is one block, because skipping does not pay."""

BLOCK_BITS: Final = 13
"""Block size above that, 8,192: the scores of a block, 32 KiB, fit the L1 cache."""


@dataclass(frozen=True)
class Postings:
    """The documents of each term, in document order.

    k1          parameter of the saturation
    shape       (2,) int64: N and b
    starts      (V + 1,) int64, start of the entries of each term
    entries     (nnz,) uint32, offset in the block << 16 | saturation
    run_starts  (V + 1,) int64, start of the runs of each term
    runs        (R, 3) uint16: block, length - 1, maximum saturation
    best        (V, 4) uint16, its best saturation, its 10th, 100th and 1000th; 0 without
    occurrences (V,) int64, Σ_d f(t,d)
    """

    k1: float
    shape: Numbers
    starts: Numbers
    entries: npt.NDArray[np.uint32]
    run_starts: Numbers
    runs: npt.NDArray[np.uint16]
    best: npt.NDArray[np.uint16]
    occurrences: Numbers

    @classmethod
    def of(
        cls,
        counts: SparseRows | sparse.csr_array,
        norms: npt.NDArray[np.floating],
        k1: float,
        *,
        block_bits: int | None = None,
    ) -> Postings:
        """Return the postings of counts.

        counts      f(t,d): (N, V), without stored zeros
        norms       K_d: (N,), see `kernels.bm25.length_norms`
        block_bits  b, from 6 to 16; by default one block for up to 65,536 documents, else 13
        Cost O(nnz); memory 4 bytes per posting, 6 per run, 28 per term, and the counts.
        """
        N, V = counts.shape
        if block_bits is None:
            block_bits = BLOCK_BITS if N > ONE_BLOCK else ONE_BLOCK.bit_length() - 1
        lengths, runs = np.zeros(V, np.int64), np.zeros(V, np.int64)
        occurrences = np.zeros(V, np.int64)
        csr = csr_arrays(counts)
        _native.count_postings(*csr, block_bits, lengths, runs, occurrences)
        starts, run_starts = starts_of(lengths), starts_of(runs)
        entries = np.empty(starts[-1], np.uint32)
        table = np.zeros((run_starts[-1], 3), np.uint16)
        _native.write_postings(
            *(*csr, norms.astype(np.float64), block_bits),
            *(starts[:-1].copy(), run_starts[:-1].copy(), entries, table),
        )
        best = _best_saturations(starts, entries)
        shape = np.array([N, block_bits])
        return cls(k1, shape, starts, entries, run_starts, table, best, occurrences)

    def saturated(
        self, counts: Callable[[int, int], SparseRows], norms: npt.NDArray[np.float64]
    ) -> Postings:
        """Return postings of the same counts with other norms.

        counts  returns f(t,d) of the documents in a range of doc ids: (n, V), with arrays of the
                same types as the original counts
        norms   K_d: (N,)
        Cost O(nnz); memory 4 bytes per posting, 6 per run, and the counts of 65,536 documents.
        """
        entries = np.empty(len(self.entries), np.uint32)
        offsets, run_offsets = self.starts[:-1].copy(), self.run_starts[:-1].copy()
        runs = np.zeros(self.runs.shape, np.uint16)
        for first in range(0, self.size, ONE_BLOCK):  # a multiple of all block sizes
            after = min(first + ONE_BLOCK, self.size)
            _native.write_postings(
                *(*csr_arrays(counts(first, after)), norms[first:after], self.block_bits),
                *(offsets, run_offsets, entries, runs),
            )
        runs[:, :2] = self.runs[:, :2]  # blocks were numbered from `first`
        best = _best_saturations(self.starts, entries)
        return replace(self, entries=entries, runs=runs, best=best)

    @property
    def size(self) -> int:
        """Return N, the number of documents."""
        return int(self.shape[0])

    @property
    def block_bits(self) -> int:
        """Return b: a block has 2^b doc ids."""
        return int(self.shape[1])

    @property
    def blocks(self) -> int:
        """Return the number of blocks, at least 1."""
        return max(1, -(-self.size >> self.block_bits))

    @property
    def step(self) -> float:
        """Return one step of a score in units of BM25."""
        return (self.k1 + 1) / UNIT

    @property
    def frequencies(self) -> Numbers:
        """Return n_t: (V,) document frequencies."""
        return np.diff(self.starts)

    def of_term(self, term: int) -> tuple[DocIds, npt.NDArray[np.uint16]]:
        """Return documents and saturations of one term. Cost: its postings."""
        return self.of_terms(term, term + 1)

    def of_terms(self, first: int, after: int) -> tuple[DocIds, npt.NDArray[np.uint16]]:
        """Return documents and saturations of consecutive terms, in order."""
        entries = self.entries[self.starts[first] : self.starts[after]]
        runs = self.runs[self.run_starts[first] : self.run_starts[after]]
        firsts = runs[:, 0].astype(np.int32) << self.block_bits
        documents = np.repeat(firsts, runs[:, 1].astype(np.int64) + 1)
        documents += (entries >> np.uint32(16)).astype(np.int32)
        return documents, entries.astype(np.uint16)

    @lazy_property
    def native(self) -> _native.PostingLists:
        """Return the posting lists as native code reads them, checked. Cost: O(V), once."""
        return _native.PostingLists(
            size=self.size,
            block_bits=self.block_bits,
            starts=np.ascontiguousarray(self.starts, np.int64),
            entries=np.ascontiguousarray(self.entries, np.uint32),
            run_starts=np.ascontiguousarray(self.run_starts, np.int64),
            runs=np.ascontiguousarray(self.runs, np.uint16),
        )

    def steps(self, terms: Numbers, weights: Numbers) -> Numbers:
        """Return k_q in steps: (N,). Cost: the postings of the terms, and O(N)."""
        row = np.zeros(self.size, np.int64)
        self.native.add_steps(np.ascontiguousarray(terms), np.ascontiguousarray(weights), row)
        return row


def _best_saturations(starts: Numbers, entries: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
    """Return the n-th best saturation of each term for every n of DEPTHS: (V, 4)."""
    best = np.zeros((len(starts) - 1, len(DEPTHS)), np.uint16)
    _native.find_best_saturations(starts, entries, np.array(DEPTHS, np.int64), best)
    return best


def postings_arrays(postings: Postings) -> dict[str, npt.NDArray[Any]]:
    """Return the stored arrays by name: `postings_<name>`; k1 is a setting."""
    return {f"postings_{name}": getattr(postings, name) for name in _STORED}


def postings_of_arrays(array: Callable[[str], npt.NDArray[Any]], k1: float) -> Postings:
    """Return the postings of stored arrays; `array` returns the array of a name."""
    return Postings(k1, **{name: array(f"postings_{name}") for name in _STORED})


_STORED: Final = tuple(field.name for field in fields(Postings) if field.name != "k1")


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
    terms: Numbers | None = None
    local_terms: Numbers | None = None

    @classmethod
    def of(cls, first: int, postings: Postings, numbers: Numbers) -> Segment:
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

    def numbers(self) -> Numbers:
        """Return the global numbers of the local terms: (T,). Cost O(T)."""
        if self.terms is None or self.local_terms is None:
            return np.arange(len(self.postings.starts) - 1)
        numbers = np.empty_like(self.terms)
        numbers[self.local_terms] = self.terms
        return numbers

    @property
    def term_indices(self) -> slice | Numbers:
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
    def frequencies(self) -> Numbers:
        """Return n_t: (V,) document frequencies. Cost O(V), once."""
        return self._sum([part.postings.frequencies for part in self.parts])

    @lazy_property
    def occurrences(self) -> Numbers:
        """Return Σ_d f(t,d): (V,) occurrences of each term. Cost O(V), once."""
        return self._sum([part.postings.occurrences for part in self.parts])

    def _sum(self, of_parts: Sequence[Numbers]) -> Numbers:
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

    def batches(self, limit: int) -> Iterator[tuple[Numbers, DocIds, npt.NDArray[np.uint16]]]:
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

    def steps(self, terms: Numbers, weights: Numbers) -> Numbers:
        """Return k_q in steps: (size,); see `Postings.steps`."""
        row = np.zeros(self.size, np.int64)
        for part in self.parts:
            local_numbers = [part.local_number(term) for term in terms.tolist()]
            is_present = np.array([number is not None for number in local_numbers], np.bool_)
            numbers = np.array([number for number in local_numbers if number is not None], np.int64)
            row[part.first : part.after] = part.postings.steps(numbers, weights[is_present])
        return row
