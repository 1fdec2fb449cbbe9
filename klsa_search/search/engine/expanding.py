"""The engine of the default ranking where D is kept cut."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import lacks
from klsa_search.expansion.cut import CutExpansion
from klsa_search.kernel.query import QueryKernel
from klsa_search.search.engine.expanded import search_expanded
from klsa_search.search.engine.mask import FEW, Mask
from klsa_search.search.engine.plain import Plain
from klsa_search.search.engine.record import (
    KEPT,
    MAX_TERMS,
    Asked,
    Queries,
    Scratch,
    Stored,
    TopDocs,
)
from klsa_search.search.engine.reverse import REVERSED, Reverse
from klsa_search.search.engine.room import TAKEN, TOGETHER, Held, Room
from klsa_search.search.engine.scan import LANES
from klsa_search.search.engine.seeds import MAX_SEEDS, PLAN, Depths, Mix, plan_of

RESULTS: Final = 2**18
"""Results that one call of the compiled search makes room for."""

COVERED: Final = (144, 1024)
"""Candidates whose T is computed in full, at least and at most; 8 a result between."""
COMPARED: Final = (32, 192)
"""Candidates whose E is computed in full; 3 a result between."""
WITHIN: Final = 200
"""The same of the few documents of a mask, at least, or 10 a result. At 300,000 documents the first
ten of 500 and of 1,000 are then as with E of each in full, which would cost twice the search."""
DEEP: Final = 1000
"""Results from which all candidates of a small collection are looked at in full."""


class ExpandingEngine:
    """The default ranking by a cut D; immutable, safe to share between threads.

    Each thread has scratch memory of its own: 4 bytes a document, 2 a feature, 50 a candidate,
    and for each of the best 4 bytes a term; that of queries for more than 16,384 results is not
    kept. What is exact and what is not: see `expanded`. The number of threads changes nothing.

    small    whether the collection is so small that deep rankings look at all candidates in full
    living   the documents that count, where not all do
    reverse  entries of rows that are kept beside them, where there are any
    """

    def __init__(
        self,
        kernel: QueryKernel,
        expansion: CutExpansion,
        dimensions: int,
        neighbours: int,
        *,
        small: bool,
        living: Mask | None = None,
        reverse: Reverse | None = None,
    ) -> None:
        self._kernel, self._small, self._living = kernel, small, living
        self._stored = Stored.of(kernel, living)
        self._held = Held.of(kernel, expansion, reverse or Reverse.none())
        self._neighbours = min(neighbours, expansion.rows.shape[1])
        self._dimensions, self._features = dimensions, len(expansion.mean)
        self._plain = Plain(kernel, self._held, self._neighbours, dimensions, living)
        self._of_thread = threading.local()

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        mix: Mix,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs | None]:
        """Return the k best documents of each query; many in one call that runs without the GIL.

        Parameters as of `Engine.top`; a mask leaves the scores of what it allows as they are. None
        where the compiled search cannot take a query, which `Engine` says; where there are more
        than 1,500 seeds; and where there is no document.
        """
        asked = Asked(min(k, self._kernel.size), mask, totals)
        if mix.seeds > MAX_SEEDS or not asked.k:
            return [None] * len(queries)
        if lacks(search_expanded):
            return [self._uncompiled(terms, asked, mix) for terms in queries]
        answers: list[TopDocs | None] = []
        at_once = max(1, RESULTS // asked.k)
        for begin in range(0, len(queries), at_once):
            answers += self._compiled(queries[begin : begin + at_once], asked, mix)
        return answers

    def _compiled(
        self, terms: Sequence[Sequence[int]], asked: Asked, mix: Mix
    ) -> list[TopDocs | None]:
        held, stored, queries = self._memory(asked, mix), self._stored, Queries.of(terms, asked.k)
        scratch = held.scratch
        search_expanded(
            scratch.record, *asked.of(stored), held.plan,
            *queries, *scratch.memory, *stored.arrays, *self._held, *held.room,
        )  # fmt: skip
        return queries.answers()

    def _uncompiled(self, terms: Sequence[int], asked: Asked, mix: Mix) -> TopDocs | None:
        """Answer as the compiled search does before it is there, or wait for it."""
        if len(terms) > MAX_TERMS:
            return None
        top = self._plain.top(terms, asked, mix, self.depths(asked, mix))
        return self._compiled([terms], asked, mix)[0] if top is None else top

    def _memory(self, asked: Asked, mix: Mix) -> _Memory:
        """Memory of this thread, made again when more is asked for than ever before.

        That of a query for more than `KEPT` results is released when it is answered.
        """
        held: _Memory | None = getattr(self._of_thread, "memory", None)
        # The depths follow from these.
        planned = asked.k, -1 if asked.mask is None else min(asked.mask.size, FEW + 1)
        if held is not None and held.planned == planned and held.mix is mix:
            return held
        depths = self.depths(asked, mix)
        wide, best, seeds = max(asked.k, mix.best) + depths.within, mix.best, mix.seeds
        if held is None or held.wide < wide or held.best < best or held.seeds < seeds:
            if held is not None:
                wide, best = max(wide, held.wide), max(best, held.best)
                seeds = max(seeds, held.seeds)
            scratch, room = Scratch(self._kernel, wide), self._room(wide, best, seeds)
            held = _Memory(wide, best, seeds, scratch, room)
            if wide <= KEPT:
                self._of_thread.memory = held
        held.planned, held.mix, held.plan = planned, mix, plan_of(mix, depths)
        return held

    def _room(self, wide: int, best: int, seeds: int) -> Room:
        documents = self._kernel.size
        brought_up = seeds * (self._held.rows.shape[1] + REVERSED)
        size = wide + min(documents, brought_up) + 1
        scores = np.zeros(size + LANES, np.float32)
        return Room(
            slots=np.zeros(self._kernel.size, np.int32),
            among=np.zeros(self._kernel.size // 32 + 1, np.uint32),
            documents=np.zeros(size, np.int32),
            lexical=np.zeros(wide + 1, np.float32),
            expanded=np.zeros(size, np.float32),
            covered=np.zeros(wide + 1, np.float32),
            scores=scores,
            bits=scores.view(np.int32),
            chosen=np.zeros(size, np.int32),
            keys=np.zeros(size, np.int64),
            spare=np.zeros(size, np.int64),
            rest=np.zeros(best + 1, np.int32),
            impacts=np.zeros(MAX_TERMS * (best + 1), np.float32),
            near=np.zeros(self._neighbours + 1, np.int32),
            shares=np.zeros(self._neighbours + 1, np.float32),
            hits=np.zeros(TAKEN, np.uint32),
            worth=np.zeros(MAX_TERMS, np.float32),
            lent=np.zeros(TOGETHER, np.float32),
            exact=np.zeros(size, np.float32),
            half=np.ones(MAX_TERMS, np.float32),
            weights=np.zeros(seeds, np.float32),
            sums=np.zeros(self._features, np.int16),
            place=np.zeros(self._held.cards.shape[1], np.int16),
            fine=np.zeros(self._dimensions, np.float32),
        )

    def depths(self, asked: Asked, mix: Mix) -> Depths:
        """How closely to look."""
        documents, mask = self._kernel.size, asked.mask
        within = 0 if mask is None else max(asked.k, mix.best)
        if mask is not None and mask.size <= FEW:
            compared = max(WITHIN, 10 * asked.k)
            if mask.size <= compared:
                compared = documents
            return Depths(documents, compared, mask.size, True)
        if self._small and asked.k >= min(DEEP, self._kernel.documents):
            return Depths(documents, documents, within, False)
        return Depths(
            min(max(COVERED[0], 8 * asked.k), COVERED[1]),
            min(max(COMPARED[0], 3 * asked.k), COMPARED[1]),
            within,
            False,
        )


@dataclass(slots=True)
class _Memory:
    wide: int  # documents of the query kernel
    best: int
    seeds: int
    scratch: Scratch
    room: Room
    # what was asked for last, and how it is searched for
    planned: tuple[int, int] | None = None
    mix: Mix | None = None
    plan: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(1, PLAN))
