"""The k best documents of a query by BM25, exactly, touching as few postings as pays.

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

from klsa_search.compiling import compiled, internal
from klsa_search.search.engine.blocks import (
    add_terms,
    clear,
    count_new,
    gather_block,
    restrict,
    scan_block,
    walk,
)
from klsa_search.search.engine.record import Memory, Part, Queries, Record, Stored
from klsa_search.search.engine.scan import LANES, are_above, bar_of, count_above
from klsa_search.search.engine.terms import (
    LOOK_UP,
    ask,
    distinct_terms,
    enter_block,
    enter_segment,
    known_to_be_reached,
    optional_terms,
    part_of,
)
from klsa_search.selection import LOW, select_largest, sort_descending

FEW = 64  # postings of a block below which they are walked again, not the block scanned
MARGIN = 3  # a block's share of the k best is guessed to be no more than 3 times the mean
SAMPLE = 16  # documents a guess is based on at least

Words = npt.NDArray[np.uint64]


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
    stored = Stored(arrays[8], arrays[9], arrays[10], Part(*arrays[11:17]), Part(*arrays[17:23]))
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
