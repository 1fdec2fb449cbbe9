"""The terms of a query: merged, ordered by strength, and what they can reach in a block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal
from klsa_search.kernels.postings import DEPTHS
from klsa_search.search.engine.workspace import MAX_TERMS, Memory, Record, SegmentArrays, Stored

CHEAP = 256  # postings of optional terms below which they are simply added
LOOK_UP = 24  # what one look-up costs, in postings added
SHARE = 4  # optional terms may hold a 4th of the threshold
OPTIONAL_K = 100  # k above which nothing is optional: the threshold is too low to pay


@internal
def ask(record: Record, asked: npt.NDArray[np.int64], query: int, queries: int) -> bool:
    """Put one of the queries into the record; whether it has room for all terms: see `Queries`."""
    first, after = asked[query - 1] if query > 0 else 0, asked[query]
    if after - first > MAX_TERMS:
        return False
    record.count = after - first
    for i in range(after - first):
        record.asked[i] = asked[queries + first + i]
    return True


@inlined
def worth(weight: int, saturation: int) -> int:
    """What a posting is worth, in steps: see `kernels.postings`."""
    return 1 + ((weight * saturation) >> 16)


@internal
def distinct_terms(record: Record, stored: Stored) -> int:
    """Enter the query's distinct known terms, weakest first; returns how many."""
    best, weights = stored.best, stored.weights
    terms = 0
    for i in range(record.count):
        term = record.asked[i]
        if term < 0:
            continue
        times = 1
        place = terms
        for j in range(terms):
            if record.term[j] == term:  # asked for again: it only gets stronger
                times = record.times[j] + 1
                place = j
                break
        if place == terms:
            terms += 1
        largest = worth(times * weights[term], int(best[term, 0]))
        while place > 0 and record.largest[place - 1] > largest:
            _copy_term(record, place - 1, place)
            place -= 1
        while place < terms - 1 and record.largest[place + 1] < largest:
            _copy_term(record, place + 1, place)
            place += 1
        record.term[place] = term
        record.times[place] = times
        record.largest[place] = largest
    for j in range(terms):
        record.weight[j] = record.times[j] * weights[record.term[j]]
    return terms


@internal
def _copy_term(record: Record, source: int, target: int) -> None:
    record.term[target] = record.term[source]
    record.times[target] = record.times[source]
    record.largest[target] = record.largest[source]


@internal
def known_to_be_reached(record: Record, stored: Stored, terms: int, k: int) -> int:
    """A score that falls short of what k documents certainly reach, by one step at least."""
    column = 0
    while column < len(DEPTHS) and DEPTHS[column] < k:
        column += 1
    threshold = 0
    if column < len(DEPTHS):
        best = stored.best
        for j in range(terms):
            saturation = int(best[record.term[j], column])
            if saturation > 0:
                threshold = max(threshold, worth(record.weight[j], saturation) - 1)
    return threshold


@inlined
def part_of(stored: Stored, segment: int) -> SegmentArrays:
    """Where the postings of a segment lie."""
    return stored.built if segment == 0 else stored.later


@internal
def enter_segment(
    record: Record, part: SegmentArrays, memory: Memory, terms: int, segment: int, place: int
) -> None:
    """Find where each term's postings and runs in a segment begin.

    place  of its first block among the blocks and ends of all segments
    """
    first = record.first_start[segment]
    for j in range(terms):
        own = _own_number(record, part, segment, record.term[j])
        posting, run, last_run = 0, 0, 0
        if own >= 0:
            posting = part.starts[first + own]
            run = 3 * part.run_starts[first + own]
            last_run = 3 * part.run_starts[first + own + 1]
        record.posting[j], record.run[j], record.last_run[j] = posting, run, last_run
        memory.places[j, place] = posting


@internal
def _own_number(record: Record, part: SegmentArrays, segment: int, term: int) -> int:
    """A segment's own number of a term, below 0 where it has none."""
    terms = record.own_terms[segment]
    if not record.numbered[segment]:
        return term if term < terms else -1
    first = record.first_number[segment]
    low, high = first, first + terms
    while low < high:
        middle = (low + high) >> 1
        if part.numbers[middle] < term:
            low = middle + 1
        else:
            high = middle
    if low == first + terms or part.numbers[low] != term:
        return -1
    return int(part.own[low])


@internal
def enter_block(
    record: Record, part: SegmentArrays, memory: Memory, terms: int, block: int, place: int
) -> int:
    """Find each term's postings in a block of the segment at hand; returns the sum of bounds.

    place  of the block among the blocks and ends of all segments
    """
    runs, places = part.runs, memory.places
    whole = 0
    for j in range(terms):
        first = record.posting[j]
        after, bound = first, 0
        run = record.run[j]
        if run < record.last_run[j] and runs[run] == block:
            after = first + int(runs[run + 1]) + 1
            bound = worth(record.weight[j], int(runs[run + 2]))
            record.run[j] = run + 3
            record.posting[j] = after
        places[j, place + 1] = after
        record.first[j] = first
        record.after[j] = after
        record.bound[j] = bound
        whole += bound
    return whole


@internal
def optional_terms(record: Record, terms: int, threshold: int, k: int) -> tuple[int, int, int]:
    """How many of the first terms are optional, the sum of their bounds, and their postings."""
    if k > OPTIONAL_K:
        return 0, 0, 0
    count, slack, spared = 0, 0, 0
    while count < terms and (slack + record.bound[count]) * SHARE <= threshold:
        slack += record.bound[count]
        spared += record.after[count] - record.first[count]
        count += 1
    if spared < CHEAP:
        return 0, 0, 0
    return count, slack, spared
