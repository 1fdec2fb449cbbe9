"""One block: add up its postings and collect the keys that pass the threshold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal
from klsa_search.core.selection import LOW, Keys, select_largest
from klsa_search.search.engine.scan import (
    WIDTH,
    add_postings,
    find,
    indices_above,
    keep_masked,
    lowest_bit,
    mask_above,
    without_lowest,
)
from klsa_search.search.engine.terms import impact
from klsa_search.search.engine.workspace import CHUNK, QueryContext, SearchBuffers, buffer_size

Numbers = npt.NDArray[np.int32]
Entries = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]


@internal
def add_terms(
    context: QueryContext, begin: int, end: int, accumulator: Numbers, entries: Entries
) -> int:
    """Add the postings of terms begin to end in the block; return how many."""
    added = 0
    for j in range(begin, end):
        low, high = context.first[j], context.after[j]
        add_postings(accumulator, entries[low:high], context.weight[j])
        added += high - low
    return added


@internal
def apply_mask(accumulator: Numbers, words: Words, first: int, span: int) -> None:
    """Set the block's scores of documents outside a mask to 0."""
    for place in range(0, span, 2 * WIDTH):
        word = words[(first + place) >> 6]
        keep_masked(accumulator[place : place + WIDTH], np.uint32(word))
        place += WIDTH
        keep_masked(accumulator[place : place + WIDTH], np.uint32(word >> np.uint64(WIDTH)))


@inlined
def allowed(words: Words, document: int) -> bool:
    """Return whether a document is in a mask; an empty mask contains all."""
    if len(words) == 0:
        return True
    bit = words[document >> 6] >> np.uint64(document & 63)
    return bool(bit & np.uint64(1))


@internal
def count_unscored(
    context: QueryContext,
    terms: int,
    accumulator: Numbers,
    entries: Entries,
    words: Words,
    first: int,
) -> int:
    """Count the documents of the block with one of the first terms but no score.

    They are marked by -1, which is below any threshold.
    """
    count = 0
    for j in range(terms):
        for i in range(context.first[j], context.after[j]):
            place = int(entries[i] >> np.uint32(16))
            if accumulator[place] == 0 and allowed(words, first + place):
                accumulator[place] = -1
                count += 1
    return count


@internal
def clear_scores(context: QueryContext, terms: int, accumulator: Numbers, entries: Entries) -> None:
    """Set the scores of all documents of the block that contain one of the first terms to 0."""
    for j in range(terms):
        for i in range(context.first[j], context.after[j]):
            accumulator[int(entries[i] >> np.uint32(16))] = 0


@internal
def collect_postings(
    context: QueryContext,
    terms: int,
    buffers: SearchBuffers,
    entries: Entries,
    first: int,
    k: int,
    filled: int,
    threshold_key: int,
) -> tuple[int, int]:
    """Collect keys from a block of few postings and clear its scores.

    Adds the number of documents to the total.
    """
    accumulator, keys = buffers.accumulator, buffers.keys[0, : buffer_size(k)]
    for j in range(terms):
        for i in range(context.first[j], context.after[j]):
            place = int(entries[i] >> np.uint32(16))
            score = int(accumulator[place])
            accumulator[place] = 0
            context.total += score > 0
            filled, threshold_key = _collect(keys, score, first + place, k, filled, threshold_key)
    return filled, threshold_key


@internal
def collect_block(
    buffers: SearchBuffers, first: int, span: int, k: int, filled: int, threshold_key: int
) -> tuple[int, int]:
    """Collect keys from a block whose terms are all added."""
    accumulator, hits = buffers.accumulator, buffers.hits
    keys = buffers.keys[0, : buffer_size(k)]
    for begin in range(0, span, CHUNK):
        after = min(begin + CHUNK, span)
        for i in range(indices_above(accumulator[begin:after], threshold_key >> 32, hits)):
            offset = begin + hits[i]
            key = (np.int64(accumulator[offset]) << 32) | (LOW - first - offset)
            keys[filled] = key
            filled += key > threshold_key  # the threshold may have risen since the comparison
            if filled == len(keys):
                select_largest(keys, filled, k)
                filled, threshold_key = k, keys[k - 1]
    return filled, threshold_key


@internal
def collect_candidates(
    context: QueryContext,
    optional: int,
    slack: int,
    buffers: SearchBuffers,
    entries: Entries,
    first: int,
    span: int,
    k: int,
    filled: int,
    threshold_key: int,
) -> tuple[int, int]:
    """Collect keys from a block; look up the optional terms of candidates, strongest first."""
    accumulator, keys = buffers.accumulator, buffers.keys[0, : buffer_size(k)]
    for place in range(0, span, WIDTH):
        mask = mask_above(accumulator[place : place + WIDTH], (threshold_key >> 32) - slack)
        while mask != 0:
            offset = place + lowest_bit(mask)
            mask = without_lowest(mask)
            score = int(accumulator[offset])
            rest = slack
            j = optional - 1
            while j >= 0 and score + rest > threshold_key >> 32:
                low, high = context.first[j], context.after[j]
                if high > low:
                    entry = int(entries[find(entries, low, high, (offset << 16) | 0xFFFF)])
                    if entry >> 16 == offset:
                        score += impact(context.weight[j], entry & 0xFFFF)
                rest -= context.bound[j]
                j -= 1
            filled, threshold_key = _collect(keys, score, first + offset, k, filled, threshold_key)
    return filled, threshold_key


@inlined
def _collect(
    keys: Keys, score: int, document: int, k: int, filled: int, threshold_key: int
) -> tuple[int, int]:
    """Add a key to the buffer if it passes; cut a full buffer to k, which raises the threshold."""
    key = (score << 32) | (LOW - document)
    if key <= threshold_key:
        return filled, threshold_key
    keys[filled] = key
    filled += 1
    if filled < len(keys):
        return filled, threshold_key
    select_largest(keys, filled, k)
    return k, keys[k - 1]
