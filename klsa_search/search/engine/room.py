"""Arrays the default ranking works on: what the index has, and what a thread has for itself.

Every document that is looked at has a slot, from 1: the best of the query kernel first, seeds in
front, then what the rows of the seeds bring up. Compiled code gets all arrays as one record of
addresses and sizes: to hand them over one by one takes 8 µs, a tenth of a short query.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import inlined
from klsa_search.expansion.cut import CutExpansion
from klsa_search.kernel import QueryKernel
from klsa_search.search.engine.memory import table, vector
from klsa_search.search.engine.reverse import Reverse

_Ints = npt.NDArray[np.int32]
_Starts = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


class Held(NamedTuple):
    """Arrays of the index; see `CutExpansion`, `LatentSpace` and `Reverse`.

    term_worth  (V,) h(t) · w(t): see `QueryKernel`
    bursts      (V,) b(t)
    facts       the cards as float32; the last three columns are meant
    term_steps  the terms as float32; the last column is meant
    """

    term_worth: _Floats
    bursts: _Floats
    rows: npt.NDArray[np.uint32]
    scales: _Floats
    feature_starts: _Starts
    features: npt.NDArray[np.uint32]
    cards: npt.NDArray[np.int8]
    facts: _Floats
    terms: npt.NDArray[np.int8]
    term_steps: _Floats
    reversed_of: _Ints
    reversed: npt.NDArray[np.uint32]
    reversed_steps: _Floats

    @classmethod
    def of(cls, kernel: QueryKernel, expansion: CutExpansion, reverse: Reverse) -> Held:
        """Gather the arrays, each of the type and order in which compiled code will read it."""
        as_read = np.ascontiguousarray  # the array itself where it is so already
        cards, terms = as_read(expansion.cards, np.int8), as_read(expansion.terms, np.int8)
        return cls(
            term_worth=as_read(kernel.worth, np.float32),
            bursts=as_read(kernel.bursts, np.float32),
            rows=as_read(expansion.rows, np.uint32),
            scales=as_read(expansion.scales, np.float32),
            feature_starts=as_read(expansion.starts, np.int64),
            features=as_read(expansion.features, np.uint32),
            cards=cards,
            facts=cards.view(np.float32),
            terms=terms,
            term_steps=terms.view(np.float32),
            reversed_of=as_read(reverse.reversed_of, np.int32),
            reversed=as_read(reverse.reversed, np.uint32),
            reversed_steps=as_read(reverse.steps, np.float32),
        )


TAKEN: Final = 256
"""Postings that are looked at together."""


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
    words      (M / 32 + 4,) uint64, of `places_above`
    chosen     (M + 1,) slots that are looked at more closely
    keys       (M + 1,) to sort
    spare      (M + 1,)
    rest       (B + 1,) of the best, their score in steps less what terms were found to give
    impacts    (B + 1, lanes) what the best hold of each term, in steps; slot 0 holds nothing
    near       (neighbours + 1,) where the nearest that are among the best begin in `impacts`
    shares     (neighbours + 1,) and their levels
    hits       (TAKEN,) uint32, postings of the best among as many
    worth      (lanes,) f(t,q) · h(t) · w(t), 0 beyond the last term
    half       (lanes,) where g is one half, in steps; 1 beyond the last term
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
    words: npt.NDArray[np.uint64]
    chosen: _Ints
    keys: _Starts
    spare: _Starts
    rest: _Ints
    impacts: _Floats
    near: _Ints
    shares: _Floats
    hits: npt.NDArray[np.uint32]
    worth: _Floats
    half: _Floats
    weights: _Floats
    sums: npt.NDArray[np.int16]
    place: npt.NDArray[np.int16]
    fine: _Floats


DIRECTORY: Final = np.dtype([(name, "i8", (3,)) for name in Held._fields + Room._fields])
"""Address, length and width of every array, by the names of the fields."""


def directory(held: Held, room: Room) -> npt.NDArray[np.void]:
    """Tell where every array is, as one record: (1,); the arrays must stay."""
    entries = np.zeros(1, DIRECTORY)
    for name, array in (held._asdict() | room._asdict()).items():
        width = array.shape[1] if array.ndim > 1 else 1
        entries[name] = array.ctypes.data, len(array), width
    return entries


@inlined
def held_in(directory: Any) -> Held:
    """Arrays of the index, without owners: to count who uses an array costs more than to use it."""
    return Held(
        term_worth=vector(directory.term_worth, np.float32),
        bursts=vector(directory.bursts, np.float32),
        rows=table(directory.rows, np.uint32),
        scales=table(directory.scales, np.float32),
        feature_starts=vector(directory.feature_starts, np.int64),
        features=vector(directory.features, np.uint32),
        cards=table(directory.cards, np.int8),
        facts=table(directory.facts, np.float32),
        terms=table(directory.terms, np.int8),
        term_steps=table(directory.term_steps, np.float32),
        reversed_of=vector(directory.reversed_of, np.int32),
        reversed=table(directory.reversed, np.uint32),
        reversed_steps=vector(directory.reversed_steps, np.float32),
    )


@inlined
def room_in(directory: Any) -> Room:
    """The thread's own memory; see `held_in`."""
    return Room(
        slots=vector(directory.slots, np.int32),
        among=vector(directory.among, np.uint32),
        documents=vector(directory.documents, np.int32),
        lexical=vector(directory.lexical, np.float32),
        expanded=vector(directory.expanded, np.float32),
        covered=vector(directory.covered, np.float32),
        scores=vector(directory.scores, np.float32),
        bits=vector(directory.bits, np.int32),
        words=vector(directory.words, np.uint64),
        chosen=vector(directory.chosen, np.int32),
        keys=vector(directory.keys, np.int64),
        spare=vector(directory.spare, np.int64),
        rest=vector(directory.rest, np.int32),
        impacts=vector(directory.impacts, np.float32),
        near=vector(directory.near, np.int32),
        shares=vector(directory.shares, np.float32),
        hits=vector(directory.hits, np.uint32),
        worth=vector(directory.worth, np.float32),
        half=vector(directory.half, np.float32),
        weights=vector(directory.weights, np.float32),
        sums=vector(directory.sums, np.int16),
        place=vector(directory.place, np.int16),
        fine=vector(directory.fine, np.float32),
    )
