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

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, internal
from klsa_search.kernel.prefetch import prefetch
from klsa_search.search.engine.candidates import clear_features, place_query
from klsa_search.search.engine.impacts import count_without, keys_within, look_up_impacts
from klsa_search.search.engine.memory import float32_at, int32_at, int64_at
from klsa_search.search.engine.record import Record
from klsa_search.search.engine.room import Held, Room, held_in, room_in
from klsa_search.search.engine.scores import Extent, answer, compare, cover, score_all
from klsa_search.search.engine.seeds import (
    LINE,
    Depths,
    add_rows,
    add_seed_features,
    alpha_of,
    factors_of,
    leave_out,
    weigh_seeds,
)
from klsa_search.search.engine.terms import ask, distinct_terms
from klsa_search.search.engine.topk import best_keys
from klsa_search.selection import LOW, select_largest, sort_descending


@compiled
def search_expanded(
    records: npt.NDArray[np.void], directories: npt.NDArray[np.void], plans: npt.NDArray[np.void]
) -> int:
    """Answer the record's queries, each into a row, as `topk.search` does."""
    record, mix, depths = records[0], plans[0], plans[0]
    held, room, k = held_in(directories[0]), room_in(directories[0]), record.k
    ends, counts = int64_at(record.ends, record.queries), int64_at(record.counts, record.queries)
    totals, mask = int64_at(record.totals, record.queries), record.mask
    counted = record.counted
    found = 0
    for query in range(record.queries):
        if not ask(record, query, ends):
            counts[query] = -1
            continue
        if mask != record.living:  # the total is of what is within the mask
            record.mask, record.counted = record.living, 0
        count = best_keys(record, max(mix.best, k))
        if count == 0:
            found = counts[query] = totals[query] = 0
            continue
        best, seeds = min(count, mix.best), min(count, mix.seeds)
        top = _enter(record, held, room, count, best, seeds)
        if mask != record.living:
            record.mask, record.counted = mask, counted
            count = _enter_more(record, room, count, _keys_within(record, depths), top)
        top *= np.float32(record.step)
        terms = distinct_terms(record)
        lanes = look_up_impacts(record, terms, held, room, best)
        angle = place_query(record, terms, held, room)
        weigh_seeds(held, room, mix, lanes, seeds, top)
        size = add_rows(held, room, mix, seeds, count)
        totals[query] = record.total
        if counted != 0:
            totals[query] += count_without(record, terms, room, count, size)
        centre = add_seed_features(held, room, mix, seeds)
        alpha = alpha_of(record, room, mix, terms, lanes)
        factors = factors_of(held, room, mix, seeds, alpha, top, angle, centre)
        extent = Extent(lanes, best, seeds, count, size)
        score_all(held, room, mix, extent, factors)
        if mask != 0:
            leave_out(record, room, size)
        cover(held, room, mix, extent, depths.covered, k, factors)
        chosen = compare(held, room, mix, extent, depths.compared, factors, centre)
        row = 4 * k * query
        documents, scores = int32_at(record.found + row, k), float32_at(record.scores + row, k)
        found = counts[query] = answer(room, size, chosen, k, documents, scores)
        for slot in range(1, size + 1):
            document = np.uint32(room.documents[slot])
            room.slots[document] = 0
            room.among[document >> np.uint32(5)] = 0
        for i in range(seeds):
            if room.weights[i] > 0:
                clear_features(int(room.documents[i + 1]), held, room)
    return found


@internal
def _enter(record: Record, held: Held, room: Room, count: int, best: int, seeds: int) -> np.float32:
    """Give the documents of the query kernel their slots, seeds in order, then the other best.

    Returns the score of the first, in steps.
    """
    keys = int64_at(record.keys, count)
    if count > best:
        select_largest(keys, count, best)
    if best > seeds:
        select_largest(keys, best, seeds)
    sort_descending(keys, seeds, room.spare)
    for i in range(seeds):
        document = LOW - (keys[i] & LOW)
        prefetch(held.feature_starts, document)
        for line in range(0, held.rows.shape[1], LINE):
            prefetch(held.rows, document * held.rows.shape[1] + line)
    top = np.float32(keys[0] >> 32)
    for i in range(count):
        document = LOW - (keys[i] & LOW)
        prefetch(held.cards, document * held.cards.shape[1])
        room.documents[i + 1] = document
        room.slots[document] = i + 1
        room.lexical[i + 1] = np.float32(keys[i] >> 32) / top
        room.expanded[i + 1] = 0
        room.covered[i + 1] = 0
        if i < best:
            room.rest[i + 1] = np.int32(keys[i] >> 32)
            room.among[document >> 5] |= np.uint32(1) << np.uint32(document & 31)
    return top


@internal
def _keys_within(record: Record, depths: Depths) -> int:
    """Gather the keys of the best within the record's mask, as `best_keys` does."""
    if depths.looked_up:
        held = keys_within(record, distinct_terms(record), depths.within)
        if held >= 0:
            record.total = held
            return held
    return best_keys(record, depths.within)


@internal
def _enter_more(record: Record, room: Room, count: int, more: int, top: np.float32) -> int:
    """Give the best within the mask their slots too; returns the last."""
    keys = int64_at(record.keys, more)
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
