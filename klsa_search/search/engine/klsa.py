"""The k best documents of a query by the default ranking.

    1. Find the best documents of the query kernel, exactly; the first z are the seeds. With a mask,
       also find the best within it: seeds do not depend on the mask, so it changes no score.
       Deleted documents are excluded from both;
    2. look up the impacts of the query's terms in the best; weigh the seeds by their T; compute
       α(q) from the share of the query that the first document contains;
    3. add up the rows of the seeds: E as far as it is in strong entries. The documents of these
       rows are candidates too;
    4. estimate the score of every candidate: E from the rows, L, X, and T without neighbours;
    5. for the best of them that are not far below the k-th, compute T from the neighbours; then,
       for the best of these, E from the features of the seeds.

Matches are documents that contain a term of the query or are in a row of a seed. They depend
neither on k nor on the mask, and the total counts them. If a mask has few documents, each is looked
up and its T computed exactly.

Seeds, their weights, the lengths of the parts, and the scores that step 5 computes are exact to the
8 bits of entries and features, except that seeds of negligible weight are ignored. A document is
missed if it is no candidate, or if step 4 strongly underestimates it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, internal
from klsa_search.core.selection import LOW, Keys, select_largest, sort_descending
from klsa_search.search.engine.bm25 import best_keys, count_without, look_up_impacts, look_up_keys
from klsa_search.search.engine.candidates import (
    clear_features,
    expansion_score,
    latent_score,
    load_elsewhere,
    project_query,
    release_elsewhere,
    score_coverage,
)
from klsa_search.search.engine.scores import (
    SlotRanges,
    rescore_coverage,
    rescore_expansion,
    score_all,
    write_results,
)
from klsa_search.search.engine.seeds import (
    RerankDepths,
    add_rows,
    add_seed_features,
    clip,
    exclude_masked,
    matched_share,
    part_factors,
    query_alpha,
    weigh_seeds,
)
from klsa_search.search.engine.terms import distinct_terms, load_query
from klsa_search.search.engine.workspace import (
    IndexArrays,
    PostingArrays,
    Queries,
    QueryContext,
    SearchBuffers,
    SegmentArrays,
    Workspace,
)

Words = npt.NDArray[np.uint64]


@compiled
def search_expanded(
    contexts: npt.NDArray[np.void],
    words: Words,
    masked: bool,
    count_totals: bool,
    parameters: npt.NDArray[np.void],
    *arrays: Any,
) -> None:
    """Search a batch of queries by the default ranking: see `bm25.search`.

    arrays  of `Queries`, `SearchBuffers`, `PostingArrays`, `IndexArrays` and `Workspace`
    """
    queries, buffers = Queries(*arrays[:4]), SearchBuffers(*arrays[4:8])
    postings = PostingArrays(
        arrays[8],
        arrays[9],
        arrays[10],
        SegmentArrays(*arrays[11:17]),
        SegmentArrays(*arrays[17:23]),
    )
    index, workspace = IndexArrays(*arrays[23:38]), Workspace(*arrays[38:])
    context, params, depths = contexts[0], parameters[0], parameters[0]
    counts, k = queries.counts, queries.documents.shape[1]
    for query in range(len(counts)):
        if not load_query(context, queries.terms, query, len(counts)):
            counts[query, 0] = -1
            continue
        context.masked = False
        context.count_totals = count_totals and not masked  # totals are of documents in the mask
        count = best_keys(context, postings, buffers, postings.live, max(params.best, k))
        if count == 0:
            counts[query, 0] = counts[query, 1] = 0
            continue
        best, seeds = min(count, params.best), min(count, params.seeds)
        top = _assign_slots(buffers.keys[0], workspace, count, best, seeds, int(np.int64(0)))
        if masked:
            context.masked, context.count_totals = True, count_totals
            extra = _filtered_keys(context, postings, buffers, words, depths)
            count = _assign_filtered_slots(buffers.keys[0], workspace, count, extra, top)
        top *= np.float32(context.step)
        terms = distinct_terms(context, postings)
        stride = look_up_impacts(context, postings, buffers, terms, index, workspace, best)
        angle = project_query(context, terms, index, workspace)
        weigh_seeds(index, workspace, params, stride, seeds, top)
        size = add_rows(index, workspace, params, seeds, count)
        counts[query, 1] = context.total * count_totals
        if count_totals:
            counts[query, 1] += count_without(
                context, postings, buffers, words, terms, workspace, count, size
            )
        centre = add_seed_features(index, workspace, params, seeds)
        alpha = query_alpha(context, workspace, params, terms, stride)
        factors = part_factors(index, workspace, params, seeds, alpha, top, angle, centre)
        ranges = SlotRanges(stride, best, seeds, count, size)
        score_all(index, workspace, params, ranges, factors)
        if len(words) > 0:
            exclude_masked(words, workspace, size)
        rescore_coverage(index, workspace, params, ranges, depths.coverage_depth, k, factors)
        chosen = rescore_expansion(
            index, workspace, params, ranges, depths.expansion_depth, factors, centre
        )
        documents, scores = queries.documents[query], queries.scores[query]
        counts[query, 0] = write_results(workspace, size, chosen, k, documents, scores)
        _release_slots(workspace, size)
        for i in range(seeds):
            if workspace.weights[i] > 0:
                clear_features(int(workspace.documents[i + 1]), index, workspace)


@compiled
def find_seeds(
    contexts: npt.NDArray[np.void],
    parameters: npt.NDArray[np.void],
    steps: npt.NDArray[np.int64],
    latent: npt.NDArray[np.int32],
    facts: npt.NDArray[np.float64],
    numbers: npt.NDArray[np.int64],
    impacts: npt.NDArray[np.float32],
    *arrays: Any,
) -> None:
    """Write the best documents of a query in one partition, of which the first may be seeds.

    steps    (b,) k_q of the best in steps; documents are in the results
    latent   (z,) L of the seeds, in steps
    facts    (2,) share of the query in the first document, one step of a cosine
    numbers  (n,) distinct terms of the query, the columns of `impacts`, (b, n)
    arrays   as of `search_expanded`, of one query
    """
    queries, buffers = Queries(*arrays[:4]), SearchBuffers(*arrays[4:8])
    postings = PostingArrays(
        arrays[8],
        arrays[9],
        arrays[10],
        SegmentArrays(*arrays[11:17]),
        SegmentArrays(*arrays[17:23]),
    )
    index, workspace = IndexArrays(*arrays[23:38]), Workspace(*arrays[38:])
    context, params = contexts[0], parameters[0]
    counts = queries.counts
    if not load_query(context, queries.terms, int(np.int64(0)), len(counts)):
        counts[0, 0] = -1
        return
    context.masked = context.count_totals = False
    count = best_keys(context, postings, buffers, postings.live, params.best)
    counts[0, 0] = count
    if count == 0:
        return
    keys = buffers.keys[0]
    _assign_slots(keys, workspace, count, count, count, int(np.int64(0)))
    terms = distinct_terms(context, postings)
    stride = look_up_impacts(context, postings, buffers, terms, index, workspace, count)
    facts[1] = project_query(context, terms, index, workspace)
    facts[0] = matched_share(context, workspace, terms, stride)
    for i in range(count):
        queries.documents[0, i], steps[i] = workspace.documents[i + 1], keys[i] >> 32
    for column in range(len(numbers)):
        for j in range(terms):
            if context.term[j] == numbers[column]:
                for i in range(count):
                    impacts[i, column] = workspace.impacts[(i + 1) * stride + j]
    for i in range(min(count, params.seeds)):
        document = int(workspace.documents[i + 1])
        latent[i] = latent_score(index.document_vectors, document, workspace.query_vector)
    _release_slots(workspace, count)


@compiled
def search_shared(
    contexts: npt.NDArray[np.void],
    words: Words,
    masked: bool,
    count_totals: bool,
    parameters: npt.NDArray[np.void],
    shared: npt.NDArray[np.void],
    features: npt.NDArray[np.int64],
    sums: npt.NDArray[np.int16],
    near: npt.NDArray[np.int32],
    estimates: npt.NDArray[np.float32],
    numbers: npt.NDArray[np.int64],
    elsewhere: npt.NDArray[np.uint32],
    impacts: npt.NDArray[np.float32],
    *arrays: Any,
) -> None:
    """Search one partition by the seeds of all: see `search_expanded`.

    shared            of type `SHARED`
    features, sums    the sum of each feature of the seeds, in steps
    near, estimates   documents in the rows of the seeds, and E of each by these rows
    numbers           (n,) distinct terms of the query
    elsewhere         (m,) ordinals of the best documents of other partitions, ascending
    impacts           (m, n) of the terms in these
    """
    queries, buffers = Queries(*arrays[:4]), SearchBuffers(*arrays[4:8])
    postings = PostingArrays(
        arrays[8],
        arrays[9],
        arrays[10],
        SegmentArrays(*arrays[11:17]),
        SegmentArrays(*arrays[17:23]),
    )
    index, workspace = IndexArrays(*arrays[23:38]), Workspace(*arrays[38:])
    context, params, depths, given = contexts[0], parameters[0], parameters[0], shared[0]
    counts, k = queries.counts, queries.documents.shape[1]
    if not load_query(context, queries.terms, int(np.int64(0)), len(counts)):
        counts[0, 0] = -1
        return
    context.masked = False
    context.count_totals = count_totals and not masked
    count = best_keys(context, postings, buffers, postings.live, max(params.best, k))
    best, seeds = min(count, given.best), min(count, given.seeds)
    top = _assign_slots(buffers.keys[0], workspace, count, best, seeds, given.first)
    if masked:
        context.masked, context.count_totals = True, count_totals
        extra = _filtered_keys(context, postings, buffers, words, depths)
        count = _assign_filtered_slots(buffers.keys[0], workspace, count, extra, top)
    terms = distinct_terms(context, postings)
    stride = look_up_impacts(context, postings, buffers, terms, index, workspace, best)
    load_elsewhere(context, terms, stride, best, numbers, elsewhere, impacts, workspace)
    project_query(context, terms, index, workspace)
    if params.coverage > 0:
        chosen, neighbours = workspace.chosen, len(workspace.near) - 1
        for i in range(seeds):
            chosen[i] = i + 1
        of_seeds = workspace.covered[1:]
        score_coverage(index, workspace, stride, best, chosen, seeds, neighbours, of_seeds)
    size = _add_near(near, estimates, workspace, count)
    for i in range(len(features)):
        workspace.sums[features[i]] = sums[i]
    centre = given.scale, given.mean, given.mean_square, given.step
    counts[0, 1] = context.total * count_totals
    if count_totals:
        counts[0, 1] += count_without(
            context, postings, buffers, words, terms, workspace, count, size
        )
    for slot in range(1, seeds + 1):
        exact = expansion_score(int(workspace.documents[slot]), index, workspace, centre)
        workspace.expanded[slot] = clip(exact, params)
    factors = given.expansion, given.coverage, given.latent, given.lexical
    ranges = SlotRanges(stride, best, seeds, count, size)
    score_all(index, workspace, params, ranges, factors)
    if len(words) > 0:
        exclude_masked(words, workspace, size)
    rescore_coverage(index, workspace, params, ranges, depths.coverage_depth, k, factors)
    chosen_count = rescore_expansion(
        index, workspace, params, ranges, depths.expansion_depth, factors, centre
    )
    counts[0, 0] = write_results(
        workspace, size, chosen_count, k, queries.documents[0], queries.scores[0]
    )
    _release_slots(workspace, size)
    release_elsewhere(elsewhere, workspace)
    for i in range(len(features)):
        workspace.sums[features[i]] = 0


@internal
def _add_near(
    near: npt.NDArray[np.int32],
    estimates: npt.NDArray[np.float32],
    workspace: Workspace,
    size: int,
) -> int:
    """Add candidates with estimates of their E; return the last slot."""
    documents, slots, expanded = workspace.documents, workspace.slots, workspace.expanded
    for i in range(len(near)):
        document = near[i]
        slot = slots[document]
        if slot == 0:
            size += 1
            slot = size
            slots[document], documents[slot] = slot, document
        expanded[slot] = estimates[i]
    return size


@internal
def _release_slots(workspace: Workspace, size: int) -> None:
    """Clear the slots of all candidates."""
    documents, slots, is_best = workspace.documents, workspace.slots, workspace.is_best
    for slot in range(1, size + 1):
        document = np.uint32(documents[slot])
        slots[document] = 0
        is_best[document >> np.uint32(5)] = 0


@internal
def _assign_slots(
    keys: Keys, workspace: Workspace, count: int, best: int, seeds: int, first: int
) -> np.float32:
    """Assign slots to the documents found: seeds in order, then the other best, then all others.

    first  score in steps that scores are divided by; 0 for that of the first document
    Returns it.
    """
    if count > best > 0:
        select_largest(keys, count, best)
    if best > seeds > 0:
        select_largest(keys, best, seeds)
    sort_descending(keys, seeds, workspace.sort_buffer)
    documents, slots, lexical = workspace.documents, workspace.slots, workspace.lexical
    remaining, is_best = workspace.remaining, workspace.is_best
    top = np.float32(first if first > 0 else keys[0] >> 32)
    for i in range(count):
        document = LOW - (keys[i] & LOW)
        documents[i + 1] = document
        slots[document] = i + 1
        lexical[i + 1] = np.float32(keys[i] >> 32) / top
        if i < best:
            remaining[i + 1] = np.int32(keys[i] >> 32)
            is_best[document >> 5] |= np.uint32(1) << np.uint32(document & 31)
    workspace.expanded[1 : count + 1] = 0
    workspace.covered[1 : count + 1] = 0
    return top


@internal
def _filtered_keys(
    context: QueryContext,
    postings: PostingArrays,
    buffers: SearchBuffers,
    words: Words,
    depths: RerankDepths,
) -> int:
    """Collect the keys of the best documents within a mask; return how many."""
    if depths.look_up_all:
        terms = distinct_terms(context, postings)
        count = look_up_keys(context, postings, buffers, words, terms, depths.filtered)
        if count >= 0:
            context.total = count
            return count
    return best_keys(context, postings, buffers, words, depths.filtered)


@internal
def _assign_filtered_slots(
    keys: Keys, workspace: Workspace, count: int, extra: int, top: np.float32
) -> int:
    """Assign slots to the best documents within the mask; return the last slot."""
    for i in range(extra):
        document = LOW - (keys[i] & LOW)
        if workspace.slots[document] == 0:
            count += 1
            workspace.documents[count] = document
            workspace.slots[document] = count
            workspace.lexical[count] = np.float32(keys[i] >> 32) / top
            workspace.expanded[count] = 0
            workspace.covered[count] = 0
    return count
