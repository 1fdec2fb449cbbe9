"""The engine: term numbers of a query → its k best documents by BM25."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from klsa_search.arrays import Positions, Scores
from klsa_search.expansion import top_z
from klsa_search.kernel import Postings
from klsa_search.kernel.bounds import Bounds
from klsa_search.search.engine.state import COUNT, MAX_TERMS, QUERY, K, Scratch
from klsa_search.search.engine.topk import search, search_many
from klsa_search.search.query import QueryTerms

Answer = tuple[Positions, Scores]

RESULTS: Final = 2**20
"""Results that one call of the compiled search makes room for."""

_K_AT: Final = K * 8  # bytes
assert (COUNT, QUERY) == (K + 1, K + 2)  # written as one piece


class Engine:
    """Exact BM25 over postings and their bounds; immutable, safe to share between threads.

    Each thread has scratch memory of its own: a block of scores and 40 bytes a result. Positions
    and scores are to the bit those of the best of `Postings.query_row`, whatever the number of
    threads. What the compiled search cannot take (more than 256 terms, or impacts that may add up
    to 2^24 steps: 16 of the largest there are) is answered by that row itself.
    """

    def __init__(self, postings: Postings, bounds: Bounds) -> None:
        self._postings, self.bounds = postings, bounds
        self._of_thread = threading.local()

    def best(self, terms: Sequence[int], k: int) -> Answer:
        """Positions and scores of the k best documents, best first, ties by document order.

        terms  term numbers as they stand in the query, repeated as there, below 0 for unknown
        Cost   about the postings of the terms in blocks that can hold one of the k best, at a
               third of a nanosecond each, and 3 µs.
        """
        k = min(k, self._postings.size)
        if len(terms) > MAX_TERMS or not k:
            return self._by_row(terms, k)
        scratch = self._scratch(k)
        count = len(terms)
        struct.pack_into(f"{count + 2}q", scratch.bytes, _K_AT, k, count, *terms)
        found = search(scratch.state)
        if found < 0:
            return self._by_row(terms, k)
        return scratch.documents[:found].copy(), scratch.scores[:found].copy()

    def best_of_many(self, queries: Iterable[Sequence[int]], k: int) -> list[Answer]:
        """Answer each query as `best` does, many in one call that runs without the GIL.

        Memory beside the answers: 8 MB, or 8 bytes a result of one query if that is more.
        """
        asked = list(queries)
        k = min(k, self._postings.size)
        if not k:
            return [self._by_row(terms, k) for terms in asked]
        at_once = max(1, RESULTS // k)
        parts = (asked[begin : begin + at_once] for begin in range(0, len(asked), at_once))
        return [answer for part in parts for answer in self._answers(part, k)]

    def _answers(self, queries: Sequence[Sequence[int]], k: int) -> list[Answer]:
        ends = np.cumsum([len(terms) for terms in queries])
        flat = np.fromiter((term for terms in queries for term in terms), np.int64, ends[-1])
        documents = np.empty((len(queries), k), np.int32)
        scores = np.empty((len(queries), k), np.float32)
        counts = np.empty(len(queries), np.int64)
        search_many(self._scratch(k).state, flat, ends, documents, scores, counts)
        return [
            (documents[number, :found].copy(), scores[number, :found].copy())
            if found >= 0
            else self._by_row(queries[number], k)
            for number, found in enumerate(counts.tolist())
        ]

    def _scratch(self, k: int) -> Scratch:
        """Memory of this thread, made anew when a query asks for more results than any before."""
        scratch: Scratch | None = getattr(self._of_thread, "scratch", None)
        if scratch is None or scratch.room < k:
            scratch = self._of_thread.scratch = Scratch(self._postings, self.bounds, k)
        return scratch

    def _by_row(self, terms: Sequence[int], k: int) -> Answer:
        known = QueryTerms.of(terms)
        return top_z(self._postings.query_row(known.numbers, known.counts), k)
