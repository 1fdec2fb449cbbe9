"""What the parts of the default ranking give single documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, inlined, internal
from klsa_search.expansion.coverage import NEIGHBOURHOOD
from klsa_search.expansion.cut import LATENT_LEVELS
from klsa_search.expansion.packing import LEVELS
from klsa_search.kernel.prefetch import prefetch
from klsa_search.search.engine.record import Record
from klsa_search.search.engine.room import Held, Room
from klsa_search.search.engine.saturation import TOGETHER, saturated

AHEAD = 96  # entries: as many are asked for before a document is looked at
PLACE_LEVELS = 2**14  # steps of the largest coordinate of a query


@inlined
def covered(row: npt.NDArray[np.uint32], own: int, lanes: int, room: Room) -> np.float32:
    """T of a document: see `expansion.coverage`.

    row  of D, the nearest first
    own  the document's slot, 0 if it is none of the best
    """
    slots, among, near, shares = room.slots, room.among, room.near, room.shares
    hits, total = 0, np.uint32(0)
    for place in range(len(near) - 1):
        entry = row[place]
        level = entry & np.uint32(LEVELS)
        total += level
        document = entry >> np.uint32(8)
        near[hits] = document
        shares[hits] = np.float32(level)
        # No branch: nobody can foretell it. Bits, as slots of all lie too far away.
        held = (among[document >> np.uint32(5)] >> (document & np.uint32(31))) & np.uint32(1)
        hits += held & (level > 0)
    for place in range(hits):
        near[place] = slots[near[place]] * lanes
    part = np.float32(NEIGHBOURHOOD) / np.float32(max(total, np.uint32(1)))
    return _saturated(own, lanes, hits, part, room)


@inlined
def covered_alone(own: int, lanes: int, room: Room) -> np.float32:
    """T of one of the best by what it holds itself: no more than T."""
    return _saturated(own, lanes, 0, np.float32(0), room)


@inlined
def _saturated(own: int, lanes: int, hits: int, part: np.float32, room: Room) -> np.float32:
    impacts, worth, half = (
        room.impacts.ctypes.data,
        room.worth.ctypes.data,
        room.half.ctypes.data,
    )
    near, shares = room.near.ctypes.data, room.shares.ctypes.data
    sum_ = np.float32(0)
    for lane in range(0, lanes, TOGETHER):
        sum_ += saturated(
            impacts + 4 * (own * lanes + lane), impacts + 4 * lane, near, shares, hits, part,
            worth + 4 * lane, half + 4 * lane,
        )  # fmt: skip
    return sum_


@internal
def place_query(record: Record, terms: int, held: Held, room: Room) -> np.float32:
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


@compiled
def cosine(card: npt.NDArray[np.int8], place: npt.NDArray[np.int16]) -> np.int32:
    """The inner product of a document and the query's place, in steps: whole, so exact.

    Over the whole card: the place is 0 where the coordinates end, and vectors stay whole.
    """
    steps = np.int32(0)
    for i in range(len(place)):
        steps = np.int32(steps + np.int32(card[i]) * np.int32(place[i]))
    return steps


@inlined
def add_features(document: int, weight: np.float32, held: Held, room: Room) -> None:
    """Add a seed's features to the sums, `weight` in steps of the sums."""
    factor = weight * held.facts[document, held.facts.shape[1] - 3]
    for entry in held.features[held.feature_starts[document] : held.feature_starts[document + 1]]:
        level = np.float32(entry & np.uint32(LEVELS))
        room.sums[entry >> np.uint32(8)] += np.int16(np.rint(factor * level))


@inlined
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


@internal
def inner_product(
    entries: npt.NDArray[np.uint32], first: int, after: int, sums: npt.NDArray[np.int16]
) -> np.int64:
    """Σ sums[feature] · level: of whole numbers, so that a machine may add them in any order."""
    total = np.int64(0)
    for i in range(first, after):
        prefetch(entries, i + AHEAD)  # which keeps it out of vectors, too: gathering costs more
        entry = entries[i]
        total += np.int64(sums[entry >> np.uint32(8)]) * np.int64(entry & np.uint32(LEVELS))
    return total
