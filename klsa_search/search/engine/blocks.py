"""One block: postings added up, and what passes gathered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import inlined, internal
from klsa_search.kernel.prefetch import prefetch
from klsa_search.search.engine.memory import int32_at, int64_at, uint32_at, uint64_at
from klsa_search.search.engine.record import AT_ONCE, WORDS, Record, buffer_size
from klsa_search.search.engine.scan import (
    LANES,
    add_postings,
    find,
    keep_masked,
    lowest_bit,
    mask_above,
    places_above,
)
from klsa_search.search.engine.terms import MEMORY, worth
from klsa_search.selection import LOW, Keys, select_largest

AHEAD = 4  # cache lines of a term's postings that are asked for in advance
LINE = 16  # postings of a cache line


@internal
def add_terms(
    record: Record,
    begin: int,
    end: int,
    accumulator: npt.NDArray[np.int32],
    entries: npt.NDArray[np.uint32],
) -> int:
    """Add the block's postings of terms begin to end; returns how many."""
    added = 0
    for j in range(begin, end):
        # The first of each term at once: a processor foresees only what goes on.
        for line in range(AHEAD):
            prefetch(entries, record.first[j] + line * LINE)
    for j in range(begin, end):
        low, high = record.first[j], record.after[j]
        add_postings(accumulator, entries[low:high], record.weight[j])
        added += high - low
    return added


@internal
def restrict(record: Record, first: int, span: int) -> None:
    """Set the block's scores of documents outside the record's mask to 0."""
    words = uint64_at(record.mask, (first + span) // LANES)
    for place in range(0, span, LANES):
        keep_masked(record.accumulator + 4 * place, words[(first + place) // LANES])


@inlined
def allowed(record: Record, document: int) -> bool:
    """Whether a document is in the record's mask, where there is one."""
    if record.mask == 0:
        return True
    words = uint64_at(record.mask, (document >> 6) + 1)
    bit = words[document >> 6] >> np.uint64(document & 63)
    return bool(bit & np.uint64(1))


@internal
def count_new(
    record: Record,
    terms: int,
    accumulator: npt.NDArray[np.int32],
    entries: npt.NDArray[np.uint32],
    first: int,
) -> int:
    """How many documents of the block hold one of the first terms, and none that was added.

    They are marked by -1, which is above no bar.
    """
    count = 0
    for j in range(terms):
        for i in range(record.first[j], record.after[j]):
            place = int(entries[i] >> np.uint32(16))
            if accumulator[place] == 0 and allowed(record, first + place):
                accumulator[place] = -1
                count += 1
    return count


@internal
def clear(
    record: Record,
    terms: int,
    accumulator: npt.NDArray[np.int32],
    entries: npt.NDArray[np.uint32],
) -> None:
    """Set the scores of all documents of the block that hold one of the first terms to 0."""
    for j in range(terms):
        for i in range(record.first[j], record.after[j]):
            accumulator[int(entries[i] >> np.uint32(16))] = 0


@internal
def walk(
    record: Record,
    terms: int,
    accumulator: npt.NDArray[np.int32],
    entries: npt.NDArray[np.uint32],
    first: int,
    k: int,
    held: int,
    least: int,
) -> tuple[int, int]:
    """Keep what passes of a block with a handful of postings, and clear behind.

    Adds how many documents those are to the record's total.
    """
    keys = int64_at(record.keys, buffer_size(k))
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
    record: Record, first: int, span: int, k: int, held: int, least: int
) -> tuple[int, int]:
    """Keep what passes of a block whose terms are all added."""
    accumulator = int32_at(record.accumulator, span)
    keys = int64_at(record.keys, buffer_size(k))
    words, hits = uint64_at(record.words, WORDS), int32_at(record.hits, AT_ONCE)
    for begin in range(0, span, AT_ONCE):
        length = min(AT_ONCE, span - begin)
        address = record.accumulator + 4 * begin
        for i in range(places_above(address, length, least >> 32, words, hits)):
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
    record: Record, optional: int, slack: int, first: int, span: int, k: int, held: int, least: int
) -> tuple[int, int]:
    """Keep what passes of a block, looking the optional terms up, strongest first."""
    entries = uint32_at(record.memory, MEMORY)
    accumulator = int32_at(record.accumulator, span)
    keys = int64_at(record.keys, buffer_size(k))
    for place in range(0, span, LANES):
        mask = mask_above(record.accumulator + 4 * place, np.int32((least >> 32) - slack))
        while mask != 0:
            offset = place + lowest_bit(mask)
            mask &= mask - np.uint64(1)
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


@internal
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
