"""Arrays the default ranking works on: what the index has, and what a thread has for itself.

Every document that is looked at has a slot, from 1: the best of the query kernel first, seeds in
front, then what the rows of the seeds bring up. Compiled code gets all arrays as one vector of
addresses and sizes: to hand them over one by one takes 8 µs, a twentieth of a query.
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
    """Arrays of the index; see `Postings`, `Bounds`, `CutExpansion` and `LatentSpace`.

    facts       the cards as float32; the last three columns are meant
    term_steps  the terms as float32; the last column is meant
    """

    starts: _Starts
    documents: _Ints
    weights: _Floats
    idf: _Floats
    block_rows: _Ints
    block_starts: _Ints
    rows: npt.NDArray[np.uint32]
    scales: _Floats
    feature_starts: _Starts
    features: npt.NDArray[np.uint32]
    cards: npt.NDArray[np.int8]
    facts: _Floats
    terms: npt.NDArray[np.int8]
    term_steps: _Floats


class Room(NamedTuple):
    """Memory of one thread for at most M candidates, B of them best, and z seeds.

    slots      (N,) the slot of a document, 0 for none; 0 between queries
    among      (N / 32,) uint32, a bit for each document: whether it is one of the best; likewise
    documents  (M + 1,) the document of a slot
    lexical    (B + 1,) k_q over that of the first, for the documents of the query kernel
    expanded   (M + 1,) E: of the seeds exactly, of the others as far as the rows tell
    covered    (B + 1,) T of the best: of the seeds exactly, of the others by what they hold alone
    scores     (M + 65,) whole vectors are read
    bits       the same memory as whole numbers
    chosen     (M + 1,) slots that are looked at more closely
    keys       (M + 1,) to sort
    spare      (M + 1,)
    impacts    (B + 1, lanes) what the best hold of each term; slot 0 holds nothing
    near       (neighbours + 1,) where the nearest that are among the best begin in `impacts`
    shares     (neighbours + 1,) and their levels
    worth      (lanes,) f(t,q) · w(t), 0 beyond the last term
    half       (lanes,) where g is one half, 1 beyond the last term
    weights    (z,) of the seeds
    sums       (F,) int16, weighted sum of the seeds' features, in steps; 0 between queries
    place      (w,) int16, the query's place in the latent space, in steps
    fine       (m,) the same before it is rounded
    """

    slots: _Ints
    among: npt.NDArray[np.uint32]
    documents: _Ints
    lexical: _Floats
    expanded: _Floats
    covered: _Floats
    scores: _Floats
    bits: _Ints
    chosen: _Ints
    keys: _Starts
    spare: _Starts
    impacts: _Floats
    near: _Ints
    shares: _Floats
    worth: _Floats
    half: _Floats
    weights: _Floats
    sums: npt.NDArray[np.int16]
    place: npt.NDArray[np.int16]
    fine: _Floats


def directory(held: Held, room: Room) -> _Starts:
    """Address, length and width of every array, in the order of the fields; they must stay."""
    entries = [
        (array.ctypes.data, len(array), array.shape[1] if array.ndim > 1 else 1)
        for array in (*held, *room)
    ]
    return np.array(entries, np.int64).ravel()


HELD_ENTRIES = len(Held._fields)


@inlined
def held_in(directory: _Starts) -> Held:
    """Arrays of the index, without owners: to count who uses an array costs more than to use it."""
    at = directory.reshape(-1, 3)
    return Held(
        int64_at(at[0, 0], at[0, 1]),
        int32_at(at[1, 0], at[1, 1]),
        float32_at(at[2, 0], at[2, 1]),
        float32_at(at[3, 0], at[3, 1]),
        int32_at(at[4, 0], at[4, 1]),
        int32_at(at[5, 0], at[5, 1] * at[5, 2]).reshape(at[5, 1], at[5, 2]),
        uint32_at(at[6, 0], at[6, 1] * at[6, 2]).reshape(at[6, 1], at[6, 2]),
        float32_at(at[7, 0], at[7, 1] * at[7, 2]).reshape(at[7, 1], at[7, 2]),
        int64_at(at[8, 0], at[8, 1]),
        uint32_at(at[9, 0], at[9, 1]),
        int8_at(at[10, 0], at[10, 1] * at[10, 2]).reshape(at[10, 1], at[10, 2]),
        float32_at(at[11, 0], at[11, 1] * at[11, 2]).reshape(at[11, 1], at[11, 2]),
        int8_at(at[12, 0], at[12, 1] * at[12, 2]).reshape(at[12, 1], at[12, 2]),
        float32_at(at[13, 0], at[13, 1] * at[13, 2]).reshape(at[13, 1], at[13, 2]),
    )


@inlined
def room_in(directory: _Starts) -> Room:
    """The thread's own memory; see `held_in`."""
    at = directory.reshape(-1, 3)[HELD_ENTRIES:]
    return Room(
        int32_at(at[0, 0], at[0, 1]),
        uint32_at(at[1, 0], at[1, 1]),
        int32_at(at[2, 0], at[2, 1]),
        float32_at(at[3, 0], at[3, 1]),
        float32_at(at[4, 0], at[4, 1]),
        float32_at(at[5, 0], at[5, 1]),
        float32_at(at[6, 0], at[6, 1]),
        int32_at(at[7, 0], at[7, 1]),
        int32_at(at[8, 0], at[8, 1]),
        int64_at(at[9, 0], at[9, 1]),
        int64_at(at[10, 0], at[10, 1]),
        float32_at(at[11, 0], at[11, 1]),
        int32_at(at[12, 0], at[12, 1]),
        float32_at(at[13, 0], at[13, 1]),
        float32_at(at[14, 0], at[14, 1]),
        float32_at(at[15, 0], at[15, 1]),
        float32_at(at[16, 0], at[16, 1]),
        int16_at(at[17, 0], at[17, 1]),
        int16_at(at[18, 0], at[18, 1]),
        float32_at(at[19, 0], at[19, 1]),
    )
