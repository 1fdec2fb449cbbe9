"""Ranking: from the text of a query to its best documents, by whatever is fastest and right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klsa_search.analysis import Analyzer
from klsa_search.arrays import Positions, Scores
from klsa_search.config import SearchSettings
from klsa_search.errors import QueryError
from klsa_search.expansion import top_z
from klsa_search.expansion.cut import multiple_of_kernel
from klsa_search.lazily import lazily
from klsa_search.search.engine import ExpandingEngine, Mix
from klsa_search.search.query import UNKNOWN, QueryTerms, TermNumbers
from klsa_search.search.rankers import RANKERS
from klsa_search.search.rankers.klsa import mix_of
from klsa_search.search.snapshot import Snapshot

Answer = tuple[Positions, Scores]


class Ranking:
    """Ranks the documents of a snapshot; safe to share between threads.

    `parameters` and `dimensions` of each call are checked before; `defaults` are the index's own.
    """

    def __init__(self, snapshot: Snapshot, analyzer: Analyzer, defaults: SearchSettings) -> None:
        self._snapshot, self._defaults = snapshot, defaults
        self._numbers = TermNumbers(analyzer, snapshot.vocabulary)

    def terms(self, query: str) -> list[int]:
        """Numbers of the terms of a query, in order; QueryError for what is no text."""
        if not isinstance(query, str):
            raise QueryError(f"query = {query!r}: a text is needed", field="query")
        return self._numbers.of(query)

    def scores(self, query: str, parameters: SearchSettings, dimensions: int) -> Scores:
        """Score every document: (N,) float32."""
        return self._scores(self.terms(query), parameters, dimensions)

    def best(self, query: str, k: int, parameters: SearchSettings, dimensions: int) -> Answer:
        """Positions and scores of the k best documents, best first."""
        return self._best(self.terms(query), k, parameters, dimensions)

    def best_of_many(
        self, queries: Sequence[str], k: int, parameters: SearchSettings, dimensions: int
    ) -> list[Answer]:
        """Rank for each query, by the compiled engines in one call that needs no GIL."""
        asked = [self.terms(query) for query in queries]
        if parameters.ranker == "bm25":
            return self._snapshot.engine.best_of_many(asked, k)
        engine = self._candidates(parameters)
        if engine is None:
            return [self._best(terms, k, parameters, dimensions) for terms in asked]
        found = engine.best_of_many(asked, k, self._mix(parameters))
        return [
            answer or top_z(self._scores(terms, parameters, dimensions), k)
            for terms, answer in zip(asked, found, strict=True)
        ]

    def best_and_total(
        self, query: str, k: int, parameters: SearchSettings, dimensions: int
    ) -> tuple[Positions, Scores, int]:
        """The k best, and how many documents have a score above 0."""
        terms = self.terms(query)
        if parameters.ranker == "bm25" or self._candidates(parameters) is not None:
            positions, values = self._best(terms, k, parameters, dimensions)
            known = np.array([term for term in terms if term != UNKNOWN], np.int64)
            # Every impact is above 0, so a document that holds a term is a match.
            total = self._snapshot.bm25.postings.matches(known)
            return positions, values, max(total, len(positions))
        scores = self._scores(terms, parameters, dimensions)
        return *top_z(scores, k), int(np.count_nonzero(scores > 0))

    def _scores(self, terms: list[int], parameters: SearchSettings, dimensions: int) -> Scores:
        snapshot = self._snapshot
        if snapshot.cut is not None and snapshot.has_spectrum:
            engine = self._candidates(parameters)  # in a small collection it looks at all
            found = engine and engine.best(terms, len(snapshot), self._mix(parameters))
            if found:
                positions, values = found
                scores = np.zeros(len(snapshot), np.float32)
                scores[positions] = values
                return scores
        return RANKERS[parameters.ranker](snapshot, QueryTerms.of(terms), parameters, dimensions)

    def _best(
        self, terms: list[int], k: int, parameters: SearchSettings, dimensions: int
    ) -> Answer:
        if parameters.ranker == "bm25":
            return self._snapshot.engine.best(terms, k)
        engine = self._candidates(parameters)
        if engine is not None:
            answer = engine.best(terms, k, self._mix(parameters))
            if answer is not None:
                return answer
        return top_z(self._scores(terms, parameters, dimensions), k)

    def _candidates(self, parameters: SearchSettings) -> ExpandingEngine | None:
        """Return the engine of a cut D where it answers, else None."""
        asked = parameters.ranker == "klsa" and parameters.alpha > 0 and not parameters.exact
        straight = multiple_of_kernel(parameters.spectral, parameters.gamma, parameters.head)
        return self._snapshot.expanding if asked and straight else None

    def _mix(self, parameters: SearchSettings) -> Mix:
        own = parameters is self._defaults
        return self._own_mix if own else mix_of(self._snapshot, parameters)

    @lazily
    def _own_mix(self) -> Mix:
        return mix_of(self._snapshot, self._defaults)
