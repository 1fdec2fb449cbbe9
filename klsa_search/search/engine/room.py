"""Arrays the default ranking works on: what the index has, and what a thread has for itself.

Every document that is looked at has a slot, from 1: the best of the query kernel first, seeds in
front, then what the rows of the seeds bring up.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.expansion.cut import CutExpansion
from klsa_search.kernel.query import QueryKernel
from klsa_search.search.engine.record import read_only
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
        cards, terms = read_only(expansion.cards, np.int8), read_only(expansion.terms, np.int8)
        return cls(
            term_worth=read_only(kernel.worth, np.float32),
            bursts=read_only(kernel.bursts, np.float32),
            rows=read_only(expansion.rows, np.uint32),
            scales=read_only(expansion.scales, np.float32),
            feature_starts=read_only(expansion.starts, np.int64),
            features=read_only(expansion.features, np.uint32),
            cards=cards,
            facts=read_only(cards.view(np.float32), np.float32),
            terms=terms,
            term_steps=read_only(terms.view(np.float32), np.float32),
            reversed_of=read_only(reverse.reversed_of, np.int32),
            reversed=read_only(reverse.reversed, np.uint32),
            reversed_steps=read_only(reverse.steps, np.float32),
        )


TOGETHER: Final = 8
"""Terms whose coverage is added up together, in pairs: so in one order whatever the machine."""

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
    chosen     (M + 1,) slots that are looked at more closely
    keys       (M + 1,) to sort
    spare      (M + 1,)
    rest       (B + 1,) of the best, their score in steps less what terms were found to give
    impacts    (B + 1, lanes) what the best hold of each term, in steps; slot 0 holds nothing
    near       (neighbours + 1,) where the nearest that are among the best begin in `impacts`
    shares     (neighbours + 1,) and their levels
    hits       (TAKEN,) uint32, postings of the best among as many
    worth      (lanes,) f(t,q) · h(t) · w(t), 0 beyond the last term
    lent       (TOGETHER,) what neighbours lend of each term
    exact      (M + 1,) T of what is looked at more closely
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
    chosen: _Ints
    keys: _Starts
    spare: _Starts
    rest: _Ints
    impacts: _Floats
    near: _Ints
    shares: _Floats
    hits: npt.NDArray[np.uint32]
    worth: _Floats
    lent: _Floats
    exact: _Floats
    half: _Floats
    weights: _Floats
    sums: npt.NDArray[np.int16]
    place: npt.NDArray[np.int16]
    fine: _Floats
