"""What the best documents, and few others, hold of each term of the query."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import internal
from klsa_search.expansion.coverage import HALF
from klsa_search.kernel.postings import UNIT
from klsa_search.search.engine.blocks import allowed
from klsa_search.search.engine.record import Memory, Record, Stored
from klsa_search.search.engine.room import TAKEN, TOGETHER, Held, Room
from klsa_search.search.engine.scan import LANES, find, lowest_bit, without_lowest
from klsa_search.search.engine.terms import LOOK_UP, part_of, worth
from klsa_search.selection import LOW

SCANNED = 16  # postings looked at for each that would be looked up


Entries = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]


@internal
def look_up_impacts(
    record: Record, stored: Stored, memory: Memory, terms: int, held: Held, room: Room, best: int
) -> int:
    """Fill in what each of the best documents holds of each term; returns the lanes of a document.

    In steps of the score, whole numbers. Few postings are all looked at. Among many each document
    is looked for, where its number lets expect it. The term with the most postings is left out:
    what it gives a document is what the others leave of its score.
    """
    lanes = (terms + TOGETHER - 1) // TOGETHER * TOGETHER
    room.impacts[: lanes * (best + 1)] = 0
    room.worth[:lanes], room.half[:lanes] = 0, 1
    longest, most = 0, -1
    for j in range(terms):
        room.worth[j] = np.float32(record.times[j]) * held.term_worth[record.term[j]]
        room.half[j] = np.float32(HALF * record.weight[j] / (UNIT * record.step))
        count = _postings(record, memory, j)
        if count > most:
            longest, most = j, count
    for j in range(terms):
        if j == longest:
            continue
        if _postings(record, memory, j) >= SCANNED * best:
            _look_up(record, stored, memory, j, lanes, room, best)
            continue
        place = 0
        for segment in range(record.segments):
            entries = part_of(stored, segment).entries
            start = record.base[segment]
            for _ in range(record.own_blocks[segment]):
                first, after = memory.places[j, place], memory.places[j, place + 1]
                _scan(entries, first, after, start, record.weight[j], j, lanes, room)
                start += 1 << record.block_bits
                place += 1
            place += 1
    impacts, rest = room.impacts, room.rest
    for slot in range(1, best + 1):
        impacts[slot * lanes + longest] = np.float32(rest[slot])
    return lanes


@internal
def _postings(record: Record, memory: Memory, term: int) -> int:
    """How many postings a term has in all segments."""
    count, place = 0, 0
    for segment in range(record.segments):
        last = place + record.own_blocks[segment]
        count += memory.places[term, last] - memory.places[term, place]
        place = last + 1
    return count


@internal
def _look_up(
    record: Record, stored: Stored, memory: Memory, term: int, lanes: int, room: Room, best: int
) -> None:
    """Look for each of the best among the postings of a term in its block."""
    for slot in range(1, best + 1):
        held = _held_by(record, stored, memory, term, int(np.int64(room.documents[slot])))
        if held > 0:
            room.impacts[slot * lanes + term] = np.float32(held)
            room.rest[slot] -= held


@internal
def _held_by(record: Record, stored: Stored, memory: Memory, term: int, document: int) -> int:
    """What a document holds of a term, in steps: looked for where its number lets expect it."""
    bits = record.block_bits
    segment, begin = 0, 0
    while document >= record.base[segment] + record.length[segment]:
        begin += record.own_blocks[segment] + 1
        segment += 1
    entries = stored.built.entries if segment == 0 else stored.later.entries
    document -= record.base[segment]
    block = document >> bits
    low, high = memory.places[term, begin + block], memory.places[term, begin + block + 1]
    place = document - (block << bits)
    span = min(1 << bits, record.length[segment] - (block << bits))
    found = place_of(entries, low, high, low + place * (high - low) // span, place)
    if found >= high or entries[found] >> np.uint32(16) != place:
        return 0
    return worth(record.weight[term], int(entries[found] & np.uint32(0xFFFF)))


@internal
def keys_within(
    record: Record, stored: Stored, memory: Memory, words: Words, terms: int, most: int
) -> int:
    """Gather the keys of the documents in a mask that hold a term; returns how many.

    Each is looked for among the postings of each term: for at most `most` documents, after
    `best_keys` has found the places of the postings. -1 where to add all postings costs less.
    """
    postings = 0
    for j in range(terms):
        postings += _postings(record, memory, j)
    if most * terms * LOOK_UP > postings:
        return -1
    held = 0
    for place in range(len(words)):
        word = words[place]
        for half in range(2):
            mask = np.uint32(word >> np.uint64(32 * half))
            while mask != 0:
                document = place * LANES + 32 * half + lowest_bit(mask)
                mask = without_lowest(mask)
                score = 0
                for j in range(terms):
                    score += _held_by(record, stored, memory, j, document)
                if score > 0:
                    memory.keys[0, held] = (np.int64(score) << 32) | (LOW - document)
                    held += 1
    return held


@internal
def count_without(
    record: Record,
    stored: Stored,
    memory: Memory,
    words: Words,
    terms: int,
    room: Room,
    found: int,
    size: int,
) -> int:
    """Count the documents of the slots behind `found` that are in the mask and contain no term."""
    count = 0
    for slot in range(found + 1, size + 1):
        document = int(np.int64(room.documents[slot]))
        if not allowed(words, document):
            continue
        held, j = 0, terms - 1
        while held == 0 and j >= 0:
            held = _held_by(record, stored, memory, j, document)
            j -= 1
        count += held == 0
    return count


@internal
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

    Without a branch, which would be mispredicted. Bits fit the cache; a slot each would not.
    """
    among, hits, slots = room.among[base >> 5 :], room.hits, room.slots
    impacts, rest = room.impacts, room.rest
    for begin in range(first, after, TAKEN):
        count = 0
        for p in range(begin, min(begin + TAKEN, after)):
            entry = entries[p]
            hits[count] = entry
            bit = among[entry >> np.uint32(21)] >> ((entry >> np.uint32(16)) & np.uint32(31))
            count += int(bit & np.uint32(1))
        for i in range(count):
            entry = hits[i]
            slot = np.uint32(slots[base + np.int64(entry >> np.uint32(16))])
            held = worth(weight, int(entry & np.uint32(0xFFFF)))
            impacts[slot * np.uint32(lanes) + np.uint32(lane)] = np.float32(held)
            rest[slot] -= np.int32(held)


@internal
def place_of(entries: Entries, low: int, high: int, expected: int, place: int) -> int:
    """Where the posting of a place in the block is among the ascending entries[low:high], if there.

    Any place else. A search of a window about where it is expected nearly always finds it.
    """
    last = (place << 16) | 0xFFFF
    if high - low < LANES:
        return find(entries, low, high, last) if high > low else low
    begin = max(low, min(expected - LANES // 2, high - LANES))
    if entries[begin] > last:
        return find(entries, low, begin + 1, last)
    if entries[begin + LANES - 1] <= last:
        return find(entries, begin + LANES - 1, high, last)
    return find(entries, begin, begin + LANES, last)
