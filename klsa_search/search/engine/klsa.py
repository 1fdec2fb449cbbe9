"""The k best documents of a query by the default ranking, where D is kept cut.

    1. the best of the query kernel are found, exactly; the first z are the seeds; where a mask
       leaves documents out, the best within it are found besides: what a document is worth does
       not depend on which others may be answered. What counts no more is none of either;
    2. what the best hold of the query's terms is looked up; T of the seeds makes their weights;
       how much of the query the first holds decides how much the expansion counts;
    3. the rows of the seeds are added up: E, as far as it lies in strong entries; the documents
       they bring up are candidates beside the best;
    4. every candidate gets a first score: E from the rows, L, X, and T by what it holds itself;
    5. for the first of them, where they are not far behind the k-th, T is computed from what is
       near, and then, for the first by that, E from the features of the seeds.

Found are the documents that contain a term of the query and those that the rows of the seeds bring
up: which they are depends neither on k nor on the mask, and the total counts them. Of few documents
in a mask what each holds of the query is looked up, and T of each is computed in full.

Exact are the seeds, their weights, the lengths the parts are divided by, and the scores of what
step 5 looks at, to the 8 bits that entries and features are kept in; but seeds that weigh next to
nothing beside the first are passed over. A document is missed if it is no candidate, or if step 4
thinks far too little of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, internal
from klsa_search.core.selection import LOW, Keys, select_largest, sort_descending
from klsa_search.search.engine.bm25 import best_keys, count_without, keys_within, look_up_impacts
from klsa_search.search.engine.candidates import clear_features, place_query
from klsa_search.search.engine.scores import Extent, answer, compare, cover_first, score_all
from klsa_search.search.engine.seeds import (
    RerankDepths,
    add_rows,
    add_seed_features,
    alpha_of,
    factors_of,
    leave_out,
    weigh_seeds,
)
from klsa_search.search.engine.terms import ask, distinct_terms
from klsa_search.search.engine.workspace import (
    IndexArrays,
    Memory,
    Queries,
    Record,
    SegmentArrays,
    Stored,
    Workspace,
)

Words = npt.NDArray[np.uint64]


@compiled
def search_expanded(
    records: npt.NDArray[np.void],
    words: Words,
    masked: bool,
    counted: bool,
    plans: npt.NDArray[np.void],
    *arrays: Any,
) -> None:
    """Answer queries, each into a row, as `topk.search` does.

    arrays  those of `Queries`, `Memory`, `Stored`, `Held` and `Room`
    """
    queries, memory = Queries(*arrays[:4]), Memory(*arrays[4:8])
    stored = Stored(
        arrays[8],
        arrays[9],
        arrays[10],
        SegmentArrays(*arrays[11:17]),
        SegmentArrays(*arrays[17:23]),
    )
    held, room = IndexArrays(*arrays[23:36]), Workspace(*arrays[36:])
    record, mix, depths = records[0], plans[0], plans[0]
    counts, k = queries.counts, queries.documents.shape[1]
    for query in range(len(counts)):
        if not ask(record, queries.asked, query, len(counts)):
            counts[query, 0] = -1
            continue
        record.masked = False
        record.counted = counted and not masked  # the total is of what is within the mask
        count = best_keys(record, stored, memory, stored.living, max(mix.best, k))
        if count == 0:
            counts[query, 0] = counts[query, 1] = 0
            continue
        best, seeds = min(count, mix.best), min(count, mix.seeds)
        top = _enter(memory.keys[0], room, count, best, seeds)
        if masked:
            record.masked, record.counted = True, counted
            more = _keys_within(record, stored, memory, words, depths)
            count = _enter_more(memory.keys[0], room, count, more, top)
        top *= np.float32(record.step)
        terms = distinct_terms(record, stored)
        lanes = look_up_impacts(record, stored, memory, terms, held, room, best)
        angle = place_query(record, terms, held, room)
        weigh_seeds(held, room, mix, lanes, seeds, top)
        size = add_rows(held, room, mix, seeds, count)
        counts[query, 1] = record.total * counted
        if counted:
            counts[query, 1] += count_without(
                record, stored, memory, words, terms, room, count, size
            )
        centre = add_seed_features(held, room, mix, seeds)
        alpha = alpha_of(record, room, mix, terms, lanes)
        factors = factors_of(held, room, mix, seeds, alpha, top, angle, centre)
        extent = Extent(lanes, best, seeds, count, size)
        score_all(held, room, mix, extent, factors)
        if len(words) > 0:
            leave_out(words, room, size)
        cover_first(held, room, mix, extent, depths.covered, k, factors)
        chosen = compare(held, room, mix, extent, depths.compared, factors, centre)
        documents, scores = queries.documents[query], queries.scores[query]
        counts[query, 0] = answer(room, size, chosen, k, documents, scores)
        _leave(room, size)
        for i in range(seeds):
            if room.weights[i] > 0:
                clear_features(int(room.documents[i + 1]), held, room)


@internal
def _leave(room: Workspace, size: int) -> None:
    """Take the slots back."""
    documents, slots, among = room.documents, room.slots, room.among
    for slot in range(1, size + 1):
        document = np.uint32(documents[slot])
        slots[document] = 0
        among[document >> np.uint32(5)] = 0


@internal
def _enter(keys: Keys, room: Workspace, count: int, best: int, seeds: int) -> np.float32:
    """Give the documents of the query kernel their slots, seeds in order, then the other best.

    Returns the score of the first, in steps.
    """
    if count > best:
        select_largest(keys, count, best)
    if best > seeds:
        select_largest(keys, best, seeds)
    sort_descending(keys, seeds, room.spare)
    documents, slots, lexical, rest = room.documents, room.slots, room.lexical, room.rest
    among = room.among
    top = np.float32(keys[0] >> 32)
    for i in range(count):
        document = LOW - (keys[i] & LOW)
        documents[i + 1] = document
        slots[document] = i + 1
        lexical[i + 1] = np.float32(keys[i] >> 32) / top
        if i < best:
            rest[i + 1] = np.int32(keys[i] >> 32)
            among[document >> 5] |= np.uint32(1) << np.uint32(document & 31)
    room.expanded[1 : count + 1] = 0
    room.covered[1 : count + 1] = 0
    return top


@internal
def _keys_within(
    record: Record, stored: Stored, memory: Memory, words: Words, depths: RerankDepths
) -> int:
    """Gather the keys of the best within a mask, as `best_keys` does."""
    if depths.looked_up:
        terms = distinct_terms(record, stored)
        held = keys_within(record, stored, memory, words, terms, depths.within)
        if held >= 0:
            record.total = held
            return held
    return best_keys(record, stored, memory, words, depths.within)


@internal
def _enter_more(keys: Keys, room: Workspace, count: int, more: int, top: np.float32) -> int:
    """Give the best within the mask their slots too; returns the last."""
    for i in range(more):
        document = LOW - (keys[i] & LOW)
        if room.slots[document] == 0:
            count += 1
            room.documents[count] = document
            room.slots[document] = count
            room.lexical[count] = np.float32(keys[i] >> 32) / top
            room.expanded[count] = 0
            room.covered[count] = 0
    return count
