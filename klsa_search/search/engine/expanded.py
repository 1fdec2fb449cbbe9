"""The k best documents of a query by the default ranking, where D is kept cut.

    1. the best of the query kernel are found, exactly; the first z are the seeds;
    2. what the best hold of the query's terms is looked up; T of the seeds makes their weights;
    3. the rows of the seeds are added up: E, as far as it lies in strong entries; the documents
       they bring up are candidates beside the best;
    4. every candidate gets a first score: E from the rows, L, X, and T by what it holds itself;
    5. for the first of them E is computed from the features of the seeds and T from what is near.

Exact are the seeds, their weights, the lengths the parts are divided by, and the scores of what
step 5 looks at, to the 8 bits that entries and features are kept in. A document is missed if it
is no candidate, or if step 4 thinks far too little of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, inlined
from klsa_search.kernel.prefetch import prefetch
from klsa_search.search.engine import state as s
from klsa_search.search.engine.candidates import (
    clear_features,
    compared,
    cosine,
    cover_alone,
    covered,
    look_up_impacts,
    place_query,
)
from klsa_search.search.engine.memory import int64_at
from klsa_search.search.engine.room import Held, Room, borrowed_held, borrowed_room
from klsa_search.search.engine.seeds import (
    Mix,
    add_rows,
    add_seed_features,
    factors_of,
    power,
    weigh_seeds,
)
from klsa_search.search.engine.terms import State, distinct_terms, table_of
from klsa_search.search.engine.topk import best_keys
from klsa_search.selection import LOW, select_largest, sort_descending

AHEAD = 6  # candidates for which memory is asked for in advance
LINE = 16  # entries of a cache line


@compiled
def search_expanded(
    state: State,
    owned: Held,
    own: Room,
    mix: Mix,
    k: int,
    documents: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
) -> int:
    """Answer the state's query into `documents` and `scores`, best first; returns how many.

    -1 if the terms could add up to more than float32 holds exactly.
    """
    held, room = borrowed_held(owned), borrowed_room(own)
    count = best_keys(state, max(mix.best, k))
    if count <= 0:
        return count
    table = table_of(state)
    terms = distinct_terms(state, table)
    best, seeds = min(count, mix.best), min(count, mix.seeds)
    top = _enter(state, room, count, best, seeds)
    look_up_impacts(table, terms, held, room, best)
    angle = place_query(table, terms, held, room)
    weights = weigh_seeds(held, room, mix, terms, best, seeds, top)
    size = add_rows(held, room, mix, seeds, count, weights)
    centre = add_seed_features(held, room, mix, seeds, weights)
    factors = factors_of(held, room, mix, seeds, top, angle, centre)
    _score(held, room, mix, terms, best, count, size, factors)
    refined = min(size, mix.refined)
    _refine(held, room, mix, terms, best, size, refined, factors, centre)
    found = _answer(room, size, refined, k, documents, scores)
    for slot in range(1, size + 1):
        room.slots[np.uint32(room.documents[slot])] = 0
    for i in range(seeds):
        if weights[i] > 0:
            clear_features(int(room.documents[i + 1]), held, room)
    return found


@compiled
def search_expanded_many(
    state: State,
    held: Held,
    room: Room,
    mix: Mix,
    terms: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    documents: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
    counts: npt.NDArray[np.int64],
) -> None:
    """Answer query after query, each into a row, as `topk.search_many` does."""
    first = 0
    for query in range(len(ends)):
        asked = ends[query] - first
        found = -1
        if asked <= s.MAX_TERMS:
            state[s.COUNT] = asked
            for i in range(asked):
                state[s.QUERY + i] = terms[first + i]
            found = search_expanded(
                state, held, room, mix, documents.shape[1], documents[query], scores[query]
            )
        counts[query] = found
        first = ends[query]


@compiled
def _enter(state: State, room: Room, count: int, best: int, seeds: int) -> np.float32:
    """Give the documents of the query kernel their slots, seeds in order, then the other best.

    Returns the score of the first.
    """
    keys = int64_at(state[s.KEYS], count)
    if count > best:
        select_largest(keys, count, best)
    if best > seeds:
        select_largest(keys, best, seeds)
    sort_descending(keys, seeds, room.spare)
    top = np.float32(keys[0] >> 32)
    for i in range(count):
        document = LOW - (keys[i] & LOW)
        room.documents[i + 1] = document
        room.slots[document] = i + 1
        room.lexical[i + 1] = np.float32(keys[i] >> 32) / top
        room.expanded[i + 1] = 0
    return top / np.float32(state[s.GRID])


@compiled
def _score(
    held: Held, room: Room, mix: Mix, terms: int, best: int, count: int, size: int, factors: Any
) -> None:
    """Give every candidate its first score."""
    e, t, a, x = factors
    scores, expanded, documents = room.scores, room.expanded, room.documents
    for slot in range(1, size + 1):
        scores[slot] = e * expanded[slot]
    if mix.coverage > 0:
        alone = room.alone
        cover_alone(terms, best, room.impacts, room, alone)
        for slot in range(1, best + 1):
            scores[slot] += t * alone[slot]
    lexical = room.lexical
    for slot in range(1, count + 1):
        scores[slot] += x * power(lexical[slot], mix.lexical_sharpness)
    if mix.latent > 0:
        cards, place = held.cards, room.place
        for slot in range(1, size + 1):
            prefetch(cards, documents[min(slot + AHEAD, size)] * cards.shape[1])
            steps = cosine(cards[documents[slot]], place)
            scores[slot] += a * _cut(np.float32(steps), mix)


@compiled
def _refine(
    held: Held,
    room: Room,
    mix: Mix,
    terms: int,
    best: int,
    size: int,
    refined: int,
    factors: Any,
    centre: Any,
) -> None:
    """Put E and T in their exact place for the first candidates, whose keys stand in front."""
    e, t, _, _ = factors
    keys, bits, scores, documents = room.keys, room.bits, room.scores, room.documents
    for slot in range(1, size + 1):
        keys[slot - 1] = (sortable(bits[slot]) << 32) | slot
    if size > refined:
        select_largest(keys, size, refined)
    starts, features, rows = held.feature_starts, held.features, held.rows
    for i in range(refined):
        if i + 2 * AHEAD < refined:
            later = documents[keys[i + 2 * AHEAD] & LOW]
            prefetch(starts, later)
            prefetch(rows, later * rows.shape[1])
            prefetch(rows, later * rows.shape[1] + LINE)
        if i + AHEAD < refined:
            first = starts[documents[keys[i + AHEAD] & LOW]]
            for line in range(AHEAD):
                prefetch(features, first + line * LINE)
        slot = keys[i] & LOW
        document = int(documents[slot])
        exact = compared(document, held, room, centre)
        scores[slot] += e * (_cut(exact, mix) - room.expanded[slot])
        if mix.coverage > 0:
            own = slot if slot <= best else 0
            exact = covered(rows[document], own, terms, best + 1, room.slots, room)
            scores[slot] += t * (exact - (room.alone[slot] if slot <= best else np.float32(0)))


@compiled
def _answer(
    room: Room,
    size: int,
    refined: int,
    k: int,
    documents: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
) -> int:
    """Write down the k best with a score above 0; of refined candidates alone, if they suffice."""
    considered = refined if k <= refined else size
    found = 0
    for i in range(considered):
        slot = room.keys[i] & LOW
        if room.scores[slot] > 0:
            room.keys[found] = (np.int64(room.bits[slot]) << 32) | (
                LOW - np.int64(room.documents[slot])
            )
            found += 1
    if found > k:
        select_largest(room.keys, found, k)
        found = k
    sort_descending(room.keys, found, room.spare)
    for i in range(found):
        document = LOW - (room.keys[i] & LOW)
        documents[i] = document
        scores[i] = room.scores[room.slots[document]]
    return found


@inlined
def sortable(bits: np.int32) -> np.int64:
    """Whole numbers in the order of the float32 they are the bits of."""
    return np.int64(bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF)))


@inlined
def _cut(value: np.float32, mix: Mix) -> np.float32:
    return max(value, np.float32(0)) if mix.unit_length else value
