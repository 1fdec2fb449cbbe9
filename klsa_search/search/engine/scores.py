"""Scores of candidates: a first estimate for all, exact parts for the best, then the results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import internal
from klsa_search.core.selection import LOW, select_largest, sort_descending
from klsa_search.search.engine.candidates import (
    BATCH,
    expansion_score,
    latent_score,
    read_features,
    read_vectors,
    score_coverage,
)
from klsa_search.search.engine.scan import LANES, count_above, find_threshold, indices_above
from klsa_search.search.engine.seeds import KlsaParams, clip, power
from klsa_search.search.engine.workspace import IndexArrays, Workspace

EXCLUDED = -np.float32(np.finfo(np.float32).max)  # excluded candidates score less
MIN_SCORE = np.float32(np.finfo(np.float32).tiny)  # of a result
PROMISING = 0.5  # share of the k-th estimate below which T is not computed exactly


class SlotRanges(NamedTuple):
    """Last slots of the seeds, the best, the matches of the query kernel, and all candidates."""

    stride: int  # of `impacts`
    best: int
    seeds: int
    matched: int
    size: int


@internal
def score_all(
    index: IndexArrays, workspace: Workspace, params: KlsaParams, ranges: SlotRanges, factors: Any
) -> None:
    """Estimate the scores of all candidates; those of the seeds are exact."""
    e, t, a, x = factors
    scores, documents, expanded = workspace.scores, workspace.documents, workspace.expanded
    covered, lexical, chosen = workspace.covered, workspace.lexical, workspace.chosen
    for slot in range(1, ranges.size + 1):
        scores[slot] = e * expanded[slot]
    if params.coverage > 0:
        others = ranges.best - ranges.seeds
        for i in range(others):
            chosen[i] = ranges.seeds + 1 + i
        none, own = int(np.int64(0)), covered[ranges.seeds + 1 :]
        score_coverage(index, workspace, ranges.stride, ranges.best, chosen, others, none, own)
        for slot in range(1, ranges.best + 1):
            scores[slot] += t * covered[slot]
    for slot in range(1, ranges.matched + 1):
        scores[slot] += x * power(lexical[slot], params.lexical_sharpness)
    if params.latent > 0:
        vectors, query_vector = index.document_vectors, workspace.query_vector
        for begin in range(1, ranges.size + 1, BATCH):
            end = min(begin + BATCH, ranges.size + 1)
            workspace.near[0] = read_vectors(vectors, documents, begin, end)
            for slot in range(begin, end):
                steps = latent_score(vectors, int(documents[slot]), query_vector)
                scores[slot] += a * clip(np.float32(steps), params)


@internal
def rescore_coverage(
    index: IndexArrays,
    workspace: Workspace,
    params: KlsaParams,
    ranges: SlotRanges,
    depth: int,
    k: int,
    factors: Any,
) -> None:
    """Compute T of the best candidates from their neighbours; that of the seeds is exact already.

    Skips candidates that score far below the k-th (`PROMISING`): half of all, of which hardly any
    gets among the k best.
    """
    if params.coverage == 0:
        return
    t = factors[1]
    scores, chosen = workspace.scores, workspace.chosen
    covered, exact = workspace.covered, workspace.exact
    least = EXCLUDED
    if depth < ranges.size:
        lowest = _lowest_score(workspace, select_slots(workspace, ranges.size, k))
        least = max(least, np.float32(PROMISING) * lowest)
    count = _drop_below(workspace, select_slots(workspace, ranges.size, depth), least)
    remaining = int(np.int64(0))
    for i in range(count):
        slot = chosen[i]
        chosen[remaining] = slot
        remaining += slot > ranges.seeds
    stride, best, neighbours = ranges.stride, ranges.best, len(workspace.near) - 1
    score_coverage(index, workspace, stride, best, chosen, remaining, neighbours, exact)
    for i in range(remaining):
        slot = chosen[i]
        estimate = covered[slot] if slot <= best else np.float32(0)
        scores[slot] += t * (exact[i] - estimate)


@internal
def _lowest_score(workspace: Workspace, count: int) -> np.float32:
    """Return the lowest score of the chosen slots."""
    scores, chosen = workspace.scores, workspace.chosen
    least = np.float32(np.inf)
    for i in range(count):
        least = min(least, scores[chosen[i]])
    return least


@internal
def _drop_below(workspace: Workspace, count: int, least: np.float32) -> int:
    """Keep the chosen slots that score at least `least`; return how many."""
    scores, chosen = workspace.scores, workspace.chosen
    kept = 0
    for i in range(count):
        slot = chosen[i]
        chosen[kept] = slot
        kept += scores[slot] >= least
    return kept


@internal
def rescore_expansion(
    index: IndexArrays,
    workspace: Workspace,
    params: KlsaParams,
    ranges: SlotRanges,
    depth: int,
    factors: Any,
    centre: Any,
) -> int:
    """Compute E of the best candidates from the features; that of the seeds is exact already.

    Returns how many were chosen, without excluded ones.
    """
    e = factors[0]
    documents, chosen = workspace.documents, workspace.chosen
    scores, expanded = workspace.scores, workspace.expanded
    count = _drop_below(workspace, select_slots(workspace, ranges.size, depth), EXCLUDED)
    for begin in range(0, count, BATCH):
        end = min(begin + BATCH, count)
        workspace.near[0] = read_features(index, documents, chosen, begin, end)
        for i in range(begin, end):
            slot = chosen[i]
            if slot > ranges.seeds:
                exact = clip(
                    expansion_score(int(documents[slot]), index, workspace, centre), params
                )
                scores[slot] += e * (exact - expanded[slot])
    return count


@internal
def select_slots(workspace: Workspace, size: int, target: int) -> int:
    """Select the slots of the `target` highest scores, or of slightly more; return how many.

    All if fewer are above 0. Equal scores are selected together or not at all.
    """
    scores, bits, chosen = workspace.scores, workspace.bits, workspace.chosen
    count = 0
    if size <= target:
        for slot in range(1, size + 1):
            chosen[count] = slot
            count += 1
        return count
    span = (size + LANES - 1) // LANES * LANES
    scores[size + 1 : span + 1] = -np.inf
    highest = np.int32(0)
    for slot in range(1, size + 1):  # positive floats have the order of their bits
        highest = max(highest, bits[slot])
    part, threshold = bits[1 : span + 1], int(np.int64(0))
    if count_above(part, threshold) < target:
        for slot in range(1, size + 1):
            chosen[slot - 1] = slot
        return size
    threshold = find_threshold(part, threshold, int(np.int64(highest)), target)
    count = indices_above(part, threshold, chosen)
    for i in range(count):
        chosen[i] += 1
    return count


@internal
def write_results(
    workspace: Workspace,
    size: int,
    chosen: int,
    k: int,
    documents: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
) -> int:
    """Write the k best of the chosen slots, or of all if those do not suffice; return how many.

    Scores of results are at least `MIN_SCORE`.
    """
    if chosen < min(k, size):
        chosen = select_slots(workspace, size, k)
    slots, keys, bits, all_ = workspace.chosen, workspace.keys, workspace.bits, workspace.scores
    matched = int(np.int64(0))
    for i in range(chosen):
        slot = slots[i]
        if all_[slot] >= EXCLUDED:
            all_[slot] = max(all_[slot], MIN_SCORE)
            document = np.int64(workspace.documents[slot])
            keys[matched] = (np.int64(bits[slot]) << 32) | (LOW - document)
            matched += 1
    if matched > k:
        select_largest(keys, matched, k)
        matched = k
    sort_descending(keys, matched, workspace.sort_buffer)
    slot_of = workspace.slots
    for i in range(matched):
        document = LOW - (keys[i] & LOW)
        documents[i] = document
        scores[i] = all_[slot_of[document]]
    return matched
