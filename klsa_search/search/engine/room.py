"""Arrays the default ranking works on: what the index has, and what a thread has for itself.

Every document that is looked at has a slot, from 1: the best of the query kernel first, then what
the rows of the seeds bring up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import inlined
from klsa_search.search.engine.memory import (
    float32_at,
    int8_at,
    int16_at,
    int32_at,
    int64_at,
    uint32_at,
)

_Ints = npt.NDArray[np.int32]
_Starts = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


class Held(NamedTuple):
    """Arrays of the index; see `Postings`, `CutExpansion` and `LatentSpace`.

    facts       the cards as float32; the last three columns are meant
    term_steps  the terms as float32; the last column is meant
    """

    starts: _Starts
    documents: _Ints
    weights: _Floats
    idf: _Floats
    rows: npt.NDArray[np.uint32]
    scales: _Floats
    feature_starts: _Starts
    features: npt.NDArray[np.uint32]
    cards: npt.NDArray[np.int8]
    facts: _Floats
    terms: npt.NDArray[np.int8]
    term_steps: _Floats


class Room(NamedTuple):
    """Memory of one thread for at most M candidates, B of them best.

    slots      (N,) the slot of a document, 0 for none; 0 throughout between queries
    documents  (M + 1,) the document of a slot
    lexical    (B + 1,) k_q over that of the first, for the documents of the query kernel
    expanded   (M + 1,) E, as far as the rows tell
    scores     (M + 1,)
    bits       the same memory as whole numbers
    keys       (M + 1,) to select and to sort
    spare      (M + 1,)
    impacts    (terms · (B + 1),) what the best hold of each term; slot 0 holds nothing
    alone      (B + 1,) T of the best by what they hold themselves
    near       (neighbours + 1,) slots of the nearest that are among the best
    shares     (neighbours + 1,) and their levels
    worth      (terms,) f(t,q) · w(t)
    half       (terms,) where g is one half
    sums       (F,) weighted sum of the seeds' features, in steps; 0 throughout between queries
    place      (w,) int16, the query's place in the latent space, in steps
    dimensions m, of the latent space
    """

    slots: _Ints
    documents: _Ints
    lexical: _Floats
    expanded: _Floats
    scores: _Floats
    bits: _Ints
    keys: _Starts
    spare: _Starts
    impacts: _Floats
    alone: _Floats
    near: _Ints
    shares: _Floats
    worth: _Floats
    half: _Floats
    sums: _Ints
    place: npt.NDArray[np.int16]
    dimensions: int


@inlined
def borrowed_held(held: Held) -> Held:
    """The same arrays without owners: to count who uses an array costs more than to use it."""
    return Held(
        int64_at(held.starts.ctypes.data, len(held.starts)),
        int32_at(held.documents.ctypes.data, len(held.documents)),
        float32_at(held.weights.ctypes.data, len(held.weights)),
        float32_at(held.idf.ctypes.data, len(held.idf)),
        uint32_at(held.rows.ctypes.data, held.rows.size).reshape(held.rows.shape),
        float32_at(held.scales.ctypes.data, held.scales.size).reshape(held.scales.shape),
        int64_at(held.feature_starts.ctypes.data, len(held.feature_starts)),
        uint32_at(held.features.ctypes.data, len(held.features)),
        int8_at(held.cards.ctypes.data, held.cards.size).reshape(held.cards.shape),
        float32_at(held.facts.ctypes.data, held.facts.size).reshape(held.facts.shape),
        int8_at(held.terms.ctypes.data, held.terms.size).reshape(held.terms.shape),
        float32_at(held.term_steps.ctypes.data, held.term_steps.size).reshape(
            held.term_steps.shape
        ),
    )


@inlined
def borrowed_room(room: Room) -> Room:
    """See `borrowed_held`."""
    return Room(
        int32_at(room.slots.ctypes.data, len(room.slots)),
        int32_at(room.documents.ctypes.data, len(room.documents)),
        float32_at(room.lexical.ctypes.data, len(room.lexical)),
        float32_at(room.expanded.ctypes.data, len(room.expanded)),
        float32_at(room.scores.ctypes.data, len(room.scores)),
        int32_at(room.bits.ctypes.data, len(room.bits)),
        int64_at(room.keys.ctypes.data, len(room.keys)),
        int64_at(room.spare.ctypes.data, len(room.spare)),
        float32_at(room.impacts.ctypes.data, len(room.impacts)),
        float32_at(room.alone.ctypes.data, len(room.alone)),
        int32_at(room.near.ctypes.data, len(room.near)),
        float32_at(room.shares.ctypes.data, len(room.shares)),
        float32_at(room.worth.ctypes.data, len(room.worth)),
        float32_at(room.half.ctypes.data, len(room.half)),
        int32_at(room.sums.ctypes.data, len(room.sums)),
        int16_at(room.place.ctypes.data, len(room.place)),
        room.dimensions,
    )
