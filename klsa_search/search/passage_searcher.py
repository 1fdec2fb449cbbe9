"""Rank documents by their words and by their best passage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Scores, values_at
from klsa_search.core.config import SearchSettings
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.engine import TopDocs
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.params import Parents
from klsa_search.search.passage_index import PassageIndex
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.search.rankers.bm25 import boosted_bm25
from klsa_search.search.searcher import Engines, Searcher, intersection
from klsa_search.search.snapshot import Snapshot

_PASSAGES: Final = 4
"""Passages that are ranked first, for each document requested."""

_LEAST: Final = 100
"""Passages that are ranked first, at least."""


class PassageSearcher(Searcher):
    """Ranks documents by their words and by their best passage; thread-safe.

    The default ranking scores passages: expansion, coverage and the latent part are those of the
    passage, and the lexical part is made of w · k_q(passage) + k_q(document), which is sharpened
    after the sum: sharpened one by one, a passage with most of the words and a document with most
    of them would count less than one of them with all (`docs/explanations/effectiveness.md`). A
    document has the score of its best passage. Other rankers score a document by s(d) + w max s(p),
    over the passages p of d.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        defaults: SearchSettings,
        passages: PassageIndex,
        engines: Engines | None = None,
    ) -> None:
        super().__init__(snapshot, defaults, engines)
        self._passages = passages

    @property
    def passages(self) -> PassageIndex:
        """Return the passages."""
        return self._passages

    def uses_passages(self, parameters: SearchSettings) -> bool:
        """Return whether passages count; not for rankers that need a spectrum they do not have."""
        has_spectrum = self._passages.state.snapshot.has_spectrum
        is_available = has_spectrum or not needs_eigenvectors(parameters)
        return parameters.passage_weight > 0 and is_available

    def scores(self, queries: ParsedQuery, parameters: SearchSettings, dimensions: int) -> Scores:
        """Return the scores of all documents: (N,) float32."""
        if not self.uses_passages(parameters) or queries.stop_scores is not None:
            return super().scores(queries, parameters, dimensions)
        scores, _ = self._scores_with_passages(queries, parameters, dimensions)
        return scores if queries.mask is None else scores * queries.mask.allowed

    def top(
        self,
        queries: Sequence[ParsedQuery],
        k: int,
        parameters: SearchSettings,
        dimensions: int,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs]:
        """Return the k best documents of each query, of those in the mask if there is one.

        Cost: a ranking of passages, and the postings of the query in the documents.
        """
        if not self.uses_passages(parameters):
            return super().top(queries, k, parameters, dimensions, mask, totals=totals)
        return [
            super(PassageSearcher, self).top([query], k, parameters, dimensions, mask)[0]
            if query.stop_scores is not None
            else self._top_with_passages(
                query, k, parameters, dimensions, intersection(mask, query.mask)
            )
            for query in queries
        ]

    def is_quick(self, terms: Sequence[int]) -> bool:
        """Return False: passages and documents are too much for an event loop."""
        return False

    def best_passages(
        self, query: ParsedQuery, doc_ids: DocIds, parameters: SearchSettings
    ) -> tuple[DocIds, npt.NDArray[np.int64]]:
        """Return the row of the best passage of each document, -1 without a match, and how many of
        its passages match.
        """
        mask = self._passages.mask_of(doc_ids)
        of_passages = self.of_passages(query, parameters)
        top = self._top_passages(of_passages, mask.size, parameters, mask)
        best = self._passages.best_of(doc_ids, self._passages.best(top))
        matched, counts = np.unique(self._passages.document_of[top.doc_ids], return_counts=True)
        return best.doc_ids, values_at(doc_ids, matched, counts)

    def of_passages(self, query: ParsedQuery, parameters: SearchSettings) -> ParsedQuery:
        """Return a query to documents as one to passages, without its mask."""
        terms = self._snapshot.vocabulary.terms
        numbers = self._passages.terms_of(query.terms, terms)
        if parameters.ranker != "klsa" or parameters.alpha == 0:
            return ParsedQuery(numbers)
        row = boosted_bm25(self._snapshot, QueryTerms.of(query.terms), parameters)
        parents = Parents(row, self._passages.document_of, parameters.passage_weight)
        return ParsedQuery(numbers, parents=parents)

    def _top_with_passages(
        self,
        query: ParsedQuery,
        k: int,
        parameters: SearchSettings,
        dimensions: int,
        mask: Mask | None,
    ) -> TopDocs:
        of_passages = self.of_passages(query, parameters)
        if of_passages.parents is None:
            return self._top_of_all(query, k, parameters, dimensions, mask)
        passage_mask, size = self._passages.mask(mask), max(_PASSAGES * k, _LEAST)
        while True:
            passages = self._top_passages(of_passages, size, parameters, passage_mask)
            if passages.exact is None:  # not by the engine
                return self._top_of_all(query, k, parameters, dimensions, mask)
            best = self._passages.best(passages)
            if len(best.doc_ids) >= k or len(passages.doc_ids) < size:
                break
            size *= _PASSAGES
        best = best.at(slice(k))
        row = of_passages.parents.scores
        matched = row > 0 if mask is None else (row > 0) & mask.allowed
        total = int(np.count_nonzero(matched)) + passages.total
        documents = self._passages.document_of[best.doc_ids]
        return TopDocs(documents, best.scores, total, passages=best)

    def _top_of_all(
        self,
        query: ParsedQuery,
        k: int,
        parameters: SearchSettings,
        dimensions: int,
        mask: Mask | None,
    ) -> TopDocs:
        """Rank by the scores of all documents."""
        scores, of_passages = self._scores_with_passages(query, parameters, dimensions)
        if mask is not None:
            scores = scores * mask.allowed
        doc_ids, best = top_z(scores, k)
        rows = self._passages.rows_of(doc_ids)
        order = np.lexsort((rows, -of_passages[rows]))
        found = TopDocs(rows[order], of_passages[rows[order]], 0)
        passages = self._passages.best_of(doc_ids, self._passages.best(found))
        top = TopDocs(doc_ids, best, int(np.count_nonzero(scores)), passages=passages)
        if self.of_passages(query, parameters).parents is not None:
            return top
        own = super().scores(query._replace(mask=None), parameters, dimensions)
        return top._replace(before=TopDocs(doc_ids, own[doc_ids], 0))

    def _scores_with_passages(
        self, query: ParsedQuery, parameters: SearchSettings, dimensions: int
    ) -> tuple[Scores, Scores]:
        """Return the scores of all documents, and those of all passages."""
        state, of_passages = self._passages.state, self.of_passages(query, parameters)
        dimensions_of_passages = state.parameters.dimensions(None, parameters)
        scores = state.searcher.scores(of_passages, parameters, dimensions_of_passages)
        best = self._passages.largest(scores, len(self._snapshot))
        if of_passages.parents is not None:
            return best, scores
        own = super().scores(query._replace(mask=None), parameters, dimensions)
        weight = np.float32(parameters.passage_weight)
        return np.where(own > 0, own + weight * best, own), scores

    def _top_passages(
        self, query: ParsedQuery, k: int, parameters: SearchSettings, mask: Mask | None
    ) -> TopDocs:
        state = self._passages.state
        if parameters is self._defaults:  # the same object saves the engine work
            parameters = state.info.defaults
        dimensions = state.parameters.dimensions(None, parameters)
        (top,) = state.searcher.top([query], k, parameters, dimensions, mask, totals=True)
        return top
