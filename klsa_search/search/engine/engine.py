"""The engine: term numbers of a query → its k best documents by BM25."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from klsa_search.arrays import Positions, Scores
from klsa_search.compiled.beside import lacks
from klsa_search.expansion import top_z
from klsa_search.kernel import QueryKernel
from klsa_search.search.engine.record import ASKED_AT, MAX_TERMS, Scratch
from klsa_search.search.engine.topk import search
from klsa_search.search.query import QueryTerms

Answer = tuple[Positions, Scores]

RESULTS: Final = 2**20
"""Results that one call of the compiled search makes room for."""


class Engine:
    """Exact BM25 over postings; immutable, safe to share between threads.

    Each thread has scratch memory of its own: a block of scores and 40 bytes a result. Positions
    and scores are to the bit those of the best of `Postings.steps`, whatever the number of
    threads. More than 256 terms are answered by that row itself.
    """

    def __init__(self, kernel: QueryKernel) -> None:
        self._kernel = kernel
        self._of_thread = threading.local()

    def best(self, terms: Sequence[int], k: int) -> Answer:
        """Positions and scores of the k best documents, best first, ties by document order.

        terms  term numbers as they stand in the query, repeated as there, below 0 for unknown
        Cost   about the postings of the terms in blocks that can hold one of the k best, at half
               a nanosecond each, and 3 µs.
        """
        k = min(k, self._kernel.size)
        if len(terms) > MAX_TERMS or not k:
            return self._by_row(terms, k)
        scratch = self._scratch(k)
        if lacks(search, scratch.record):
            return self._by_row(terms, k)
        count = len(terms)
        struct.pack_into(f"{count + 2}q", scratch.bytes, ASKED_AT, k, count, *terms)
        found = search(scratch.record)
        return scratch.documents[:found].copy(), scratch.scores[:found].copy()

    def best_of_many(self, queries: Iterable[Sequence[int]], k: int) -> list[Answer]:
        """Answer each query as `best` does, many in one call that runs without the GIL.

        Memory beside the answers: 8 MB, or 8 bytes a result of one query if that is more.
        """
        asked = list(queries)
        k = min(k, self._kernel.size)
        if not k:
            return [self._by_row(terms, k) for terms in asked]
        at_once = max(1, RESULTS // k)
        parts = (asked[begin : begin + at_once] for begin in range(0, len(asked), at_once))
        return [answer for part in parts for answer in self._answers(part, k)]

    def _answers(self, queries: Sequence[Sequence[int]], k: int) -> list[Answer]:
        scratch = self._scratch(k)
        if lacks(search, scratch.record):
            return [self._by_row(terms, k) for terms in queries]
        many = scratch.of_many(queries, k)
        search(many.record)
        return [
            answer or self._by_row(terms, k)
            for terms, answer in zip(queries, many.answers(), strict=True)
        ]

    def _scratch(self, k: int) -> Scratch:
        """Memory of this thread, made anew when a query asks for more results than any before."""
        scratch: Scratch | None = getattr(self._of_thread, "scratch", None)
        if scratch is None or scratch.room < k:
            scratch = self._of_thread.scratch = Scratch(self._kernel, k)
        return scratch

    def _by_row(self, terms: Sequence[int], k: int) -> Answer:
        asked = QueryTerms.of(terms)
        positions, steps = top_z(self._kernel.steps(asked.numbers, asked.counts), k)
        return positions, (steps * self._kernel.postings.step).astype(np.float32)
