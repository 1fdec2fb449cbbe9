"""What the parts of the default ranking give single documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal, unchecked
from klsa_search.lowrank.coverage import NEIGHBOURHOOD
from klsa_search.lowrank.sparse_expansion import LATENT_LEVELS, LEVELS
from klsa_search.search.engine.workspace import TOGETHER, IndexArrays, Record, Workspace

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

PLACE_LEVELS = 2**14  # steps of the largest coordinate of a query


@unchecked
def cover(
    rows: npt.NDArray[np.uint32],
    room: Workspace,
    lanes: int,
    best: int,
    slots: Ints,
    count: int,
    neighbours: int,
    covered: Floats,
) -> None:
    """Compute T of the documents of some slots, one after the other: see `lowrank.coverage`.

    T is Σ worth · y / (y + half) over the terms, y = own + part · Σ_i shares[i] · impacts[near[i]].
    Eight terms are always added up in the same pairs.

    rows        of D, the nearest first
    best        slots up to this one have impacts of their own
    slots       (count,) and more
    neighbours  that count as near; of 0 it is what a document holds itself: no more than T
    """
    documents, slot_of, among = room.documents, room.slots, room.among
    impacts, worth, half, lent = room.impacts, room.worth, room.half, room.lent
    near, shares = room.near, room.shares
    for i in range(count):
        slot = slots[i]
        document = documents[slot]
        hits, levels = 0, np.uint32(0)
        for place in range(neighbours):
            entry = rows[document, place]
            level = entry & np.uint32(LEVELS)
            levels += level
            other = entry >> np.uint32(8)
            near[hits] = other
            shares[hits] = np.float32(level)
            # Without a branch, which would be mispredicted. Bits fit the cache, slots would not.
            held = (among[other >> np.uint32(5)] >> (other & np.uint32(31))) & np.uint32(1)
            hits += held & (level > 0)
        for place in range(hits):
            near[place] = slot_of[near[place]] * lanes
        part = np.float32(NEIGHBOURHOOD) / np.float32(max(levels, np.uint32(1)))
        own = slot * lanes if slot <= best else 0
        total = np.float32(0)
        for first in range(0, lanes, TOGETHER):
            for lane in range(TOGETHER):
                lent[lane] = 0
            for place in range(hits):
                begin, share = near[place] + first, shares[place]
                for lane in range(TOGETHER):
                    lent[lane] += share * impacts[begin + lane]
            for lane in range(TOGETHER):
                y = impacts[own + first + lane] + part * lent[lane]
                lent[lane] = worth[first + lane] * (y / (y + half[first + lane]))
            even = (lent[0] + lent[4]) + (lent[2] + lent[6])
            total += even + ((lent[1] + lent[5]) + (lent[3] + lent[7]))
        covered[i] = total


@internal
def place_query(record: Record, terms: int, held: IndexArrays, room: Workspace) -> np.float32:
    """Put the query into the latent space, in whole steps; returns one step of a cosine."""
    fine, coordinates, steps = room.fine, held.terms, held.term_steps
    dimensions = len(fine)
    fine[:] = 0
    for j in range(terms):
        term = record.term[j]
        if term >= len(coordinates):  # of documents that came later alone
            continue
        step = np.float32(record.times[j]) * held.bursts[term] * steps[term, steps.shape[1] - 1]
        for i in range(dimensions):
            fine[i] += step * np.float32(coordinates[term, i])
    largest = np.float32(0)
    for i in range(dimensions):
        largest = max(largest, abs(fine[i]))
    if largest == 0:
        room.place[:dimensions] = 0
        return np.float32(0)
    for i in range(dimensions):
        room.place[i] = np.int16(np.rint(fine[i] / largest * PLACE_LEVELS))
    return largest / np.float32(PLACE_LEVELS * LATENT_LEVELS)


@internal
def cosine(cards: npt.NDArray[np.int8], document: int, place: npt.NDArray[np.int16]) -> np.int32:
    """The inner product of a document and the query's place, in steps: whole, so exact.

    Over the whole card: the place is 0 where the coordinates end, and vectors stay whole.
    """
    steps = np.int32(0)
    for i in range(len(place)):
        steps = np.int32(steps + np.int32(cards[document, i]) * np.int32(place[i]))
    return steps


@inlined
def add_features(document: int, weight: np.float32, held: IndexArrays, room: Workspace) -> None:
    """Add a seed's features to the sums, `weight` in steps of the sums."""
    factor = weight * held.facts[document, held.facts.shape[1] - 3]
    features, sums = held.features, room.sums
    for p in range(held.feature_starts[document], held.feature_starts[document + 1]):
        level = np.float32(features[p] & np.uint32(LEVELS))
        sums[features[p] >> np.uint32(8)] += np.int16(np.rint(factor * level))


@inlined
def clear_features(document: int, held: IndexArrays, room: Workspace) -> None:
    """Take a seed's features out of the sums."""
    features, sums = held.features, room.sums
    for p in range(held.feature_starts[document], held.feature_starts[document + 1]):
        sums[features[p] >> np.uint32(8)] = 0


@inlined
def compared(document: int, held: IndexArrays, room: Workspace, centre: Any) -> np.float32:
    """Σ_s weight(s) · K(s, d), from the features: what the sum of all of D's rows holds at d."""
    scale, mean, mean_square, step = centre
    first, after = held.feature_starts[document], held.feature_starts[document + 1]
    steps = inner_product(held.features, first, after, room.sums)
    facts, last = held.facts, held.facts.shape[1] - 1
    taken = scale * facts[document, last]
    taken += facts[document, last - 1] * (mean - scale * mean_square)
    return np.float32(step * steps * facts[document, last - 2] - taken)


@internal
def inner_product(
    entries: npt.NDArray[np.uint32], first: int, after: int, sums: npt.NDArray[np.int16]
) -> np.int64:
    """Σ sums[feature] · level: of whole numbers, so that a machine may add them in any order."""
    total = np.int64(0)
    for i in range(first, after):
        entry = entries[i]
        total += np.int64(sums[entry >> np.uint32(8)]) * np.int64(entry & np.uint32(LEVELS))
    return total
