"""The terms of a query: merged, ordered by maximum impact, with their bounds in each block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal
from klsa_search.kernels.postings import DEPTHS
from klsa_search.search.engine.workspace import (
    MAX_TERMS,
    PostingArrays,
    QueryContext,
    SearchBuffers,
    SegmentArrays,
)

CHEAP = 256  # optional terms with fewer postings are added
LOOK_UP = 24  # cost of one look-up, in postings added
SHARE = 4  # bounds of optional terms add up to at most 1/4 of the threshold
OPTIONAL_K = 100  # largest k with optional terms: for more the threshold is too low to pay


@internal
def load_query(
    context: QueryContext, terms: npt.NDArray[np.int64], query: int, queries: int
) -> bool:
    """Copy a query of the batch into the context; return whether all its terms fit."""
    first, after = terms[query - 1] if query > 0 else 0, terms[query]
    if after - first > MAX_TERMS:
        return _load_merged(context, terms, queries + first, queries + after)
    context.count = after - first
    for i in range(after - first):
        context.query_terms[i] = terms[queries + first + i]
        context.query_times[i] = 1
    return True


@internal
def _load_merged(
    context: QueryContext, terms: npt.NDArray[np.int64], first: int, after: int
) -> bool:
    """Copy a long query, each known term once; return whether they fit."""
    context.count = 0
    for i in range(first, after):
        term, place = terms[i], context.count
        if term < 0:
            continue
        for j in range(context.count):
            if context.query_terms[j] == term:
                place = j
                break
        if place == context.count:
            if place == MAX_TERMS:
                return False
            context.query_terms[place], context.query_times[place] = term, 0
            context.count += 1
        context.query_times[place] += 1
    return True


@inlined
def impact(weight: int, saturation: int) -> int:
    """Return the impact of a posting, in steps: see `kernels.postings`."""
    return 1 + ((weight * saturation) >> 16)


@internal
def distinct_terms(context: QueryContext, postings: PostingArrays) -> int:
    """Write the distinct known terms to the context, by ascending impact; return how many."""
    best, weights = postings.best, postings.weights
    terms = 0
    for i in range(context.count):
        term = context.query_terms[i]
        if term < 0:
            continue
        times = context.query_times[i]
        place = terms
        for j in range(terms):
            if context.term[j] == term:  # repeated, so its impact only grows
                times += context.query_counts[j]
                place = j
                break
        if place == terms:
            terms += 1
        largest = impact(times * weights[term], int(best[term, 0]))
        while place > 0 and context.max_impact[place - 1] > largest:
            _copy_term(context, place - 1, place)
            place -= 1
        while place < terms - 1 and context.max_impact[place + 1] < largest:
            _copy_term(context, place + 1, place)
            place += 1
        context.term[place] = term
        context.query_counts[place] = times
        context.max_impact[place] = largest
    for j in range(terms):
        context.weight[j] = context.query_counts[j] * weights[context.term[j]]
    return terms


@internal
def _copy_term(context: QueryContext, source: int, target: int) -> None:
    context.term[target] = context.term[source]
    context.query_counts[target] = context.query_counts[source]
    context.max_impact[target] = context.max_impact[source]


@internal
def initial_threshold(context: QueryContext, postings: PostingArrays, terms: int, k: int) -> int:
    """Return a score that k documents are known to exceed by a single term."""
    column = 0
    while column < len(DEPTHS) and DEPTHS[column] < k:
        column += 1
    threshold = 0
    if column < len(DEPTHS):
        best = postings.best
        for j in range(terms):
            saturation = int(best[context.term[j], column])
            if saturation > 0:
                threshold = max(threshold, impact(context.weight[j], saturation) - 1)
    return threshold


@inlined
def segment_arrays(postings: PostingArrays, segment: int) -> SegmentArrays:
    """Return the arrays with the postings of a segment."""
    return postings.main if segment == 0 else postings.delta


@internal
def seek_segment(
    context: QueryContext,
    arrays: SegmentArrays,
    buffers: SearchBuffers,
    terms: int,
    segment: int,
    place: int,
) -> None:
    """Find where each term's postings and runs in a segment begin.

    place  column of its first block in `posting_offsets`
    """
    first = context.first_start[segment]
    for j in range(terms):
        own = _local_term(context, arrays, segment, context.term[j])
        posting, run, last_run = 0, 0, 0
        if own >= 0:
            posting = arrays.starts[first + own]
            run = 3 * arrays.run_starts[first + own]
            last_run = 3 * arrays.run_starts[first + own + 1]
        context.posting[j], context.run[j], context.last_run[j] = posting, run, last_run
        buffers.posting_offsets[j, place] = posting


@internal
def _local_term(context: QueryContext, arrays: SegmentArrays, segment: int, term: int) -> int:
    """Return a segment's own number of a term, or -1."""
    terms = context.term_count[segment]
    if not context.has_local_terms[segment]:
        return term if term < terms else -1
    first = context.first_term[segment]
    low, high = first, first + terms
    while low < high:
        middle = (low + high) >> 1
        if arrays.global_terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    if low == first + terms or arrays.global_terms[low] != term:
        return -1
    return int(arrays.local_terms[low])


@internal
def seek_block(
    context: QueryContext,
    arrays: SegmentArrays,
    buffers: SearchBuffers,
    terms: int,
    block: int,
    place: int,
) -> int:
    """Find each term's postings in a block of the current segment; return the sum of their bounds.

    place  column of the block in `posting_offsets`
    """
    runs, offsets = arrays.runs, buffers.posting_offsets
    total = 0
    for j in range(terms):
        first = context.posting[j]
        after, bound = first, 0
        run = context.run[j]
        if run < context.last_run[j] and runs[run] == block:
            after = first + int(runs[run + 1]) + 1
            bound = impact(context.weight[j], int(runs[run + 2]))
            context.run[j] = run + 3
            context.posting[j] = after
        offsets[j, place + 1] = after
        context.first[j] = first
        context.after[j] = after
        context.bound[j] = bound
        total += bound
    return total


@internal
def optional_terms(
    context: QueryContext, terms: int, threshold: int, k: int
) -> tuple[int, int, int]:
    """Return how many first terms are optional, the sum of their bounds, and their postings."""
    if k > OPTIONAL_K:
        return 0, 0, 0
    count, slack, skipped = 0, 0, 0
    while count < terms and (slack + context.bound[count]) * SHARE <= threshold:
        slack += context.bound[count]
        skipped += context.after[count] - context.first[count]
        count += 1
    if skipped < CHEAP:
        return 0, 0, 0
    return count, slack, skipped
