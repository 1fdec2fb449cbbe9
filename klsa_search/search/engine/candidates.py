"""What the parts of the default ranking give single documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, inlined
from klsa_search.expansion.coverage import HALF, NEIGHBOURHOOD
from klsa_search.expansion.cut import LATENT_LEVELS
from klsa_search.expansion.packing import LEVELS
from klsa_search.search.engine import state as s
from klsa_search.search.engine.room import Held, Room
from klsa_search.search.engine.terms import Table
from klsa_search.selection import LOW, sort_descending

PLACE_LEVELS = 2**14  # steps of the largest coordinate of a query
SCANNED = 8  # postings looked at for each that would be merged
STRIDE = 16  # postings passed over at a time

_Ints = npt.NDArray[np.int32]
_Floats = npt.NDArray[np.float32]


@compiled
def look_up_impacts(table: Table, terms: int, held: Held, room: Room, best: int) -> None:
    """Fill in what each of the best documents holds of each term, by the cheaper of two ways.

    Few postings are all looked at. Many are merged with the best, both in document order, in
    strides.
    """
    impacts, keys, slots = room.impacts, room.keys, room.slots
    postings_documents, postings_weights = held.documents, held.weights
    width = best + 1
    impacts[: width * terms] = 0
    sorted_ = False
    for j in range(terms):
        term = table[s.TERM, j]
        room.worth[j] = np.float32(table[s.TIMES, j]) * held.idf[term]
        room.half[j] = np.float32(HALF) * held.idf[term]
        first, after = held.starts[term], held.starts[term + 1]
        if after - first < SCANNED * best:
            for p in range(first, after):
                slot = slots[np.uint32(postings_documents[p])]
                impacts[np.uint32(j * width + (slot if slot <= best else 0))] = postings_weights[p]
            impacts[j * width] = 0
            continue
        if not sorted_:
            for slot in range(1, width):
                keys[slot - 1] = ((LOW - np.int64(room.documents[slot])) << 32) | slot
            sort_descending(keys, best, room.spare)
            sorted_ = True
        p = first
        for i in range(best):
            document = np.int32(LOW - (keys[i] >> 32))
            while p + STRIDE < after and postings_documents[p + STRIDE] <= document:
                p += STRIDE
            while p < after and postings_documents[p] < document:
                p += 1
            if p == after:
                break
            if postings_documents[p] == document:
                impacts[j * width + (keys[i] & LOW)] = postings_weights[p]


@compiled
def covered(
    row: npt.NDArray[np.uint32], own: int, terms: int, width: int, slots: _Ints, room: Room
) -> np.float32:
    """T of a document: see `expansion.coverage`.

    row    of D, the nearest first
    own    the document's slot, 0 if it is none of the best
    width  of a term's impacts: how many are best, and 1
    """
    near, shares, impacts = room.near, room.shares, room.impacts
    hits, total = 0, np.uint32(0)
    for place in range(len(near) - 1):
        entry = row[place]
        level = entry & np.uint32(LEVELS)
        total += level
        other = slots[entry >> np.uint32(8)]
        near[hits] = other
        shares[hits] = np.float32(level)
        hits += (other > 0) & (other < width) & (level > 0)  # no branch: nobody can foretell it
    part = np.float32(NEIGHBOURHOOD) / np.float32(max(total, np.uint32(1)))
    sum_ = np.float32(0)
    for j in range(terms):
        y = np.float32(0)
        for i in range(hits):
            y += shares[i] * impacts[np.uint32(j * width + near[i])]
        y = impacts[np.uint32(j * width + own)] + part * y
        sum_ += room.worth[j] * (y / (y + room.half[j]))
    return sum_


@compiled
def cover_alone(terms: int, best: int, impacts: _Floats, room: Room, alone: _Floats) -> None:
    """T of each of the best by what it holds itself, no more than T: alone[1 : best + 1]."""
    width = best + 1
    alone[:width] = 0
    for j in range(terms):
        worth, half = room.worth[j], room.half[j]
        of_term = impacts[j * width : (j + 1) * width]
        for slot in range(width):
            alone[slot] += worth * (of_term[slot] / (of_term[slot] + half))


@compiled
def place_query(table: Table, terms: int, held: Held, room: Room) -> np.float32:
    """Put the query into the latent space, in whole steps; returns one step of a cosine."""
    dimensions = room.dimensions
    place, coordinates, steps = np.zeros(dimensions, np.float32), held.terms, held.term_steps
    for j in range(terms):
        term = table[s.TERM, j]
        step = np.float32(table[s.TIMES, j]) * steps[term, steps.shape[1] - 1]
        for i in range(dimensions):
            place[i] += step * np.float32(coordinates[term, i])
    largest = np.float32(0)
    for i in range(dimensions):
        largest = max(largest, abs(place[i]))
    if largest == 0:
        room.place[:dimensions] = 0
        return np.float32(0)
    for i in range(dimensions):
        room.place[i] = np.int16(np.rint(place[i] / largest * PLACE_LEVELS))
    return largest / np.float32(PLACE_LEVELS * LATENT_LEVELS)


@compiled
def cosine(card: npt.NDArray[np.int8], place: npt.NDArray[np.int16]) -> np.int32:
    """The inner product of a document and the query's place, in steps: whole, so exact.

    Over the whole card: the place is 0 where the coordinates end, and vectors stay whole.
    """
    steps = np.int32(0)
    for i in range(len(place)):
        steps = np.int32(steps + np.int32(card[i]) * np.int32(place[i]))
    return steps


@compiled
def add_features(document: int, weight: np.float32, held: Held, room: Room) -> None:
    """Add a seed's features to the sums, `weight` in steps of the sums."""
    factor = weight * held.facts[document, held.facts.shape[1] - 3]
    for entry in held.features[held.feature_starts[document] : held.feature_starts[document + 1]]:
        level = np.float32(entry & np.uint32(LEVELS))
        room.sums[entry >> np.uint32(8)] += np.int32(factor * level)


@compiled
def clear_features(document: int, held: Held, room: Room) -> None:
    """Take a seed's features out of the sums."""
    for entry in held.features[held.feature_starts[document] : held.feature_starts[document + 1]]:
        room.sums[entry >> np.uint32(8)] = 0


@inlined
def compared(document: int, held: Held, room: Room, centre: Any) -> np.float32:
    """Σ_s weight(s) · K(s, d), from the features: what the sum of all of D's rows holds at d."""
    scale, mean, mean_square, step = centre
    first, after = held.feature_starts[document], held.feature_starts[document + 1]
    steps = inner_product(held.features, first, after, room.sums)
    facts, last = held.facts, held.facts.shape[1] - 1
    taken = scale * facts[document, last]
    taken += facts[document, last - 1] * (mean - scale * mean_square)
    return np.float32(step * steps * facts[document, last - 2] - taken)


@compiled
def inner_product(entries: npt.NDArray[np.uint32], first: int, after: int, sums: _Ints) -> np.int64:
    """Σ sums[feature] · level: of whole numbers, so that a machine may add them in any order."""
    total = np.int64(0)
    for i in range(first, after):
        entry = entries[i]
        total += np.int64(sums[entry >> np.uint32(8)]) * np.int64(entry & np.uint32(LEVELS))
    return total
