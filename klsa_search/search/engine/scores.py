"""Scores of the candidates: a first one for all, the parts in full for the first, the answer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import internal
from klsa_search.core.selection import LOW, select_largest, sort_descending
from klsa_search.search.engine.candidates import compared, cosine, cover
from klsa_search.search.engine.scan import LANES, bar_of, count_above, places_above
from klsa_search.search.engine.seeds import KlsaParams, cut, power
from klsa_search.search.engine.workspace import IndexArrays, Workspace

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
def score_all(
    held: IndexArrays, room: Workspace, mix: KlsaParams, extent: Extent, factors: Any
) -> None:
    """Give every candidate its first score, and the seeds their last."""
    e, t, a, x = factors
    scores, documents, expanded = room.scores, room.documents, room.expanded
    covered, lexical, chosen = room.covered, room.lexical, room.chosen
    for slot in range(1, extent.size + 1):
        scores[slot] = e * expanded[slot]
    if mix.coverage > 0:
        others = extent.best - extent.seeds
        for i in range(others):
            chosen[i] = extent.seeds + 1 + i
        alone, own = int(np.int64(0)), covered[extent.seeds + 1 :]
        cover(held.rows, room, extent.lanes, extent.best, chosen, others, alone, own)
        for slot in range(1, extent.best + 1):
            scores[slot] += t * covered[slot]
    for slot in range(1, extent.found + 1):
        scores[slot] += x * power(lexical[slot], mix.lexical_sharpness)
    if mix.latent > 0:
        cards, place = held.cards, room.place
        for slot in range(1, extent.size + 1):
            steps = cosine(cards, int(documents[slot]), place)
            scores[slot] += a * cut(np.float32(steps), mix)


@internal
def cover_first(
    held: IndexArrays,
    room: Workspace,
    mix: KlsaParams,
    extent: Extent,
    depth: int,
    k: int,
    factors: Any,
) -> None:
    """Compute T of the first candidates from what is near them; that of the seeds is.

    Of no candidate whose score falls far behind that of the k-th: see PROMISING. Hardly one of
    them gets among the k best, and they are half of all.
    """
    if mix.coverage == 0:
        return
    t = factors[1]
    scores, chosen, covered, exact = room.scores, room.chosen, room.covered, room.exact
    least = LOWEST
    if depth < extent.size:
        least = max(least, np.float32(PROMISING) * _least(room, choose(room, extent.size, k)))
    count = _at_least(room, choose(room, extent.size, depth), least)
    open_ = int(np.int64(0))
    for i in range(count):
        slot = chosen[i]
        chosen[open_] = slot
        open_ += slot > extent.seeds
    cover(held.rows, room, extent.lanes, extent.best, chosen, open_, len(room.near) - 1, exact)
    for i in range(open_):
        slot = chosen[i]
        alone = covered[slot] if slot <= extent.best else np.float32(0)
        scores[slot] += t * (exact[i] - alone)


@internal
def _least(room: Workspace, count: int) -> np.float32:
    """The lowest score of the chosen."""
    scores, chosen = room.scores, room.chosen
    least = np.float32(np.inf)
    for i in range(count):
        least = min(least, scores[chosen[i]])
    return least


@internal
def _at_least(room: Workspace, count: int, least: np.float32) -> int:
    """Keep the chosen that score so much; returns how many."""
    scores, chosen = room.scores, room.chosen
    kept = 0
    for i in range(count):
        slot = chosen[i]
        chosen[kept] = slot
        kept += scores[slot] >= least
    return kept


@internal
def compare(
    held: IndexArrays,
    room: Workspace,
    mix: KlsaParams,
    extent: Extent,
    depth: int,
    factors: Any,
    centre: Any,
) -> int:
    """Compute E of the first candidates from the features; that of the seeds is.

    Returns how many were chosen, of what may be answered.
    """
    e = factors[0]
    documents, chosen, scores, expanded = room.documents, room.chosen, room.scores, room.expanded
    count = _at_least(room, choose(room, extent.size, depth), LOWEST)
    for i in range(count):
        slot = chosen[i]
        if slot > extent.seeds:
            exact = cut(compared(int(documents[slot]), held, room, centre), mix)
            scores[slot] += e * (exact - expanded[slot])
    return count


@internal
def choose(room: Workspace, size: int, wanted: int) -> int:
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
    part, bar = bits[1 : span + 1], int(np.int64(0))
    if count_above(part, bar) < wanted:
        for slot in range(1, size + 1):
            chosen[slot - 1] = slot
        return size
    bar = bar_of(part, bar, int(np.int64(highest)), wanted)
    count = places_above(part, bar, chosen)
    for i in range(count):
        chosen[i] += 1
    return count


@internal
def answer(
    room: Workspace,
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
    slots, keys, bits, all_ = room.chosen, room.keys, room.bits, room.scores
    found = int(np.int64(0))
    for i in range(chosen):
        slot = slots[i]
        if all_[slot] >= LOWEST:
            all_[slot] = max(all_[slot], LEAST)
            document = np.int64(room.documents[slot])
            keys[found] = (np.int64(bits[slot]) << 32) | (LOW - document)
            found += 1
    if found > k:
        select_largest(keys, found, k)
        found = k
    sort_descending(keys, found, room.spare)
    slot_of = room.slots
    for i in range(found):
        document = LOW - (keys[i] & LOW)
        documents[i] = document
        scores[i] = all_[slot_of[document]]
    return found
