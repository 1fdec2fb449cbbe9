"""The engine: term numbers of a query → its k best documents by BM25."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.compiling import lacks
from klsa_search.expansion.threshold import top_z
from klsa_search.kernel.query import QueryKernel
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.record import (
    KEPT,
    MAX_TERMS,
    Asked,
    Queries,
    Scratch,
    Stored,
    TopDocs,
)
from klsa_search.search.engine.topk import search
from klsa_search.search.query import QueryTerms

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
        asked = Asked(min(k, self._kernel.size), mask, totals)
        if not asked.k or lacks(search):
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
        asked = Asked(min(k, self._kernel.size), mask, totals)
        if not asked.k or len(terms) > MAX_TERMS or lacks(search):
            return self._steps_by_row(terms, asked)
        scratch = self._scratch(asked.k)
        queries = self._search([terms], asked, scratch)
        (count, total), documents = queries.counts[0].tolist(), queries.documents[0]
        return documents[:count], scratch.memory.keys[0, :count] >> 32, total

    def _search(self, terms: Sequence[Sequence[int]], asked: Asked, scratch: Scratch) -> Queries:
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

    def _by_row(self, terms: Sequence[int], asked: Asked) -> TopDocs:
        positions, steps, total = self._steps_by_row(terms, asked)
        return TopDocs(positions, (steps * self._kernel.postings.step).astype(np.float32), total)

    def _steps_by_row(
        self, terms: Sequence[int], asked: Asked
    ) -> tuple[Positions, npt.NDArray[np.int64], int]:
        query = QueryTerms.of(terms)
        row = self._kernel.steps(query.numbers, query.counts)
        mask = asked.mask or self._living
        if mask is not None:
            row = row * mask.allowed[: len(row)]  # of a part of an index it is of the whole
        positions, steps = top_z(row, asked.k)
        return positions, steps, int(np.count_nonzero(row)) if asked.totals else 0
