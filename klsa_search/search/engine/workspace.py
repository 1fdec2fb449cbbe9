"""Arrays and records that the compiled engine works on.

Arrays are handed over in named tuples, numbers in one record, whose fields are named here and
nowhere else.

Every document that is looked at has a slot, from 1: the best of the query kernel first, seeds in
front, then what the rows of the seeds bring up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions, Scores
from klsa_search.core.compiling import internal
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.kernels.segments import Segment, Segments
from klsa_search.lowrank.sparse_expansion import SparseExpansion
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighbours

MAX_TERMS: Final = 256
"""Terms of one query, repetitions counted; more are scored by the plain row."""

KEPT: Final = 2**14
"""Results of the largest query whose scratch memory a thread keeps for the next one: some MB."""

MAX_SEGMENTS: Final = 64
"""Segments of one index."""

AT_ONCE: Final = 2048
"""Positions of which those that pass are written down at once."""

_INDEX: Final = (
    "documents",  # positions
    "segments",
    "blocks",  # of all segments
    "block_bits",
    "left_out",  # documents that do not count
)
_QUERY: Final = (
    "masked",  # whether only some of the documents that count may be answered
    "counted",  # whether totals are asked for
    "count",  # terms
    "total",  # documents so far that hold a term of the query
)
_OF_SEGMENT: Final = (
    "base",  # position of its first document
    "length",  # its documents
    "own_blocks",
    "own_terms",
    "first_start",  # where its `starts` and `run_starts` begin in those of its `Part`
    "first_number",  # the same of `numbers` and `own`
    "numbered",  # whether it has these
)
_OF_TERM: Final = (
    "asked",  # numbers of terms as they stand in the query
    # distinct terms, weakest first; postings and runs by where they lie in their `Part`
    "term",
    "times",  # f(t, q)
    "weight",  # f(t, q) · h(t) · w(t), in steps
    "largest",  # the most a posting of it is worth, in steps
    "posting",  # the first not yet passed
    "run",  # the first not yet passed
    "last_run",  # after its last
    # its postings in the block at hand
    "first",
    "after",
    "bound",  # the most one of them is worth, in steps
)

RECORD: Final = np.dtype(
    [(name, "i8") for name in (*_INDEX, *_QUERY)]
    + [("step", "f8")]  # what one step of a score is worth
    + [(name, "i8", (MAX_TERMS,)) for name in _OF_TERM]
    + [(name, "i8", (MAX_SEGMENTS,)) for name in _OF_SEGMENT]
)
Record = Any  # RECORD, one of them; numba has no name for it


class SegmentArrays(NamedTuple):
    """Postings of one segment, or of several, one after the other: see `Postings`.

    starts, run_starts  count from the first posting and run of all
    runs                flat, three numbers a run
    numbers, own        see `Segment`; empty where a segment has the numbers of all
    """

    starts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.uint32]
    run_starts: npt.NDArray[np.int64]
    runs: npt.NDArray[np.uint16]
    numbers: npt.NDArray[np.int64]
    own: npt.NDArray[np.int64]

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> SegmentArrays:
        """Put segments end to end; the arrays themselves of one alone."""
        starts, entries, run_starts, runs = [], [], [], []
        numbers, own = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        posting, run = 0, 0
        for segment in segments:
            postings = segment.postings
            starts.append(postings.starts + posting if posting else postings.starts)
            run_starts.append(postings.run_starts + run if run else postings.run_starts)
            entries.append(postings.entries)
            runs.append(postings.runs.reshape(-1))
            posting, run = posting + int(postings.starts[-1]), run + int(postings.run_starts[-1])
            if segment.terms is not None and segment.own is not None:
                numbers.append(segment.terms)
                own.append(segment.own)
        return cls(
            _joined(starts, np.int64),
            _joined(entries, np.uint32),
            _joined(run_starts, np.int64),
            _joined(runs, np.uint16),
            _joined(numbers[1:], np.int64),
            _joined(own[1:], np.int64),
        )


class Stored(NamedTuple):
    """Arrays of the index, read-only.

    weights  (V,) of the terms
    best     (V, 4) see `Postings`
    living   words of a `Mask`: the documents that count; empty where all do
    built    the first segment
    later    all others
    """

    weights: npt.NDArray[np.int64]
    best: npt.NDArray[np.uint16]
    living: npt.NDArray[np.uint64]
    built: SegmentArrays
    later: SegmentArrays

    @classmethod
    def of(cls, kernel: QueryKernel, living: Mask | None) -> Stored:
        """Gather the arrays of an index. Cost: a copy of the postings of later segments."""
        postings = kernel.postings
        words = np.zeros(0, np.uint64) if living is None else living.words
        return cls(
            read_only(kernel.weights, np.int64),
            read_only(postings.best, np.uint16),
            read_only(words, np.uint64),
            SegmentArrays.of(postings.parts[:1]),
            SegmentArrays.of(postings.parts[1:]),
        )

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """All arrays, one after the other."""
        return (*self[:3], *self.built, *self.later)


class Memory(NamedTuple):
    """Memory of one thread.

    accumulator  a score for each position of a block
    keys         (2, room) keys and as much to sort them; after a search those of what was found by
                 the query kernel, best first: the score in steps in the upper 32 bits
    hits         (AT_ONCE,)
    places       (MAX_TERMS, blocks + segments) where each term's postings in a block of a segment
                 begin, and where those of its last end
    """

    accumulator: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int64]
    hits: npt.NDArray[np.int32]
    places: npt.NDArray[np.int64]


class Queries(NamedTuple):
    """Queries that are answered in one call, and room for their answers.

    asked      where the terms of each query end, then numbers of the terms of all
    documents  (queries, k) what was found
    scores     (queries, k)
    counts     (queries, 2) length of each answer, -1 for more than MAX_TERMS terms; and the
               documents that hold a term, where totals are asked for
    """

    asked: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, queries: Sequence[Sequence[int]], k: int) -> Queries:
        """Write queries down."""
        count, ends = len(queries), accumulate(map(len, queries))
        return cls(
            np.array([*ends, *chain.from_iterable(queries)], np.int64),
            np.empty((count, k), np.int32),
            np.empty((count, k), np.float32),
            np.empty((count, 2), np.int64),
        )

    def answers(self) -> list[TopDocs | None]:
        """What was found for each query; None for more than MAX_TERMS terms.

        Each answer is a part of the memory of all.
        """
        return [
            TopDocs(self.documents[query, :count], self.scores[query, :count], total)
            if count >= 0
            else None
            for query, (count, total) in enumerate(self.counts.tolist())
        ]


class TopDocs(NamedTuple):
    """The best documents of a query, best first, ties by document order.

    positions, scores  of the documents that may be answered and score above 0, k at most
    total              how many there are, whatever k; 0 if not requested
    """

    positions: Positions
    scores: Scores
    total: int


class EngineQuery(NamedTuple):
    """What is asked for with every query of a call."""

    k: int
    mask: Mask | None = None
    totals: bool = False

    def of(self, stored: Stored) -> tuple[npt.NDArray[np.uint64], bool, bool]:
        """The last arguments of a compiled search; without a mask, what counts may be answered."""
        if self.mask is None:
            return stored.living, False, self.totals
        return self.mask.words, True, self.totals


class Scratch:
    """Memory of one thread for queries of at most `room` results.

    record  (1,) of RECORD
    """

    def __init__(self, kernel: QueryKernel, room: int) -> None:
        postings = kernel.postings
        if len(postings.parts) > MAX_SEGMENTS:
            raise ValueError(f"{len(postings.parts)} segments, more than {MAX_SEGMENTS}")
        self.room = room
        self.memory = Memory(
            np.zeros(1 << postings.block_bits, np.int32),
            np.zeros((2, _room_of(room)), np.int64),
            np.zeros(AT_ONCE, np.int32),
            np.zeros((MAX_TERMS, postings.blocks + len(postings.parts)), np.int64),
        )
        self.record = np.zeros(1, RECORD)
        record = self.record[0]
        record["documents"], record["segments"] = postings.size, len(postings.parts)
        record["blocks"], record["block_bits"] = postings.blocks, postings.block_bits
        record["left_out"] = postings.documents - kernel.documents
        record["step"] = postings.step
        _enter_segments(record, postings)


def _enter_segments(record: Any, postings: Segments) -> None:
    """Write where each segment lies in its `Part`."""
    first_start, first_number = 0, 0
    for number, segment in enumerate(postings.parts):
        own = segment.postings
        values = {
            "base": segment.first,
            "length": own.size,
            "own_blocks": own.blocks,
            "own_terms": len(own.starts) - 1,
            "first_start": first_start,
            "first_number": first_number,
            "numbered": segment.terms is not None,
        }
        for name, value in values.items():
            record[name][number] = value
        first_start += len(own.starts)
        first_number += 0 if segment.terms is None else len(segment.terms)
        if number == 0:
            first_start = first_number = 0


def read_only(array: npt.NDArray[Any], kind: Any) -> Any:
    """View an array as compiled code reads it: contiguous, of one type, and not to be written.

    Code is compiled for each type, and arrays of files that are mapped are read-only.
    """
    view = np.ascontiguousarray(array, kind).view(np.ndarray)
    view.flags.writeable = False
    return view


def _joined(arrays: Sequence[npt.NDArray[Any]], kind: Any) -> Any:
    if len(arrays) == 1:
        return read_only(arrays[0], kind)
    return read_only(np.concatenate([np.zeros(0, kind), *arrays], dtype=kind), kind)


def _room_of(k: int) -> int:
    """Keys that are gathered before they are cut back to k: cutting costs about as many steps."""
    return max(2 * k, k + 32)


buffer_size = internal(_room_of)


_Ints = npt.NDArray[np.int32]
_Starts = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


class IndexArrays(NamedTuple):
    """Arrays of the index; see `SparseExpansion`, `LatentSpace` and `Reverse`.

    term_worth  (V,) h(t) · w(t): see `QueryKernel`
    bursts      (V,) b(t)
    facts       the cards as float32; the last three columns are meant
    term_steps  the terms as float32; the last column is meant
    """

    term_worth: _Floats
    bursts: _Floats
    rows: npt.NDArray[np.uint32]
    scales: _Floats
    feature_starts: _Starts
    features: npt.NDArray[np.uint32]
    cards: npt.NDArray[np.int8]
    facts: _Floats
    terms: npt.NDArray[np.int8]
    term_steps: _Floats
    reversed_of: _Ints
    reversed: npt.NDArray[np.uint32]
    reversed_steps: _Floats

    @classmethod
    def of(
        cls, kernel: QueryKernel, expansion: SparseExpansion, reverse: ReverseNeighbours
    ) -> IndexArrays:
        """Gather the arrays, each of the type and order in which compiled code will read it."""
        cards, terms = (
            read_only(expansion.document_vectors, np.int8),
            read_only(expansion.terms, np.int8),
        )
        return cls(
            term_worth=read_only(kernel.term_weights, np.float32),
            bursts=read_only(kernel.burstiness, np.float32),
            rows=read_only(expansion.rows, np.uint32),
            scales=read_only(expansion.scales, np.float32),
            feature_starts=read_only(expansion.starts, np.int64),
            features=read_only(expansion.features, np.uint32),
            cards=cards,
            facts=read_only(cards.view(np.float32), np.float32),
            terms=terms,
            term_steps=read_only(terms.view(np.float32), np.float32),
            reversed_of=read_only(reverse.reversed_of, np.int32),
            reversed=read_only(reverse.reversed, np.uint32),
            reversed_steps=read_only(reverse.steps, np.float32),
        )


TOGETHER: Final = 8
"""Terms whose coverage is added up together, in pairs: so in one order whatever the machine."""

TAKEN: Final = 256
"""Postings that are looked at together."""


class Workspace(NamedTuple):
    """Memory of one thread for at most M candidates, Q of the query kernel, B best and z seeds.

    slots      (N,) the slot of a document, 0 for none; 0 between queries
    among      (N / 32,) uint32, a bit for each document: whether it is one of the best; likewise
    documents  (M + 1,) the document of a slot
    lexical    (Q + 1,) k_q over that of the first
    expanded   (M + 1,) E: of the seeds exactly, of the others as far as the rows tell
    covered    (Q + 1,) T of the best: of the seeds exactly, of the others by what they hold alone
    scores     (M + 65,) whole vectors are read
    bits       the same memory as whole numbers
    chosen     (M + 1,) slots that are looked at more closely
    keys       (M + 1,) to sort
    spare      (M + 1,)
    rest       (B + 1,) of the best, their score in steps less what terms were found to give
    impacts    (B + 1, lanes) what the best hold of each term, in steps; slot 0 holds nothing
    near       (neighbours + 1,) where the nearest that are among the best begin in `impacts`
    shares     (neighbours + 1,) and their levels
    hits       (TAKEN,) uint32, postings of the best among as many
    worth      (lanes,) f(t,q) · h(t) · w(t), 0 beyond the last term
    lent       (TOGETHER,) what neighbours lend of each term
    exact      (M + 1,) T of what is looked at more closely
    half       (lanes,) where g is one half, in steps; 1 beyond the last term
    weights    (z,) of the seeds
    sums       (F,) int16, weighted sum of the seeds' features, in steps; 0 between queries
    place      (w,) int16, the query's place in the latent space, in steps
    fine       (m,) the same before it is rounded
    """

    slots: _Ints
    among: npt.NDArray[np.uint32]
    documents: _Ints
    lexical: _Floats
    expanded: _Floats
    covered: _Floats
    scores: _Floats
    bits: _Ints
    chosen: _Ints
    keys: _Starts
    spare: _Starts
    rest: _Ints
    impacts: _Floats
    near: _Ints
    shares: _Floats
    hits: npt.NDArray[np.uint32]
    worth: _Floats
    lent: _Floats
    exact: _Floats
    half: _Floats
    weights: _Floats
    sums: npt.NDArray[np.int16]
    place: npt.NDArray[np.int16]
    fine: _Floats
