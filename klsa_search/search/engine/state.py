"""The state of one thread: addresses, sizes and the query, as one vector of int64.

A compiled function is called with this vector alone. Handing over ten arrays one by one takes
longer than a short query: 545 ns against 186 ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled
from klsa_search.kernel import Postings
from klsa_search.kernel.bounds import Bounds

MAX_TERMS = 256  # of one query, repetitions counted; more are scored by the plain row

# Slots: what the index has,
(
    DOCUMENTS,  # N
    TERMS,  # V
    BLOCKS,
    BLOCK_BITS,
    BLOCK_ROWS,
    GRID,  # steps in a score of 1: a power of 2
    STARTS,
    POSTINGS_DOCUMENTS,
    POSTINGS_WEIGHTS,
    MAXIMA,
    KTH_BEST,
    ROWS,
    BLOCK_STARTS,
    BLOCK_MAXIMA,
    # what the thread has for itself,
    ACCUMULATOR,
    KEYS,
    SPARE,
    TABLE,
    FOUND,
    SCORES,
    # and what is asked; the numbers of the terms follow.
    K,
    COUNT,
    QUERY,
) = range(23)

# Rows of the table of a query's distinct terms, weakest first.
(
    TERM,
    TIMES,  # f(t, q)
    CURSOR,  # the first posting not yet passed; where its postings begin, if it has a block row
    END,  # after its last posting
    LARGEST,  # its strongest impact times f(t, q), in steps
    ROW,  # of the block arrays, -1 for none
    FROM,  # its postings in the block at hand
    TO,
    BOUND,  # the strongest of them times f(t, q), in steps
) = range(9)
TABLE_ROWS = 9


class Scratch:
    """Memory of one thread for queries of at most `room` results.

    state      the vector
    documents  (room,) int32, positions found
    scores     (room,) float32
    addresses  of these two
    """

    def __init__(self, postings: Postings, bounds: Bounds, room: int) -> None:
        self.room = room
        self.documents = np.zeros(room, np.int32)
        self.scores = np.zeros(room, np.float32)
        self.addresses = self.documents.ctypes.data, self.scores.ctypes.data
        keys = buffer_size(room)
        state = np.zeros(QUERY + MAX_TERMS, np.int64)
        as_read = np.ascontiguousarray  # the array itself where its type and order are those
        arrays: dict[int, npt.NDArray[Any]] = {
            STARTS: as_read(postings.starts, np.int64),
            POSTINGS_DOCUMENTS: as_read(postings.documents, np.int32),
            POSTINGS_WEIGHTS: as_read(postings.weights, np.float32),
            MAXIMA: as_read(bounds.maxima, np.int32),
            KTH_BEST: as_read(bounds.kth_best, np.int32),
            ROWS: as_read(bounds.rows, np.int32),
            BLOCK_STARTS: as_read(bounds.block_starts, np.int32),
            BLOCK_MAXIMA: as_read(bounds.block_maxima, np.int32),
            ACCUMULATOR: np.zeros(1 << bounds.block_bits, np.float32),
            KEYS: np.zeros(keys, np.int64),
            SPARE: np.zeros(keys, np.int64),
            TABLE: np.zeros((TABLE_ROWS, MAX_TERMS), np.int64),
            FOUND: self.documents,
            SCORES: self.scores,
        }
        for slot, array in arrays.items():
            state[slot] = array.ctypes.data
        self._alive = arrays  # the vector holds addresses only
        state[DOCUMENTS], state[TERMS] = postings.size, len(postings.starts) - 1
        state[BLOCKS], state[BLOCK_BITS] = bounds.blocks, bounds.block_bits
        state[BLOCK_ROWS] = len(bounds.block_starts)
        state[GRID] = round(1 / bounds.step)
        self.state = state
        self.bytes = state.data.cast("B")


@compiled
def buffer_size(k: int) -> int:
    """Keys that are gathered before they are cut back to k: cutting costs about as many steps."""
    return max(2 * k, k + 32)
