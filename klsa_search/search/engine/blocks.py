"""One block: postings added up, and what passes gathered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal
from klsa_search.core.selection import LOW, Keys, select_largest
from klsa_search.search.engine.scan import (
    WIDTH,
    add_postings,
    find,
    keep_masked,
    lowest_bit,
    mask_above,
    places_above,
    without_lowest,
)
from klsa_search.search.engine.terms import worth
from klsa_search.search.engine.workspace import AT_ONCE, Memory, Record, buffer_size

Numbers = npt.NDArray[np.int32]
Entries = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]


@internal
def add_terms(record: Record, begin: int, end: int, accumulator: Numbers, entries: Entries) -> int:
    """Add the block's postings of terms begin to end; returns how many."""
    added = 0
    for j in range(begin, end):
        low, high = record.first[j], record.after[j]
        add_postings(accumulator, entries[low:high], record.weight[j])
        added += high - low
    return added


@internal
def restrict(accumulator: Numbers, words: Words, first: int, span: int) -> None:
    """Set the block's scores of documents outside a mask to 0."""
    for place in range(0, span, 2 * WIDTH):
        word = words[(first + place) >> 6]
        keep_masked(accumulator[place : place + WIDTH], np.uint32(word))
        place += WIDTH
        keep_masked(accumulator[place : place + WIDTH], np.uint32(word >> np.uint64(WIDTH)))


@inlined
def allowed(words: Words, document: int) -> bool:
    """Whether a document is in a mask, where there is one."""
    if len(words) == 0:
        return True
    bit = words[document >> 6] >> np.uint64(document & 63)
    return bool(bit & np.uint64(1))


@internal
def count_new(
    record: Record, terms: int, accumulator: Numbers, entries: Entries, words: Words, first: int
) -> int:
    """How many documents of the block hold one of the first terms, and none that was added.

    They are marked by -1, which is above no bar.
    """
    count = 0
    for j in range(terms):
        for i in range(record.first[j], record.after[j]):
            place = int(entries[i] >> np.uint32(16))
            if accumulator[place] == 0 and allowed(words, first + place):
                accumulator[place] = -1
                count += 1
    return count


@internal
def clear(record: Record, terms: int, accumulator: Numbers, entries: Entries) -> None:
    """Set the scores of all documents of the block that hold one of the first terms to 0."""
    for j in range(terms):
        for i in range(record.first[j], record.after[j]):
            accumulator[int(entries[i] >> np.uint32(16))] = 0


@internal
def walk(
    record: Record,
    terms: int,
    memory: Memory,
    entries: Entries,
    first: int,
    k: int,
    held: int,
    least: int,
) -> tuple[int, int]:
    """Keep what passes of a block with a handful of postings, and clear behind.

    Adds how many documents those are to the record's total.
    """
    accumulator, keys = memory.accumulator, memory.keys[0, : buffer_size(k)]
    for j in range(terms):
        for i in range(record.first[j], record.after[j]):
            place = int(entries[i] >> np.uint32(16))
            score = int(accumulator[place])
            accumulator[place] = 0
            record.total += score > 0
            held, least = _keep(keys, score, first + place, k, held, least)
    return held, least


@internal
def gather_block(
    memory: Memory, first: int, span: int, k: int, held: int, least: int
) -> tuple[int, int]:
    """Keep what passes of a block whose terms are all added."""
    accumulator, hits = memory.accumulator, memory.hits
    keys = memory.keys[0, : buffer_size(k)]
    for begin in range(0, span, AT_ONCE):
        after = min(begin + AT_ONCE, span)
        for i in range(places_above(accumulator[begin:after], least >> 32, hits)):
            offset = begin + hits[i]
            key = (np.int64(accumulator[offset]) << 32) | (LOW - first - offset)
            keys[held] = key
            held += key > least  # the bar may have risen since the comparison
            if held == len(keys):
                select_largest(keys, held, k)
                held, least = k, keys[k - 1]
    return held, least


@internal
def scan_block(
    record: Record,
    optional: int,
    slack: int,
    memory: Memory,
    entries: Entries,
    first: int,
    span: int,
    k: int,
    held: int,
    least: int,
) -> tuple[int, int]:
    """Keep what passes of a block, looking the optional terms up, strongest first."""
    accumulator, keys = memory.accumulator, memory.keys[0, : buffer_size(k)]
    for place in range(0, span, WIDTH):
        mask = mask_above(accumulator[place : place + WIDTH], (least >> 32) - slack)
        while mask != 0:
            offset = place + lowest_bit(mask)
            mask = without_lowest(mask)
            score = int(accumulator[offset])
            rest = slack
            j = optional - 1
            while j >= 0 and score + rest > least >> 32:
                low, high = record.first[j], record.after[j]
                if high > low:
                    entry = int(entries[find(entries, low, high, (offset << 16) | 0xFFFF)])
                    if entry >> 16 == offset:
                        score += worth(record.weight[j], entry & 0xFFFF)
                rest -= record.bound[j]
                j -= 1
            held, least = _keep(keys, score, first + offset, k, held, least)
    return held, least


@inlined
def _keep(keys: Keys, score: int, document: int, k: int, held: int, least: int) -> tuple[int, int]:
    """Put a key into the buffer if it passes; cut back a full buffer, which raises the bar."""
    key = (score << 32) | (LOW - document)
    if key <= least:
        return held, least
    keys[held] = key
    held += 1
    if held < len(keys):
        return held, least
    select_largest(keys, held, k)
    return k, keys[k - 1]
