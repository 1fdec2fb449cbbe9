"""What compiled code works on: what the index has, what the thread has, what is asked.

Arrays are handed over in named tuples, numbers in one record, whose fields are named here and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.compiling import internal
from klsa_search.kernel.query import QueryKernel
from klsa_search.kernel.segments import Segment, Segments
from klsa_search.search.engine.mask import Mask

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


class Part(NamedTuple):
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
    def of(cls, segments: Sequence[Segment]) -> Part:
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
    built: Part
    later: Part

    @classmethod
    def of(cls, kernel: QueryKernel, living: Mask | None) -> Stored:
        """Gather the arrays of an index. Cost: a copy of the postings of later segments."""
        postings = kernel.postings
        words = np.zeros(0, np.uint64) if living is None else living.words
        return cls(
            read_only(kernel.weights, np.int64),
            read_only(postings.best, np.uint16),
            read_only(words, np.uint64),
            Part.of(postings.parts[:1]),
            Part.of(postings.parts[1:]),
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


class Asked(NamedTuple):
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
