"""The k best documents of a query by BM25, exactly, reading as few postings as possible.

Documents are walked segment by segment in blocks, an accumulator that fits the first cache. In a
block
  1. every term has a range of postings and an upper bound of its impact there;
  2. a block whose bounds add up to no more than the threshold is passed over;
  3. as in MaxScore the weakest terms, whose bounds together stay within a share of the threshold,
     are optional; the postings of the others are added to the accumulator;
  4. what could still pass is a candidate; the optional terms are looked up for the candidates,
     or added like the others where the candidates are many;
  5. what passes goes to a buffer of keys; a full one is cut back to k, which raises the threshold.
A mask leaves documents out, and those that count no more are left out always: their scores are set
to 0 once a block's postings are added. The total, where it is asked for, counts what holds a term,
in blocks that are passed over too.
The threshold begins at what k documents are known to reach by a single term. For many results the
first block tells better: in the only block there is, what k documents reach; in the first of many,
what a few times its share of k do. That is a guess, and where fewer than k documents pass, it is
taken back and the blocks are walked again.

Scores are whole numbers: the order of the terms, what is passed over and the number of threads
leave every bit as it is, and the bounds are sharp. Adding a posting takes half a nanosecond, less
than any cleverness to avoid it; hence how seldom terms are optional. The constants were measured on
corpora of 21,578 to a million documents; results do not depend on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, internal
from klsa_search.core.selection import LOW, select_largest, sort_descending
from klsa_search.kernels.postings import UNIT
from klsa_search.lowrank.coverage import HALF
from klsa_search.search.engine.blocks import (
    add_terms,
    allowed,
    clear,
    count_new,
    gather_block,
    restrict,
    scan_block,
    walk,
)
from klsa_search.search.engine.scan import (
    LANES,
    are_above,
    bar_of,
    count_above,
    find,
    lowest_bit,
    without_lowest,
)
from klsa_search.search.engine.terms import (
    LOOK_UP,
    ask,
    distinct_terms,
    enter_block,
    enter_segment,
    known_to_be_reached,
    optional_terms,
    part_of,
    worth,
)
from klsa_search.search.engine.workspace import (
    TAKEN,
    TOGETHER,
    IndexArrays,
    Memory,
    Queries,
    Record,
    SegmentArrays,
    Stored,
    Workspace,
)

SCANNED = 16  # postings looked at for each that would be looked up


Entries = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]


@internal
def look_up_impacts(
    record: Record,
    stored: Stored,
    memory: Memory,
    terms: int,
    held: IndexArrays,
    room: Workspace,
    best: int,
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
    record: Record,
    stored: Stored,
    memory: Memory,
    term: int,
    lanes: int,
    room: Workspace,
    best: int,
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
    room: Workspace,
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
    room: Workspace,
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


FEW = 64  # postings of a block below which they are walked again, not the block scanned
MARGIN = 3  # a block's share of the k best is guessed to be no more than 3 times the mean
SAMPLE = 16  # documents a guess is based on at least


@compiled
def search(
    records: npt.NDArray[np.void], words: Words, masked: bool, counted: bool, *arrays: Any
) -> None:
    """Answer queries, each into a row, best first.

    words    of the mask of the documents that may be answered; empty where all may
    masked   whether these are only some of those that count
    counted  whether totals are asked for
    arrays   those of `Queries`, `Memory` and `Stored`; one by one, as it takes Python three times
             as long to hand over named tuples
    """
    queries, memory = Queries(*arrays[:4]), Memory(*arrays[4:8])
    stored = Stored(
        arrays[8],
        arrays[9],
        arrays[10],
        SegmentArrays(*arrays[11:17]),
        SegmentArrays(*arrays[17:23]),
    )
    record, counts, k = records[0], queries.counts, queries.documents.shape[1]
    record.masked, record.counted = masked, counted
    for query in range(len(counts)):
        if not ask(record, queries.asked, query, len(counts)):
            counts[query, 0] = -1
            continue
        count = best_keys(record, stored, memory, words, k)
        counts[query, 0], counts[query, 1] = count, record.total * counted
        keys = memory.keys[0]
        sort_descending(keys, count, memory.keys[1])
        for i in range(count):
            queries.documents[query, i] = LOW - (keys[i] & LOW)
            queries.scores[query, i] = (keys[i] >> 32) * record.step


@internal
def best_keys(record: Record, stored: Stored, memory: Memory, words: Words, k: int) -> int:
    """Gather the keys of the k best documents, unsorted; returns how many."""
    held = int(np.int64(0))
    for margin in (MARGIN, 0):
        terms, record.total = distinct_terms(record, stored), 0
        if terms == 0:
            return 0
        held, guessed = _gather(record, stored, memory, words, terms, k, margin)
        if held >= k or not guessed:
            break
    if held > k:
        select_largest(memory.keys[0], held, k)
        held = k
    return held


@internal
def _gather(
    record: Record, stored: Stored, memory: Memory, words: Words, terms: int, k: int, margin: int
) -> tuple[int, bool]:
    """Gather the keys of the k best and some more; returns how many, and whether on a guess.

    margin  the first block guesses the threshold: what `margin` times its share of k reach. If
            fewer than k are found by a guess it was too high. 0 is no guess.
    """
    part, accumulator = stored.built, memory.accumulator
    width = 1 << record.block_bits
    held, guessed, record.total = (
        int(np.int64(0)),
        False,
        0,
    )  # 0 by itself would be a type of its own
    threshold = 0
    if not record.masked:
        threshold = known_to_be_reached(record, stored, terms, k + record.left_out)
    least = (threshold << 32) | LOW  # a key above it passes
    segment, number, last = -1, int(np.int64(0)), 0
    for block in range(record.blocks):
        if number == last:
            segment += 1
            number, last = int(np.int64(0)), record.own_blocks[segment]
            part = part_of(stored, segment)
            enter_segment(record, part, memory, terms, segment, block + segment)
        first = record.base[segment] + number * width
        bound = enter_block(record, part, memory, terms, number, block + segment)
        entries = part.entries
        number += 1
        if bound <= threshold:
            if record.counted != 0 and bound > 0:
                record.total += count_new(record, terms, accumulator, entries, words, first)
                clear(record, terms, accumulator, entries)
            continue
        optional, slack, spared = optional_terms(record, terms, threshold, k)
        added = add_terms(record, optional, terms, accumulator, entries)
        # Whole vectors; beyond the last document there is nothing but 0.
        after = min(first + width, record.base[segment] + record.length[segment])
        span = (after - first + LANES - 1) // LANES * LANES
        scores = accumulator[:span]
        few, hopeless = added <= FEW and optional == 0, False
        if len(words) > 0:
            restrict(accumulator, words, first, span)
        if optional > 0:
            candidates = count_above(scores, threshold - slack)
            hopeless = candidates == 0
            if candidates * LOOK_UP > spared:
                add_terms(record, int(np.int64(0)), optional, accumulator, entries)
                optional, slack = 0, 0
                if len(words) > 0:
                    restrict(accumulator, words, first, span)
        if record.counted != 0 and not few:
            record.total += count_above(scores, int(np.int64(0)))
            record.total += count_new(record, optional, accumulator, entries, words, first)
        if hopeless:
            scores[:] = 0
            continue
        if block == 0 and margin > 0 and optional == 0:
            # Where it is k that reach it, the k best of all do.
            wanted = min(max(margin * k * (after - first) // record.documents, SAMPLE), k)
            reached = _reached_by(scores, threshold, bound, wanted)
            if reached > threshold:
                guessed = wanted < k
                threshold, least = reached, (reached << 32) | LOW
        if few:
            held, least = walk(record, terms, memory, entries, first, k, held, least)
        elif optional == 0:
            held, least = gather_block(memory, first, span, k, held, least)
            scores[:] = 0
        else:
            held, least = scan_block(
                record, optional, slack, memory, entries, first, span, k, held, least
            )
            scores[:] = 0
        threshold = max(threshold, least >> 32)
    return held, guessed


@internal
def _reached_by(scores: npt.NDArray[np.int32], threshold: int, bound: int, wanted: int) -> int:
    """What so many of the first block's documents reach, in steps less one."""
    if not are_above(scores, threshold, 2 * wanted + LANES):
        return threshold
    return bar_of(scores, threshold, bound, wanted)
