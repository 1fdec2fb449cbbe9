"""The k best documents of a query by BM25, exactly, reading as few postings as possible.

Documents are scored segment by segment, in blocks whose accumulator fits the L1 cache. In a block
  1. each term has a range of postings and an upper bound of its impact;
  2. a block whose bounds add up to no more than the threshold is skipped;
  3. as in MaxScore the weakest terms, whose bounds add up to a share of the threshold, are
     optional; the postings of the others are added to the accumulator;
  4. documents that can still pass are candidates; optional terms are looked up for candidates, or
     added like the others if there are many candidates;
  5. documents that pass go to a buffer of keys; a full buffer is cut to k, which raises the
     threshold.
Scores of documents that are deleted or outside a mask are set to 0 once the postings of a block
are added. The total, if requested, counts documents that contain a term, also in skipped blocks.

The threshold starts at a score that k documents are known to reach by a single term. For large k
the first block gives a higher one. With one block it is the score of its k-th document; with
several it is an estimate, from a few times the number of documents expected from this block: if
fewer than k documents pass, all blocks are scored again without it.

Scores are integers, so neither the order of terms, nor skipping, nor the number of threads changes
a bit, and bounds are sharp. Adding a posting takes 0.5 ns, less than most ways to avoid it; so
terms are seldom optional. The constants were measured on corpora of 21,578 to a million documents;
results do not depend on them.
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
    apply_mask,
    clear_scores,
    collect_block,
    collect_candidates,
    collect_postings,
    count_unscored,
)
from klsa_search.search.engine.scan import (
    LANES,
    count_above,
    find,
    find_threshold,
    has_many_above,
    lowest_bit,
    without_lowest,
)
from klsa_search.search.engine.terms import (
    LOOK_UP,
    distinct_terms,
    impact,
    initial_threshold,
    load_query,
    optional_terms,
    seek_block,
    seek_segment,
    segment_arrays,
)
from klsa_search.search.engine.workspace import (
    SCAN_CHUNK,
    TERM_GROUP,
    IndexArrays,
    PostingArrays,
    Queries,
    QueryContext,
    SearchBuffers,
    SegmentArrays,
    Workspace,
)

SCAN_COST = 16  # postings scanned in the time of one look-up


Entries = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]


@internal
def look_up_impacts(
    context: QueryContext,
    postings: PostingArrays,
    buffers: SearchBuffers,
    terms: int,
    index: IndexArrays,
    workspace: Workspace,
    best: int,
) -> int:
    """Compute the impacts of all terms in the best documents, in steps; return their stride.

    Short posting lists are scanned; in long ones each document is looked up. The longest is not
    read: its impact is what the other terms leave of the score.
    """
    stride = (terms + TERM_GROUP - 1) // TERM_GROUP * TERM_GROUP
    workspace.impacts[: stride * (best + 1)] = 0
    workspace.term_weights[:stride], workspace.half[:stride] = 0, 1
    longest, most, offsets = 0, -1, buffers.posting_offsets
    for j in range(terms):
        workspace.term_weights[j] = (
            np.float32(context.query_counts[j]) * index.term_weights[context.term[j]]
        )
        workspace.half[j] = np.float32(HALF * context.weight[j] / (UNIT * context.step))
        count = _posting_count(context, buffers, j)
        if count > most:
            longest, most = j, count
    for j in range(terms):
        if j == longest:
            continue
        if _posting_count(context, buffers, j) >= SCAN_COST * best:
            _look_up(context, postings, buffers, j, stride, workspace, best)
            continue
        place = 0
        for segment in range(context.segments):
            entries = segment_arrays(postings, segment).entries
            start = context.base[segment]
            for _ in range(context.block_count[segment]):
                first, after = offsets[j, place], offsets[j, place + 1]
                weight = context.weight[j]
                _scan_postings(entries, first, after, start, weight, j, stride, workspace)
                start += 1 << context.block_bits
                place += 1
            place += 1
    impacts, remaining = workspace.impacts, workspace.remaining
    for slot in range(1, best + 1):
        impacts[slot * stride + longest] = np.float32(remaining[slot])
    return stride


@internal
def _posting_count(context: QueryContext, buffers: SearchBuffers, term: int) -> int:
    """Return the number of postings of a term in all segments."""
    count, place = 0, 0
    for segment in range(context.segments):
        last = place + context.block_count[segment]
        count += buffers.posting_offsets[term, last] - buffers.posting_offsets[term, place]
        place = last + 1
    return count


@internal
def _look_up(
    context: QueryContext,
    postings: PostingArrays,
    buffers: SearchBuffers,
    term: int,
    stride: int,
    workspace: Workspace,
    best: int,
) -> None:
    """Look up the impact of a term in each of the best documents."""
    for slot in range(1, best + 1):
        impact_ = _term_impact(
            context, postings, buffers, term, int(np.int64(workspace.documents[slot]))
        )
        if impact_ > 0:
            workspace.impacts[slot * stride + term] = np.float32(impact_)
            workspace.remaining[slot] -= impact_


@internal
def _term_impact(
    context: QueryContext, postings: PostingArrays, buffers: SearchBuffers, term: int, document: int
) -> int:
    """Return the impact of a term in a document, in steps, by interpolation search in its block."""
    bits = context.block_bits
    segment, begin = 0, 0
    while document >= context.base[segment] + context.length[segment]:
        begin += context.block_count[segment] + 1
        segment += 1
    entries = postings.main.entries if segment == 0 else postings.delta.entries
    document -= context.base[segment]
    block = document >> bits
    offsets = buffers.posting_offsets
    low, high = offsets[term, begin + block], offsets[term, begin + block + 1]
    place = document - (block << bits)
    span = min(1 << bits, context.length[segment] - (block << bits))
    at = find_posting(entries, low, high, low + place * (high - low) // span, place)
    if at >= high or entries[at] >> np.uint32(16) != place:
        return 0
    return impact(context.weight[term], int(entries[at] & np.uint32(0xFFFF)))


@internal
def look_up_keys(
    context: QueryContext,
    postings: PostingArrays,
    buffers: SearchBuffers,
    words: Words,
    terms: int,
    limit: int,
) -> int:
    """Collect the keys of the documents in a mask that contain a term; return how many.

    Each of at most `limit` documents is looked up in the postings of each term, whose offsets
    `best_keys` has found. Returns -1 if adding all postings costs less.
    """
    posting_count = 0
    for j in range(terms):
        posting_count += _posting_count(context, buffers, j)
    if limit * terms * LOOK_UP > posting_count:
        return -1
    filled = 0
    for place in range(len(words)):
        word = words[place]
        for half in range(2):
            mask = np.uint32(word >> np.uint64(32 * half))
            while mask != 0:
                document = place * LANES + 32 * half + lowest_bit(mask)
                mask = without_lowest(mask)
                score = 0
                for j in range(terms):
                    score += _term_impact(context, postings, buffers, j, document)
                if score > 0:
                    buffers.keys[0, filled] = (np.int64(score) << 32) | (LOW - document)
                    filled += 1
    return filled


@internal
def count_without(
    context: QueryContext,
    postings: PostingArrays,
    buffers: SearchBuffers,
    words: Words,
    terms: int,
    workspace: Workspace,
    matched: int,
    size: int,
) -> int:
    """Count the documents of slots beyond `matched` that are in the mask and contain no term."""
    count = 0
    for slot in range(matched + 1, size + 1):
        document = int(np.int64(workspace.documents[slot]))
        if not allowed(words, document):
            continue
        contained, j = 0, terms - 1
        while contained == 0 and j >= 0:
            contained = _term_impact(context, postings, buffers, j, document)
            j -= 1
        count += contained == 0
    return count


@internal
def _scan_postings(
    entries: npt.NDArray[np.uint32],
    first: int,
    after: int,
    base: int,
    weight: int,
    column: int,
    stride: int,
    workspace: Workspace,
) -> None:
    """Copy the impacts of a term from its postings; first select those of the best documents.

    Without a branch, which would be mispredicted. The bits fit the cache, slots would not.
    """
    is_best, hits, slots = workspace.is_best[base >> 5 :], workspace.hits, workspace.slots
    impacts, remaining = workspace.impacts, workspace.remaining
    for begin in range(first, after, SCAN_CHUNK):
        count = 0
        for p in range(begin, min(begin + SCAN_CHUNK, after)):
            entry = entries[p]
            hits[count] = entry
            bit = is_best[entry >> np.uint32(21)] >> ((entry >> np.uint32(16)) & np.uint32(31))
            count += int(bit & np.uint32(1))
        for i in range(count):
            entry = hits[i]
            slot = np.uint32(slots[base + np.int64(entry >> np.uint32(16))])
            impact_ = impact(weight, int(entry & np.uint32(0xFFFF)))
            impacts[slot * np.uint32(stride) + np.uint32(column)] = np.float32(impact_)
            remaining[slot] -= np.int32(impact_)


@internal
def find_posting(entries: Entries, low: int, high: int, expected: int, offset: int) -> int:
    """Return where entries[low:high] has a posting of this offset in the block, or any other place.

    A search in a window around the expected place nearly always finds it.
    """
    last = (offset << 16) | 0xFFFF
    if high - low < LANES:
        return find(entries, low, high, last) if high > low else low
    begin = max(low, min(expected - LANES // 2, high - LANES))
    if entries[begin] > last:
        return find(entries, low, begin + 1, last)
    if entries[begin + LANES - 1] <= last:
        return find(entries, begin + LANES - 1, high, last)
    return find(entries, begin, begin + LANES, last)


FEW = 64  # postings of a block up to which they are read again instead of all its scores
MARGIN = 3  # assumed ratio of the first block's share of the k best to the mean share
SAMPLE = 16  # documents that a guess is based on, at least


@compiled
def search(
    contexts: npt.NDArray[np.void], words: Words, masked: bool, count_totals: bool, *arrays: Any
) -> None:
    """Search a batch of queries; the results of each are a row, best first.

    words         of the mask of documents that may be returned; empty for all
    masked        whether `words` are more than the mask of live documents
    count_totals  whether to count totals
    arrays        of `Queries`, `SearchBuffers` and `PostingArrays`; passing named tuples takes
                  three times as long
    """
    queries, buffers = Queries(*arrays[:4]), SearchBuffers(*arrays[4:8])
    postings = PostingArrays(
        arrays[8],
        arrays[9],
        arrays[10],
        SegmentArrays(*arrays[11:17]),
        SegmentArrays(*arrays[17:23]),
    )
    context, counts, k = contexts[0], queries.counts, queries.documents.shape[1]
    context.masked, context.count_totals = masked, count_totals
    for query in range(len(counts)):
        if not load_query(context, queries.terms, query, len(counts)):
            counts[query, 0] = -1
            continue
        count = best_keys(context, postings, buffers, words, k)
        counts[query, 0], counts[query, 1] = count, context.total * count_totals
        keys = buffers.keys[0]
        sort_descending(keys, count, buffers.keys[1])
        for i in range(count):
            queries.documents[query, i] = LOW - (keys[i] & LOW)
            queries.scores[query, i] = (keys[i] >> 32) * context.step


@internal
def best_keys(
    context: QueryContext, postings: PostingArrays, buffers: SearchBuffers, words: Words, k: int
) -> int:
    """Collect the keys of the k best documents, unsorted; return how many."""
    filled = int(np.int64(0))
    for margin in (MARGIN, 0):
        terms, context.total = distinct_terms(context, postings), 0
        if terms == 0:
            return 0
        filled, guessed = _collect_keys(context, postings, buffers, words, terms, k, margin)
        if filled >= k or not guessed:
            break
    if filled > k:
        select_largest(buffers.keys[0], filled, k)
        filled = k
    return filled


@internal
def _collect_keys(
    context: QueryContext,
    postings: PostingArrays,
    buffers: SearchBuffers,
    words: Words,
    terms: int,
    k: int,
    margin: int,
) -> tuple[int, bool]:
    """Collect the keys of the k best and some more; return how many, and whether by a guess.

    margin  estimate the threshold from the first block: the score that `margin` times its share of
            the k best reach. If fewer than k are found, it was too high. 0 for no estimate.
    """
    arrays, accumulator = postings.main, buffers.accumulator
    width = 1 << context.block_bits
    # The literal 0 would have another type.
    filled, guessed, context.total = int(np.int64(0)), False, 0
    threshold = 0
    if not context.masked:
        threshold = initial_threshold(context, postings, terms, k + context.deleted)
    threshold_key = (threshold << 32) | LOW  # larger keys pass
    segment, number, last = -1, int(np.int64(0)), 0
    for block in range(context.blocks):
        if number == last:
            segment += 1
            number, last = int(np.int64(0)), context.block_count[segment]
            arrays = segment_arrays(postings, segment)
            seek_segment(context, arrays, buffers, terms, segment, block + segment)
        first = context.base[segment] + number * width
        bound = seek_block(context, arrays, buffers, terms, number, block + segment)
        entries = arrays.entries
        number += 1
        if bound <= threshold:
            if context.count_totals != 0 and bound > 0:
                context.total += count_unscored(context, terms, accumulator, entries, words, first)
                clear_scores(context, terms, accumulator, entries)
            continue
        optional, slack, skipped = optional_terms(context, terms, threshold, k)
        added = add_terms(context, optional, terms, accumulator, entries)
        # Whole vectors; all scores beyond the last document are 0.
        after = min(first + width, context.base[segment] + context.length[segment])
        span = (after - first + LANES - 1) // LANES * LANES
        scores = accumulator[:span]
        is_short, no_candidates = added <= FEW and optional == 0, False
        if len(words) > 0:
            apply_mask(accumulator, words, first, span)
        if optional > 0:
            candidates = count_above(scores, threshold - slack)
            no_candidates = candidates == 0
            if candidates * LOOK_UP > skipped:
                add_terms(context, int(np.int64(0)), optional, accumulator, entries)
                optional, slack = 0, 0
                if len(words) > 0:
                    apply_mask(accumulator, words, first, span)
        if context.count_totals != 0 and not is_short:
            context.total += count_above(scores, int(np.int64(0)))
            context.total += count_unscored(context, optional, accumulator, entries, words, first)
        if no_candidates:
            scores[:] = 0
            continue
        if block == 0 and margin > 0 and optional == 0:
            # If k documents of the block reach it, the k best of all do.
            target = min(max(margin * k * (after - first) // context.documents, SAMPLE), k)
            reached = _guess_threshold(scores, threshold, bound, target)
            if reached > threshold:
                guessed = target < k
                threshold, threshold_key = reached, (reached << 32) | LOW
        if is_short:
            filled, threshold_key = collect_postings(
                context, terms, buffers, entries, first, k, filled, threshold_key
            )
        elif optional == 0:
            filled, threshold_key = collect_block(buffers, first, span, k, filled, threshold_key)
            scores[:] = 0
        else:
            filled, threshold_key = collect_candidates(
                context, optional, slack, buffers, entries, first, span, k, filled, threshold_key
            )
            scores[:] = 0
        threshold = max(threshold, threshold_key >> 32)
    return filled, guessed


@internal
def _guess_threshold(scores: npt.NDArray[np.int32], threshold: int, bound: int, target: int) -> int:
    """Return what `target` documents of the first block reach, in steps, less one."""
    if not has_many_above(scores, threshold, 2 * target + LANES):
        return threshold
    return find_threshold(scores, threshold, bound, target)
