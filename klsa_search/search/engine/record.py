"""The record that compiled code works on: what the index has, what the thread has, what is asked.

A compiled function is called with this record alone: handing over ten arrays one by one takes
longer than a short query. Its fields are named here and nowhere else; they are part of the type
that functions are compiled for.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.compiled import internal
from klsa_search.kernel import QueryKernel
from klsa_search.kernel.segments import Segment
from klsa_search.search.engine.mask import Mask

MAX_TERMS: Final = 256
"""Terms of one query, repetitions counted; more are scored by the plain row."""

KEPT: Final = 2**14
"""Results of the largest query whose scratch memory a thread keeps for the next one: some MB."""

MAX_SEGMENTS: Final = 64
"""Segments of one index."""

AT_ONCE: Final = 2048
"""Positions of which those that pass are written down at once."""

WORDS: Final = AT_ONCE // 32 + 2

_INDEX: Final = (
    "documents",  # positions
    "terms",  # V
    "segments",
    "blocks",  # of all segments
    "block_bits",
    "living",  # address of the words of a `Mask`; 0 where all documents count
    "left_out",  # documents that do not
    # addresses of the weights of the terms, and of their best saturations
    "weights",
    "best",
    "memory",  # 0, from where postings and runs are counted: where compiled code could know that
    # an address is 0, it would be taken for a mistake
)
_OF_SEGMENT: Final = (
    "base",  # position of its first document
    "length",  # its documents
    "own_blocks",
    "own_terms",
    "numbers",  # address: of its terms among all, ascending; 0 where they are its own
    "own",  # address: its own numbers of those
    "starts",  # address
    "entries",  # address, in numbers of four bytes
    "run_starts",  # address
    "runs",  # address, in numbers of two bytes
)
_THREAD: Final = (
    # addresses
    "accumulator",  # int32, a score for each position of a block
    "keys",  # int64
    "spare",  # int64
    "places",  # int64 (MAX_TERMS, blocks + segments): where in memory each term's postings in a
    # block of a segment begin, and where those of its last end
    "words",  # uint64 (WORDS,) of `places_above`
    "hits",  # int32 (AT_ONCE,)
    "total",  # documents so far that hold a term of the query; not an address
)
_QUERIES: Final = (
    "queries",  # that are answered in one call
    # addresses
    "queried",  # int64, numbers of the terms of all queries, one after the other
    "ends",  # int64 (queries,) where the terms of each end
    "found",  # int32 (queries, k) the answers
    "scores",  # float32 (queries, k)
    "counts",  # int64 (queries,) length of each answer; -1 for more than MAX_TERMS terms
    "totals",  # int64 (queries,) documents that hold a term, where `counted` asks for them
)
_ASKED: Final = (
    "mask",  # address of a `Mask`'s words; 0 where every document may be answered
    "counted",  # whether totals are asked for
    "k",
    "count",
)
_OF_TERM: Final = (
    "asked",  # numbers of terms as they stand in the query
    # distinct terms, weakest first; postings and runs by where they lie in memory
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
    [(name, "i8") for name in (*_INDEX, *_THREAD, *_QUERIES)]
    + [("step", "f8")]  # what one step of a score is worth
    + [(name, "i8") for name in _ASKED]
    + [(name, "i8", (MAX_TERMS,)) for name in _OF_TERM]
    + [(name, "i8", (MAX_SEGMENTS,)) for name in _OF_SEGMENT]
)
Record = Any  # RECORD, one of them; numba has no name for it

_ASKED_AT: Final = RECORD.fields["mask"][1] if RECORD.fields else 0
"""Byte at which _ASKED and the numbers of the terms of a single query follow one another."""


class Top(NamedTuple):
    """The best documents of a query, best first, ties by document order.

    positions, scores  of the documents that may be answered and score above 0, k at most
    total              how many there are, whatever k; 0 where it was not asked for
    """

    positions: Positions
    scores: Scores
    total: int


class Asked(NamedTuple):
    """What is asked for with every query of a call."""

    k: int
    mask: Mask | None = None
    totals: bool = False

    def written(self, living: Mask | None) -> tuple[int, int, int]:
        """The first of _ASKED; without a mask, what counts may be answered."""
        mask = living if self.mask is None else self.mask
        return 0 if mask is None else mask.address, self.totals, self.k


class Scratch:
    """Memory of one thread for queries of at most `room` results.

    living     the documents that count, where not all do

    record     (1,) of RECORD, for one query
    documents  (room,) int32, positions found
    scores     (room,) float32
    totals     (1,) int64
    keys       int64, after a search by the query kernel those of what was found, best first: the
               score in steps in the upper 32 bits
    """

    def __init__(self, kernel: QueryKernel, room: int, living: Mask | None = None) -> None:
        postings = kernel.postings
        if len(postings.parts) > MAX_SEGMENTS:
            raise ValueError(f"{len(postings.parts)} segments, more than {MAX_SEGMENTS}")
        self.room, self._living = room, living
        self.documents = np.zeros(room, np.int32)
        self.scores = np.zeros(room, np.float32)
        self.totals = np.zeros(1, np.int64)
        gathered = _room_of(room)
        self.keys = np.zeros(gathered, np.int64)
        as_read = np.ascontiguousarray  # the array itself where its type and order are those
        arrays: dict[str, npt.NDArray[Any]] = {
            "weights": as_read(kernel.weights, np.int64),
            "best": as_read(postings.best, np.uint16),
            "accumulator": np.zeros(1 << postings.block_bits, np.int32),
            "keys": self.keys,
            "spare": np.zeros(gathered, np.int64),
            "places": np.zeros((MAX_TERMS, postings.blocks + len(postings.parts)), np.int64),
            "words": np.zeros(WORDS, np.uint64),
            "hits": np.zeros(AT_ONCE, np.int32),
            "found": self.documents,
            "scores": self.scores,
            "counts": np.zeros(1, np.int64),
            "totals": self.totals,
        }
        record = np.zeros(1, RECORD)
        for name, array in arrays.items():
            record[name] = array.ctypes.data
        # The record holds addresses only.
        self._alive = arrays, [_enter(record, *each) for each in enumerate(postings.parts)]
        record["documents"], record["terms"] = postings.size, postings.terms
        record["segments"] = len(postings.parts)
        record["blocks"], record["block_bits"] = postings.blocks, postings.block_bits
        record["living"] = 0 if living is None else living.address
        record["left_out"] = postings.documents - kernel.documents
        record["step"] = postings.step
        record["queries"] = 1
        count = record.ctypes.data + _ASKED_AT + 8 * _ASKED.index("count")
        record["ends"], record["queried"] = count, count + 8  # the end of the only query, its terms
        self.record = record
        self._bytes = record.view(np.uint8).data

    def ask(self, terms: Sequence[int], asked: Asked) -> None:
        """Write one query of at most MAX_TERMS terms into the record."""
        count = len(terms)
        asking = *asked.written(self._living), count, *terms
        struct.pack_into(f"{count + 4}q", self._bytes, _ASKED_AT, *asking)

    def answer(self, found: int, asked: Asked) -> Top:
        """What was found for it."""
        total = int(self.totals[0]) if asked.totals else 0
        return Top(self.documents[:found].copy(), self.scores[:found].copy(), total)

    def of_many(self, queries: Sequence[Sequence[int]], asked: Asked) -> Many:
        """Make a record for many queries in the same memory."""
        k = asked.k
        many = Many(
            self.record.copy(),
            np.fromiter(chain.from_iterable(queries), np.int64),
            np.cumsum([len(terms) for terms in queries]),
            np.empty((len(queries), k), np.int32),
            np.empty((len(queries), k), np.float32),
            np.empty(len(queries), np.int64),
            np.empty(len(queries), np.int64),
        )
        many.record["queries"] = len(queries)
        for field, value in zip(_ASKED, asked.written(self._living), strict=False):
            many.record[field] = value
        arrays: tuple[npt.NDArray[Any], ...] = many[1:]
        for name, array in zip(_QUERIES[1:], arrays, strict=True):
            many.record[name] = array.ctypes.data
        return many


class Many(NamedTuple):
    """Queries that are answered in one call, and room for their answers: see RECORD."""

    record: npt.NDArray[np.void]
    queried: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]
    totals: npt.NDArray[np.int64]

    def answers(self, asked: Asked) -> list[Top | None]:
        """What was found for each query; None for more than MAX_TERMS terms.

        Each answer is a part of the memory of all.
        """
        counts, totals = self.counts.tolist(), self.totals.tolist()
        each = zip(self.documents, self.scores, counts, totals, strict=True)
        return [
            Top(documents[:count], scores[:count], total if asked.totals else 0)
            if count >= 0
            else None
            for documents, scores, count, total in each
        ]


def _enter(
    record: npt.NDArray[np.void], number: int, segment: Segment
) -> tuple[npt.NDArray[Any], ...]:
    """Write where a segment is into the record; returns what must be kept for it."""
    postings, as_read = segment.postings, np.ascontiguousarray
    starts, run_starts = as_read(postings.starts, np.int64), as_read(postings.run_starts, np.int64)
    entries, runs = as_read(postings.entries, np.uint32), as_read(postings.runs, np.uint16)
    kept: list[npt.NDArray[Any]] = [starts, entries, run_starts, runs]
    values = {
        "base": segment.first,
        "length": postings.size,
        "own_blocks": postings.blocks,
        "own_terms": len(starts) - 1,
        "starts": starts.ctypes.data,
        "entries": entries.ctypes.data // entries.itemsize,
        "run_starts": run_starts.ctypes.data,
        "runs": runs.ctypes.data // runs.itemsize,
    }
    if segment.terms is not None and segment.own is not None:
        numbers, own = as_read(segment.terms, np.int64), as_read(segment.own, np.int64)
        values |= {"numbers": numbers.ctypes.data, "own": own.ctypes.data}
        kept += [numbers, own]
    for name, value in values.items():
        record[name][0, number] = value
    return tuple(kept)


def _room_of(k: int) -> int:
    """Keys that are gathered before they are cut back to k: cutting costs about as many steps."""
    return max(2 * k, k + 32)


buffer_size = internal(_room_of)
