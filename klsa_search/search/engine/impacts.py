"""What the best documents hold of each term of the query."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, inlined
from klsa_search.expansion.coverage import HALF
from klsa_search.search.engine import state as s
from klsa_search.search.engine.room import Held, Room
from klsa_search.search.engine.saturation import TOGETHER
from klsa_search.search.engine.scan import LANES, find, mask_below, set_bits
from klsa_search.search.engine.terms import State, Table

SCANNED = 16  # postings looked at for each that would be looked up
TAKEN = 256  # postings at a time; those of the best among them have room in `chosen`


@compiled
def look_up_impacts(
    state: State, table: Table, terms: int, held: Held, room: Room, best: int
) -> int:
    """Fill in what each of the best documents holds of each term; returns the lanes of a document.

    Few postings are all looked at. Among many each document is looked for, where its number lets
    expect it.
    """
    lanes = (terms + TOGETHER - 1) // TOGETHER * TOGETHER
    impacts, documents = room.impacts, room.documents
    impacts[: lanes * (best + 1)] = 0
    room.worth[:lanes], room.half[:lanes] = 0, 1
    bits, size = state[s.BLOCK_BITS], state[s.DOCUMENTS]
    for j in range(terms):
        term = table[s.TERM, j]
        room.worth[j] = np.float32(table[s.TIMES, j]) * held.idf[term]
        room.half[j] = np.float32(HALF) * held.idf[term]
        first, after, row = held.starts[term], held.starts[term + 1], held.block_rows[term]
        if after - first < SCANNED * best:
            _scan(first, after, j, lanes, held, room)
            continue
        low, high, origin, span = first, after, 0, size
        for slot in range(1, best + 1):
            document = int(documents[slot])
            if row >= 0:
                block = document >> bits
                low = first + held.block_starts[row, block]
                high = first + held.block_starts[row, block + 1]
                origin, span = block << bits, min(1 << bits, size - (block << bits))
            expected = low + (document - origin) * (high - low) // span
            found = place_of(held.documents, low, high, expected, document)
            if found < high and held.documents[found] == document:
                impacts[slot * lanes + j] = held.weights[found]
    return lanes


@inlined
def _scan(first: int, after: int, lane: int, lanes: int, held: Held, room: Room) -> None:
    """Take the impacts of a term over from its postings, those of the best sorted out first.

    Without a branch, as nobody can foretell it, and by bits, as slots of all lie too far away.
    """
    among, hits, documents = room.among, room.chosen, held.documents
    for begin in range(first, after, TAKEN):
        count = 0
        for p in range(begin, min(begin + TAKEN, after)):
            document = np.uint32(documents[p])
            hits[count] = p - first
            bit = among[document >> np.uint32(5)] >> (document & np.uint32(31))
            count += int(bit & np.uint32(1))
        for i in range(count):
            p = first + hits[i]
            place = room.slots[np.uint32(documents[p])] * lanes + lane
            room.impacts[np.uint32(place)] = held.weights[p]


@compiled
def place_of(
    documents: npt.NDArray[np.int32], low: int, high: int, expected: int, document: int
) -> int:
    """Place of a document in the ascending documents[low:high] if it is there, else any place.

    One comparison of a window about where it is expected nearly always finds it.
    """
    if high - low < LANES:
        return find(documents, low, high, document) if high > low else low
    begin = max(low, min(expected - LANES // 2, high - LANES))
    address = documents.ctypes.data + 4 * begin
    below = int(set_bits(mask_below(address, np.int32(document))))
    if below == 0:
        return find(documents, low, begin + 1, document)
    if below == LANES:
        rest = begin + LANES
        return find(documents, rest, high, document) if high > rest else low
    return begin + below
