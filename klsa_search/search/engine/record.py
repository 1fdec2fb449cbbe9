"""The record that compiled code works on: what the index has, what the thread has, what is asked.

A compiled function is called with this record alone: handing over ten arrays one by one takes
longer than a short query. Its fields are named here and nowhere else; they are part of the type
that functions are compiled for.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled
from klsa_search.kernel import QueryKernel

MAX_TERMS: Final = 256
"""Terms of one query, repetitions counted; more are scored by the plain row."""

_INDEX: Final = (
    "documents",  # N
    "terms",  # V
    "blocks",
    "block_bits",
    # addresses of the postings' arrays, and of the weights of the terms
    "weights",
    "starts",
    "entries",
    "run_starts",
    "runs",
    "best",
)
_THREAD: Final = (
    # addresses
    "accumulator",  # int32, a score for each position of a block
    "keys",  # int64
    "spare",  # int64
    "places",  # int64 (MAX_TERMS, blocks + 1): where each term's postings in a block begin
    "found",  # int32, what is answered
    "scores",  # float32
)
_ANSWERED: Final = ("total",)  # documents that hold a term of the query, where that is asked for
_ASKED: Final = (
    "mask",  # address of a `Mask`'s words; 0 where every document may be answered
    "totals",  # whether the total is asked for
    "k",
    "count",
)
_OF_TERM: Final = (
    "asked",  # numbers of terms as they stand in the query
    # distinct terms, weakest first
    "term",
    "times",  # f(t, q)
    "weight",  # f(t, q) · w(t), in steps
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
    [(name, "i8") for name in (*_INDEX, *_THREAD)]
    + [("step", "f8")]  # what one step of a score is worth
    + [(name, "i8") for name in (*_ANSWERED, *_ASKED)]
    + [(name, "i8", (MAX_TERMS,)) for name in _OF_TERM]
)
Record = Any  # RECORD, one of them; numba has no name for it

_TOTAL_AT: Final = RECORD.fields["total"][1] if RECORD.fields else 0
ASKED_AT: Final = RECORD.fields["mask"][1] if RECORD.fields else 0
"""Byte at which mask, totals, k, count and the numbers of the terms follow one another."""


class Scratch:
    """Memory of one thread for queries of at most `room` results.

    record     (1,) of RECORD
    documents  (room,) int32, positions found
    scores     (room,) float32
    addresses  of these two
    """

    def __init__(self, kernel: QueryKernel, room: int) -> None:
        postings = kernel.postings
        self.room = room
        self.documents = np.zeros(room, np.int32)
        self.scores = np.zeros(room, np.float32)
        self.addresses = self.documents.ctypes.data, self.scores.ctypes.data
        keys = buffer_size(room)
        as_read = np.ascontiguousarray  # the array itself where its type and order are those
        arrays: dict[str, npt.NDArray[Any]] = {
            "weights": as_read(kernel.weights, np.int64),
            "starts": as_read(postings.starts, np.int64),
            "entries": as_read(postings.entries, np.uint32),
            "run_starts": as_read(postings.run_starts, np.int64),
            "runs": as_read(postings.runs, np.uint16),
            "best": as_read(postings.best, np.uint16),
            "accumulator": np.zeros(1 << postings.block_bits, np.int32),
            "keys": np.zeros(keys, np.int64),
            "spare": np.zeros(keys, np.int64),
            "places": np.zeros((MAX_TERMS, postings.blocks + 1), np.int64),
            "found": self.documents,
            "scores": self.scores,
        }
        record = np.zeros(1, RECORD)
        for name, array in arrays.items():
            record[name] = array.ctypes.data
        self._alive = arrays  # the record holds addresses only
        record["documents"], record["terms"] = postings.size, len(postings.starts) - 1
        record["blocks"], record["block_bits"] = postings.blocks, postings.block_bits
        record["step"] = postings.step
        self.record = record
        self.bytes = record.view(np.uint8).data

    def total(self) -> int:
        """Documents that hold a term of the query, where that was asked for."""
        return int(struct.unpack_from("q", self.bytes, _TOTAL_AT)[0])


@compiled
def buffer_size(k: int) -> int:
    """Keys that are gathered before they are cut back to k: cutting costs about as many steps."""
    return max(2 * k, k + 32)
