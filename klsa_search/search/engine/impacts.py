"""What the best documents, and few others, hold of each term of the query."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, inlined, internal
from klsa_search.expansion.coverage import HALF
from klsa_search.kernel.postings import UNIT
from klsa_search.search.engine.blocks import allowed
from klsa_search.search.engine.memory import int64_at, uint32_at, uint64_at
from klsa_search.search.engine.record import MAX_TERMS, Record
from klsa_search.search.engine.room import TAKEN, Held, Room
from klsa_search.search.engine.saturation import TOGETHER
from klsa_search.search.engine.scan import LANES, find, lowest_bit, mask_below, set_bits
from klsa_search.search.engine.terms import LOOK_UP, MEMORY, worth
from klsa_search.selection import LOW

SCANNED = 16  # postings looked at for each that would be looked up


@internal
def look_up_impacts(record: Record, terms: int, held: Held, room: Room, best: int) -> int:
    """Fill in what each of the best documents holds of each term; returns the lanes of a document.

    In steps of the score, whole numbers. Few postings are all looked at. Among many each document
    is looked for, where its number lets expect it. The term with the most postings is left out:
    what it gives a document is what the others leave of its score.
    """
    lanes = (terms + TOGETHER - 1) // TOGETHER * TOGETHER
    room.impacts[: lanes * (best + 1)] = 0
    room.worth[:lanes], room.half[:lanes] = 0, 1
    entries = uint32_at(record.memory, MEMORY)
    width = record.blocks + record.segments
    places = int64_at(record.places, MAX_TERMS * width)
    longest, most = 0, -1
    for j in range(terms):
        room.worth[j] = np.float32(record.times[j]) * held.term_worth[record.term[j]]
        room.half[j] = np.float32(HALF * record.weight[j] / (UNIT * record.step))
        count = _postings(record, places[j * width : (j + 1) * width])
        if count > most:
            longest, most = j, count
    for j in range(terms):
        if j == longest:
            continue
        of_block = places[j * width : (j + 1) * width]
        if _postings(record, of_block) < SCANNED * best:
            place = 0
            for segment in range(record.segments):
                base = record.base[segment]
                for block in range(record.own_blocks[segment]):
                    first, after = of_block[place], of_block[place + 1]
                    start = base + (block << record.block_bits)
                    _scan(entries, first, after, start, record.weight[j], j, lanes, room)
                    place += 1
                place += 1
        else:
            _look_up(record, entries, of_block, record.weight[j], j, lanes, room, best)
    for slot in range(1, best + 1):
        room.impacts[slot * lanes + longest] = np.float32(room.rest[slot])
    return lanes


@internal
def _postings(record: Record, of_block: npt.NDArray[np.int64]) -> int:
    """How many postings a term has in all segments."""
    count, place = 0, 0
    for segment in range(record.segments):
        last = place + record.own_blocks[segment]
        count += of_block[last] - of_block[place]
        place = last + 1
    return count


@internal
def _look_up(
    record: Record,
    entries: npt.NDArray[np.uint32],
    of_block: npt.NDArray[np.int64],
    weight: int,
    lane: int,
    lanes: int,
    room: Room,
    best: int,
) -> None:
    """Look for each of the best among the postings of a term in its block."""
    for slot in range(1, best + 1):
        held = _held_by(record, entries, of_block, weight, int(room.documents[slot]))
        if held > 0:
            room.impacts[slot * lanes + lane] = np.float32(held)
            room.rest[slot] -= held


@inlined
def _held_by(
    record: Record,
    entries: npt.NDArray[np.uint32],
    of_block: npt.NDArray[np.int64],
    weight: int,
    document: int,
) -> int:
    """What a document holds of a term, in steps: looked for where its number lets expect it."""
    bits = record.block_bits
    segment, begin = 0, 0
    while document >= record.base[segment] + record.length[segment]:
        begin += record.own_blocks[segment] + 1
        segment += 1
    document -= record.base[segment]
    block = document >> bits
    low, high = of_block[begin + block], of_block[begin + block + 1]
    place = document - (block << bits)
    span = min(1 << bits, record.length[segment] - (block << bits))
    found = place_of(entries, low, high, low + place * (high - low) // span, place)
    if found >= high or entries[found] >> np.uint32(16) != place:
        return 0
    return worth(weight, int(entries[found] & np.uint32(0xFFFF)))


@internal
def keys_within(record: Record, terms: int, most: int) -> int:
    """Gather the keys of the documents in the record's mask that hold a term; returns how many.

    Each is looked for among the postings of each term: for at most `most` documents, after
    `best_keys` has found the places of the postings. -1 where to add all postings costs less.
    """
    entries = uint32_at(record.memory, MEMORY)
    width = record.blocks + record.segments
    places = int64_at(record.places, MAX_TERMS * width)
    postings = 0
    for j in range(terms):
        postings += _postings(record, places[j * width : (j + 1) * width])
    if most * terms * LOOK_UP > postings:
        return -1
    words = (record.documents + LANES - 1) // LANES
    mask = uint64_at(record.mask, words)
    keys = int64_at(record.keys, most)
    held = 0
    for place in range(words):
        word = mask[place]
        while word != 0:
            document = place * LANES + lowest_bit(word)
            word &= word - np.uint64(1)
            score = 0
            for j in range(terms):
                of_block = places[j * width : (j + 1) * width]
                score += _held_by(record, entries, of_block, record.weight[j], document)
            if score > 0:
                keys[held] = (np.int64(score) << 32) | (LOW - document)
                held += 1
    return held


@internal
def count_without(record: Record, terms: int, room: Room, found: int, size: int) -> int:
    """Count the documents of the slots behind `found` that are in the mask and contain no term."""
    entries = uint32_at(record.memory, MEMORY)
    width = record.blocks + record.segments
    places = int64_at(record.places, MAX_TERMS * width)
    count = 0
    for slot in range(found + 1, size + 1):
        document = int(room.documents[slot])
        if not allowed(record, document):
            continue
        held, j = 0, terms - 1
        while held == 0 and j >= 0:
            of_block = places[j * width : (j + 1) * width]
            held = _held_by(record, entries, of_block, record.weight[j], document)
            j -= 1
        count += held == 0
    return count


@inlined
def _scan(
    entries: npt.NDArray[np.uint32],
    first: int,
    after: int,
    base: int,
    weight: int,
    lane: int,
    lanes: int,
    room: Room,
) -> None:
    """Take the impacts of a term over from its postings, those of the best sorted out first.

    Without a branch, as nobody can foretell it, and by bits, as slots of all lie too far away.
    """
    among, hits = room.among[base >> 5 :], room.hits
    for begin in range(first, after, TAKEN):
        count = 0
        for p in range(begin, min(begin + TAKEN, after)):
            entry = entries[p]
            hits[count] = entry
            bit = among[entry >> np.uint32(21)] >> ((entry >> np.uint32(16)) & np.uint32(31))
            count += int(bit & np.uint32(1))
        for i in range(count):
            entry = hits[i]
            slot = np.uint32(room.slots[base + np.int64(entry >> np.uint32(16))])
            held = worth(weight, int(entry & np.uint32(0xFFFF)))
            room.impacts[slot * np.uint32(lanes) + np.uint32(lane)] = np.float32(held)
            room.rest[slot] -= np.int32(held)


@compiled
def place_of(
    entries: npt.NDArray[np.uint32], low: int, high: int, expected: int, place: int
) -> int:
    """Where the posting of a place in the block is among the ascending entries[low:high], if there.

    Any place else. One comparison of a window about where it is expected nearly always finds it.
    """
    last = (place << 16) | 0xFFFF
    if high - low < LANES:
        return find(entries, low, high, last) if high > low else low
    begin = max(low, min(expected - LANES // 2, high - LANES))
    address = entries.ctypes.data + 4 * begin
    below = int(set_bits(mask_below(address, np.uint32(place << 16))))
    if below == 0:
        return find(entries, low, begin + 1, last)
    if below == LANES:
        rest = begin + LANES
        return find(entries, rest, high, last) if high > rest else low
    return begin + below
