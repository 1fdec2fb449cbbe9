"""Scores of the candidates: a first one for all, the parts in full for the first, the answer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, internal
from klsa_search.kernel.prefetch import prefetch
from klsa_search.search.engine.candidates import compared, cosine, covered, covered_alone
from klsa_search.search.engine.room import Held, Room
from klsa_search.search.engine.scan import LANES, bar_of, count_above, places_above
from klsa_search.search.engine.seeds import LINE, LINES, Mix, cut, power
from klsa_search.selection import LOW, select_largest, sort_descending

AHEAD = 12  # candidates for which memory is asked for in advance
LOWEST = -np.float32(np.finfo(np.float32).max)  # all but what is left out scores as much
LEAST = np.float32(np.finfo(np.float32).tiny)  # score of what was found
PROMISING = 0.5  # share of the k-th first score below which a candidate gets no further


class Extent(NamedTuple):
    """How far the slots of a query go: seeds, then the best, the found, the brought up."""

    lanes: int  # of a document's impacts
    best: int  # whose impacts count
    seeds: int
    found: int  # of the query kernel
    size: int  # of all


@internal
def score_all(held: Held, room: Room, mix: Mix, extent: Extent, factors: Any) -> None:
    """Give every candidate its first score, and the seeds their last."""
    e, t, a, x = factors
    scores = room.scores
    for slot in range(1, extent.size + 1):
        scores[slot] = e * room.expanded[slot]
    if mix.coverage > 0:
        for slot in range(1, extent.best + 1):
            if slot > extent.seeds:
                room.covered[slot] = covered_alone(slot, extent.lanes, room)
            scores[slot] += t * room.covered[slot]
    for slot in range(1, extent.found + 1):
        scores[slot] += x * power(room.lexical[slot], mix.lexical_sharpness)
    if mix.latent > 0:
        for slot in range(1, extent.size + 1):
            steps = cosine(held.cards[room.documents[slot]], room.place)
            scores[slot] += a * cut(np.float32(steps), mix)


@internal
def cover(
    held: Held, room: Room, mix: Mix, extent: Extent, depth: int, k: int, factors: Any
) -> None:
    """Compute T of the first candidates from what is near them; that of the seeds is.

    Of no candidate whose score falls far behind that of the k-th: see PROMISING. Hardly one of
    them gets among the k best, and they are half of all.
    """
    if mix.coverage == 0:
        return
    t = factors[1]
    documents, chosen, rows = room.documents, room.chosen, held.rows
    least = LOWEST
    if depth < extent.size:
        least = max(least, np.float32(PROMISING) * _least(room, choose(room, extent.size, k)))
    count = _at_least(room, choose(room, extent.size, depth), least)
    for i in range(-AHEAD, count):
        later = documents[chosen[min(i + AHEAD, count - 1)]] * rows.shape[1]
        prefetch(rows, later)
        prefetch(rows, later + LINE)
        if i < 0:
            continue
        slot = chosen[i]
        if slot > extent.seeds:
            own = slot if slot <= extent.best else 0
            alone = room.covered[slot] if own > 0 else np.float32(0)
            exact = covered(rows[documents[slot]], own, extent.lanes, room)
            room.scores[slot] += t * (exact - alone)


@internal
def _least(room: Room, count: int) -> np.float32:
    """The lowest score of the chosen."""
    least = np.float32(np.inf)
    for i in range(count):
        least = min(least, room.scores[room.chosen[i]])
    return least


@internal
def _at_least(room: Room, count: int, least: np.float32) -> int:
    """Keep the chosen that score so much; returns how many."""
    kept = 0
    for i in range(count):
        slot = room.chosen[i]
        room.chosen[kept] = slot
        kept += room.scores[slot] >= least
    return kept


@internal
def compare(
    held: Held, room: Room, mix: Mix, extent: Extent, depth: int, factors: Any, centre: Any
) -> int:
    """Compute E of the first candidates from the features; that of the seeds is.

    Returns how many were chosen, of what may be answered.
    """
    e = factors[0]
    documents, chosen = room.documents, room.chosen
    starts, features = held.feature_starts, held.features
    count = _at_least(room, choose(room, extent.size, depth), LOWEST)
    for i in range(count):
        prefetch(starts, documents[chosen[i]])
    for i in range(-AHEAD, count):
        slot = chosen[min(i + AHEAD, count - 1)]
        if slot > extent.seeds:
            first = starts[documents[slot]]
            for line in range(LINES):
                prefetch(features, first + line * LINE)
        if i < 0:
            continue
        slot = chosen[i]
        if slot > extent.seeds:
            exact = cut(compared(int(documents[slot]), held, room, centre), mix)
            room.scores[slot] += e * (exact - room.expanded[slot])
    return count


@compiled
def choose(room: Room, size: int, wanted: int) -> int:
    """Choose the slots of the highest scores: `wanted`, or hardly more; returns how many.

    All where fewer are above 0. Equal scores are chosen together, or none of them.
    """
    scores, bits, chosen = room.scores, room.bits, room.chosen
    count = 0
    if size <= wanted:
        for slot in range(1, size + 1):
            chosen[count] = slot
            count += 1
        return count
    span = (size + LANES - 1) // LANES * LANES
    scores[size + 1 : span + 1] = -np.inf
    highest = np.int32(0)
    for slot in range(1, size + 1):  # the bits of floats above 0 are in their order
        highest = max(highest, bits[slot])
    address = bits.ctypes.data + 4
    bar = 0
    if count_above(address, span, bar) < wanted:
        for slot in range(1, size + 1):
            chosen[slot - 1] = slot
        return size
    bar = bar_of(address, span, bar, int(highest), wanted)
    count = places_above(address, span, bar, room.words, chosen)
    for i in range(count):
        chosen[i] += 1
    return count


@internal
def answer(
    room: Room,
    size: int,
    chosen: int,
    k: int,
    documents: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
) -> int:
    """Write down the k best; of the chosen alone, if they suffice.

    A candidate is found however little is left of its score: no less than `LEAST`.
    """
    if chosen < min(k, size):
        chosen = choose(room, size, k)
    found = 0
    for i in range(chosen):
        slot = room.chosen[i]
        if room.scores[slot] >= LOWEST:
            room.scores[slot] = max(room.scores[slot], LEAST)
            document = np.int64(room.documents[slot])
            room.keys[found] = (np.int64(room.bits[slot]) << 32) | (LOW - document)
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
