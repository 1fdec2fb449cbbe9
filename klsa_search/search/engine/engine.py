"""The engines: from term numbers to the k best documents, by BM25 or the default ranking."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions
from klsa_search.core.compiling import not_compiled
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.lowrank.sparse_expansion import SparseExpansion
from klsa_search.search.engine.bm25 import search
from klsa_search.search.engine.klsa import search_expanded
from klsa_search.search.engine.mask import FEW, Mask
from klsa_search.search.engine.reference import ReferenceEngine
from klsa_search.search.engine.reverse_neighbours import REVERSED, ReverseNeighbours
from klsa_search.search.engine.scan import LANES
from klsa_search.search.engine.seeds import MAX_SEEDS, PLAN, KlsaParams, RerankDepths, plan_of
from klsa_search.search.engine.workspace import (
    KEPT,
    MAX_TERMS,
    TAKEN,
    TOGETHER,
    EngineQuery,
    IndexArrays,
    Queries,
    Scratch,
    Stored,
    TopDocs,
    Workspace,
)
from klsa_search.search.query.terms import QueryTerms

RESULTS: Final = 2**20
"""Results that one call of the compiled search makes room for."""


class Engine:
    """Exact BM25 over postings; immutable, safe to share between threads.

    Each thread has scratch memory of its own: a block of scores and 40 bytes a result, of 16,384
    results at most, as that of deeper queries is not kept. Positions and scores are to the bit
    those of the best of `Postings.steps`, whatever the number of threads. More than 256 terms are
    answered by that row itself.

    living  the documents that count, where not all do
    """

    def __init__(self, kernel: QueryKernel, living: Mask | None = None) -> None:
        self._kernel, self._living = kernel, living
        self._stored = Stored.of(kernel, living)
        self._of_thread = threading.local()

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs]:
        """Return the k best documents of each query; many in one call that runs without the GIL.

        queries  term numbers as they stand in a query, repeated as there, below 0 for unknown
        mask     documents that may be answered, where not all that count may: some of those
        totals   whether to count how many documents hold a term
        Cost     about the postings of the terms in blocks that can hold one of the k best, at half
                 a nanosecond each, and 3 µs; a mask or a total costs one look at the postings.
        Memory   beside the answers 8 MB, or 8 bytes a result of one query if that is more
        """
        asked = EngineQuery(min(k, self._kernel.size), mask, totals)
        if not asked.k or not_compiled(search):
            return [self._by_row(terms, asked) for terms in queries]
        answers: list[TopDocs] = []
        at_once = max(1, RESULTS // asked.k)
        for begin in range(0, len(queries), at_once):
            part = queries[begin : begin + at_once]
            found = self._search(part, asked, self._scratch(asked.k)).answers()
            answers += [
                top or self._by_row(terms, asked) for terms, top in zip(part, found, strict=True)
            ]
        return answers

    def steps(
        self, terms: Sequence[int], k: int, mask: Mask | None = None, *, totals: bool = False
    ) -> tuple[Positions, npt.NDArray[np.int64], int]:
        """Return positions and scores in steps of the k best documents of a query, and the total.

        For who puts the answers of several engines together. Parameters and cost as of `top`.
        """
        asked = EngineQuery(min(k, self._kernel.size), mask, totals)
        if not asked.k or len(terms) > MAX_TERMS or not_compiled(search):
            return self._steps_by_row(terms, asked)
        scratch = self._scratch(asked.k)
        queries = self._search([terms], asked, scratch)
        (count, total), documents = queries.counts[0].tolist(), queries.documents[0]
        return documents[:count], scratch.memory.keys[0, :count] >> 32, total

    def _search(
        self, terms: Sequence[Sequence[int]], asked: EngineQuery, scratch: Scratch
    ) -> Queries:
        queries = Queries.of(terms, asked.k)
        stored = self._stored
        search(scratch.record, *asked.of(stored), *queries, *scratch.memory, *stored.arrays)
        return queries

    def _scratch(self, k: int) -> Scratch:
        """Memory of this thread, made again when a query asks for more results than any before.

        That of a query for more than `KEPT` results is released when it is answered.
        """
        scratch: Scratch | None = getattr(self._of_thread, "scratch", None)
        if scratch is None or scratch.room < k:
            scratch = Scratch(self._kernel, k)
            if k <= KEPT:
                self._of_thread.scratch = scratch
        return scratch

    def _by_row(self, terms: Sequence[int], asked: EngineQuery) -> TopDocs:
        positions, steps, total = self._steps_by_row(terms, asked)
        return TopDocs(positions, (steps * self._kernel.postings.step).astype(np.float32), total)

    def _steps_by_row(
        self, terms: Sequence[int], asked: EngineQuery
    ) -> tuple[Positions, npt.NDArray[np.int64], int]:
        query = QueryTerms.of(terms)
        row = self._kernel.steps(query.numbers, query.counts)
        mask = asked.mask or self._living
        if mask is not None:
            row = row * mask.allowed[: len(row)]  # of a part of an index it is of the whole
        positions, steps = top_z(row, asked.k)
        return positions, steps, int(np.count_nonzero(row)) if asked.totals else 0


EXPANDED_RESULTS: Final = 2**18
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
        expansion: SparseExpansion,
        dimensions: int,
        neighbours: int,
        *,
        small: bool,
        living: Mask | None = None,
        reverse: ReverseNeighbours | None = None,
    ) -> None:
        self._kernel, self._small, self._living = kernel, small, living
        self._stored = Stored.of(kernel, living)
        self._held = IndexArrays.of(kernel, expansion, reverse or ReverseNeighbours.none())
        self._neighbours = min(neighbours, expansion.rows.shape[1])
        self._dimensions, self._features = dimensions, len(expansion.mean)
        self._plain = ReferenceEngine(kernel, self._held, self._neighbours, dimensions, living)
        self._of_thread = threading.local()

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        mix: KlsaParams,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs | None]:
        """Return the k best documents of each query; many in one call that runs without the GIL.

        Parameters as of `Engine.top`; a mask leaves the scores of what it allows as they are. None
        where the compiled search cannot take a query, which `Engine` says; where there are more
        than 1,500 seeds; and where there is no document.
        """
        asked = EngineQuery(min(k, self._kernel.size), mask, totals)
        if mix.seeds > MAX_SEEDS or not asked.k:
            return [None] * len(queries)
        if not_compiled(search_expanded):
            return [self._uncompiled(terms, asked, mix) for terms in queries]
        answers: list[TopDocs | None] = []
        at_once = max(1, EXPANDED_RESULTS // asked.k)
        for begin in range(0, len(queries), at_once):
            answers += self._compiled(queries[begin : begin + at_once], asked, mix)
        return answers

    def _compiled(
        self, terms: Sequence[Sequence[int]], asked: EngineQuery, mix: KlsaParams
    ) -> list[TopDocs | None]:
        held, stored, queries = self._memory(asked, mix), self._stored, Queries.of(terms, asked.k)
        scratch = held.scratch
        search_expanded(
            scratch.record, *asked.of(stored), held.plan,
            *queries, *scratch.memory, *stored.arrays, *self._held, *held.room,
        )  # fmt: skip
        return queries.answers()

    def _uncompiled(
        self, terms: Sequence[int], asked: EngineQuery, mix: KlsaParams
    ) -> TopDocs | None:
        """Answer as the compiled search does before it is there, or wait for it."""
        if len(terms) > MAX_TERMS:
            return None
        top = self._plain.top(terms, asked, mix, self.depths(asked, mix))
        return self._compiled([terms], asked, mix)[0] if top is None else top

    def _memory(self, asked: EngineQuery, mix: KlsaParams) -> _Memory:
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

    def _room(self, wide: int, best: int, seeds: int) -> Workspace:
        documents = self._kernel.size
        brought_up = seeds * (self._held.rows.shape[1] + REVERSED)
        size = wide + min(documents, brought_up) + 1
        scores = np.zeros(size + LANES, np.float32)
        return Workspace(
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

    def depths(self, asked: EngineQuery, mix: KlsaParams) -> RerankDepths:
        """How closely to look."""
        documents, mask = self._kernel.size, asked.mask
        within = 0 if mask is None else max(asked.k, mix.best)
        if mask is not None and mask.size <= FEW:
            compared = max(WITHIN, 10 * asked.k)
            if mask.size <= compared:
                compared = documents
            return RerankDepths(documents, compared, mask.size, True)
        if self._small and asked.k >= min(DEEP, self._kernel.documents):
            return RerankDepths(documents, documents, within, False)
        return RerankDepths(
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
    room: Workspace
    # what was asked for last, and how it is searched for
    planned: tuple[int, int] | None = None
    mix: KlsaParams | None = None
    plan: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(1, PLAN))
