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

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, internal
from klsa_search.search.engine.blocks import (
    add_terms,
    clear,
    count_new,
    gather_block,
    restrict,
    scan_block,
    walk,
)
from klsa_search.search.engine.memory import float32_at, int32_at, int64_at, uint32_at
from klsa_search.search.engine.record import Record
from klsa_search.search.engine.scan import LANES, are_above, bar_of, count_above
from klsa_search.search.engine.terms import (
    LOOK_UP,
    MEMORY,
    ask,
    distinct_terms,
    enter_block,
    enter_segment,
    known_to_be_reached,
    optional_terms,
)
from klsa_search.selection import LOW, select_largest, sort_descending

FEW = 64  # postings of a block below which they are walked again, not the block scanned
MARGIN = 3  # a block's share of the k best is guessed to be no more than 3 times the mean
SAMPLE = 16  # documents a guess is based on at least


@compiled
def search(records: npt.NDArray[np.void]) -> int:
    """Answer the record's queries, each into a row, best first; returns how many for the last."""
    record = records[0]
    ends, counts = int64_at(record.ends, record.queries), int64_at(record.counts, record.queries)
    totals = int64_at(record.totals, record.queries)
    count = 0
    for query in range(record.queries):
        if not ask(record, query, ends):
            counts[query] = -1
            continue
        count = best_keys(record, record.k)
        counts[query], totals[query] = count, record.total
        if count == 0:
            continue
        keys = int64_at(record.keys, count)
        sort_descending(keys, count, int64_at(record.spare, count))
        row = 4 * record.k * query
        documents, scores = (
            int32_at(record.found + row, count),
            float32_at(record.scores + row, count),
        )
        for i in range(count):
            documents[i] = LOW - (keys[i] & LOW)
            scores[i] = (keys[i] >> 32) * record.step
    return count


@internal
def best_keys(record: Record, k: int) -> int:
    """Gather the keys of the k best documents in the record's buffer, unsorted; return how many."""
    terms, record.total = distinct_terms(record), 0
    if terms == 0:
        return 0
    held, guessed = _gather(record, terms, k, MARGIN)
    if held < k and guessed:
        held, guessed = _gather(record, distinct_terms(record), k, 0)
    if held > k:
        select_largest(int64_at(record.keys, held), held, k)
        held = k
    return held


@internal
def _gather(record: Record, terms: int, k: int, margin: int) -> tuple[int, bool]:
    """Gather the keys of the k best and some more; returns how many, and whether on a guess.

    margin  the first block guesses the threshold: what `margin` times its share of k reach. If
            fewer than k are found by a guess it was too high. 0 is no guess.
    """
    entries = uint32_at(record.memory, MEMORY)
    width = 1 << record.block_bits
    accumulator = int32_at(record.accumulator, width)
    held, guessed, record.total = 0, False, 0
    threshold = 0
    if record.mask == record.living:
        threshold = known_to_be_reached(record, terms, k + record.left_out)
    least = (threshold << 32) | LOW  # a key above it passes
    segment, number, last = -1, 0, 0
    for block in range(record.blocks):
        if number == last:
            segment += 1
            number, last = 0, record.own_blocks[segment]
            enter_segment(record, terms, segment, block + segment)
        first = record.base[segment] + number * width
        bound = enter_block(record, terms, number, block + segment)
        number += 1
        if bound <= threshold:
            if record.counted != 0 and bound > 0:
                record.total += count_new(record, terms, accumulator, entries, first)
                clear(record, terms, accumulator, entries)
            continue
        optional, slack, spared = optional_terms(record, terms, threshold, k)
        added = add_terms(record, optional, terms, accumulator, entries)
        # Whole vectors; beyond the last document there is nothing but 0.
        after = min(first + width, record.base[segment] + record.length[segment])
        span = (after - first + LANES - 1) // LANES * LANES
        few, hopeless = added <= FEW and optional == 0, False
        if record.mask != 0:
            restrict(record, first, span)
        if optional > 0:
            candidates = count_above(record.accumulator, span, threshold - slack)
            hopeless = candidates == 0
            if candidates * LOOK_UP > spared:
                add_terms(record, 0, optional, accumulator, entries)
                optional, slack = 0, 0
                if record.mask != 0:
                    restrict(record, first, span)
        if record.counted != 0 and not few:
            record.total += count_above(record.accumulator, span, 0)
            record.total += count_new(record, optional, accumulator, entries, first)
        if hopeless:
            accumulator[:span] = 0
            continue
        if block == 0 and margin > 0 and optional == 0:
            # Where it is k that reach it, the k best of all do.
            wanted = min(max(margin * k * (after - first) // record.documents, SAMPLE), k)
            reached = _reached_by(record, span, threshold, bound, wanted)
            if reached > threshold:
                guessed = wanted < k
                threshold, least = reached, (reached << 32) | LOW
        if few:
            held, least = walk(record, terms, accumulator, entries, first, k, held, least)
        elif optional == 0:
            held, least = gather_block(record, first, span, k, held, least)
            accumulator[:span] = 0
        else:
            held, least = scan_block(record, optional, slack, first, span, k, held, least)
            accumulator[:span] = 0
        threshold = max(threshold, least >> 32)
    return held, guessed


@internal
def _reached_by(record: Record, span: int, threshold: int, bound: int, wanted: int) -> int:
    """What so many of the first block's documents reach, in steps less one."""
    if not are_above(record.accumulator, span, threshold, 2 * wanted + LANES):
        return threshold
    return bar_of(record.accumulator, span, threshold, bound, wanted)
