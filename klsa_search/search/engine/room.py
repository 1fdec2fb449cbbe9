"""Arrays the default ranking works on: what the index has, and what a thread has for itself.

Every document that is looked at has a slot, from 1: the best of the query kernel first, seeds in
front, then what the rows of the seeds bring up. Compiled code gets all arrays as one vector of
addresses and sizes: to hand them over one by one takes 8 µs, a tenth of a short query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import inlined
from klsa_search.expansion.cut import CutExpansion
from klsa_search.kernel import Postings
from klsa_search.kernel.bounds import Bounds
from klsa_search.search.engine.memory import table_in, vector_in

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

    @classmethod
    def of(cls, postings: Postings, bounds: Bounds, idf: _Floats, expansion: CutExpansion) -> Held:
        """Gather the arrays, each of the type and order in which compiled code will read it."""
        as_read = np.ascontiguousarray  # the array itself where it is so already
        cards, terms = as_read(expansion.cards, np.int8), as_read(expansion.terms, np.int8)
        return cls(
            starts=as_read(postings.starts, np.int64),
            documents=as_read(postings.documents, np.int32),
            weights=as_read(postings.weights, np.float32),
            idf=as_read(idf, np.float32),
            block_rows=as_read(bounds.rows, np.int32),
            block_starts=as_read(bounds.block_starts, np.int32),
            rows=as_read(expansion.rows, np.uint32),
            scales=as_read(expansion.scales, np.float32),
            feature_starts=as_read(expansion.starts, np.int64),
            features=as_read(expansion.features, np.uint32),
            cards=cards,
            facts=cards.view(np.float32),
            terms=terms,
            term_steps=terms.view(np.float32),
        )


class Room(NamedTuple):
    """Memory of one thread for at most M candidates, Q of the query kernel, B best and z seeds.

    slots      (N,) the slot of a document, 0 for none; 0 between queries
    among      (N / 32,) uint32, a bit for each document: whether it is one of the best; likewise
    documents  (M + 1,) the document of a slot
    lexical    (Q + 1,) k_q over that of the first
    expanded   (M + 1,) E: of the seeds exactly, of the others as far as the rows tell
    covered    (Q + 1,) T of the best: of the seeds exactly, of the others by what they hold alone
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


@inlined
def held_in(directory: _Starts) -> Held:
    """Arrays of the index, without owners: to count who uses an array costs more than to use it.

    The numbers are the places of the fields.
    """
    return Held(
        starts=vector_in(directory, 0, np.int64),
        documents=vector_in(directory, 1, np.int32),
        weights=vector_in(directory, 2, np.float32),
        idf=vector_in(directory, 3, np.float32),
        block_rows=vector_in(directory, 4, np.int32),
        block_starts=table_in(directory, 5, np.int32),
        rows=table_in(directory, 6, np.uint32),
        scales=table_in(directory, 7, np.float32),
        feature_starts=vector_in(directory, 8, np.int64),
        features=vector_in(directory, 9, np.uint32),
        cards=table_in(directory, 10, np.int8),
        facts=table_in(directory, 11, np.float32),
        terms=table_in(directory, 12, np.int8),
        term_steps=table_in(directory, 13, np.float32),
    )


@inlined
def room_in(directory: _Starts) -> Room:
    """The thread's own memory, which follows; see `held_in`."""
    return Room(
        slots=vector_in(directory, 14, np.int32),
        among=vector_in(directory, 15, np.uint32),
        documents=vector_in(directory, 16, np.int32),
        lexical=vector_in(directory, 17, np.float32),
        expanded=vector_in(directory, 18, np.float32),
        covered=vector_in(directory, 19, np.float32),
        scores=vector_in(directory, 20, np.float32),
        bits=vector_in(directory, 21, np.int32),
        chosen=vector_in(directory, 22, np.int32),
        keys=vector_in(directory, 23, np.int64),
        spare=vector_in(directory, 24, np.int64),
        impacts=vector_in(directory, 25, np.float32),
        near=vector_in(directory, 26, np.int32),
        shares=vector_in(directory, 27, np.float32),
        worth=vector_in(directory, 28, np.float32),
        half=vector_in(directory, 29, np.float32),
        weights=vector_in(directory, 30, np.float32),
        sums=vector_in(directory, 31, np.int16),
        place=vector_in(directory, 32, np.int16),
        fine=vector_in(directory, 33, np.float32),
    )
