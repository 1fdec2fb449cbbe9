"""Rank documents by their own score and by that of their best passage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.search.engine.engine import TopDocs
from klsa_search.search.engine.mask import Mask
from klsa_search.search.passage_index import PassageIndex
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.search.searcher import Engines, Searcher, intersection
from klsa_search.search.snapshot import Snapshot

_CANDIDATES: Final = 2
"""Documents and passages that are ranked first, for each document requested."""

_PASSAGES: Final = 4
"""Passages that are ranked at a time, for each document whose best one is wanted."""


class PassageSearcher(Searcher):
    """Ranks documents by s(d) + w max s(p), over the passages p of d; thread-safe.

    Only documents with a score of their own match, so a passage changes their order, not their
    number. Both scores are sums over the words of the query, of the same magnitude; measured on
    collections with long texts, that is as good as scores divided by the best of each, and w = 1 is
    best (`docs/explanations/effectiveness.md`).
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
        scores = super().scores(queries, parameters, dimensions)
        if not self.uses_passages(parameters):
            return scores
        state = self._passages.state
        own = state.searcher.scores(
            self.of_passages(queries), parameters, state.parameters.dimensions(None, parameters)
        )
        best = np.zeros_like(scores)
        np.maximum.at(best, self._passages.document_of, own)
        return np.where(scores > 0, scores + np.float32(parameters.passage_weight) * best, scores)

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

        Exact for the scores of both indexes: more candidates are ranked until no other document
        can be among the k best. Cost: some four rankings.
        """
        if not self.uses_passages(parameters):
            return super().top(queries, k, parameters, dimensions, mask, totals=totals)
        return [
            self._top_with_passages(
                query, k, parameters, dimensions, intersection(mask, query.mask), totals=totals
            )
            for query in queries
        ]

    def is_quick(self, terms: Sequence[int]) -> bool:
        """Return False: some four rankings are too many for an event loop."""
        return False

    def best_passages(
        self, query: ParsedQuery, doc_ids: DocIds, parameters: SearchSettings
    ) -> tuple[DocIds, Scores, npt.NDArray[np.int64]]:
        """Return row and score of the best passage of each document, -1 and 0 without a match, and
        how many of its passages match.
        """
        mask = self._passages.mask_of(doc_ids)
        top = self._top_passages(self.of_passages(query), mask.size, parameters, mask)
        documents, rows, scores = self._passages.best(top.doc_ids, top.scores)
        matched, counts = np.unique(self._passages.document_of[top.doc_ids], return_counts=True)
        return (
            _looked_up(doc_ids, documents, rows, -1),
            _looked_up(doc_ids, documents, scores, 0),
            _looked_up(doc_ids, matched, counts, 0),
        )

    def own_scores(
        self, query: ParsedQuery, doc_ids: DocIds, parameters: SearchSettings, dimensions: int
    ) -> Scores:
        """Return the scores of documents by themselves."""
        mask = self._mask(doc_ids)
        (own,) = super().top([query._replace(mask=None)], mask.size, parameters, dimensions, mask)
        return _looked_up(doc_ids, own.doc_ids, own.scores, 0)

    def _top_with_passages(
        self,
        query: ParsedQuery,
        k: int,
        parameters: SearchSettings,
        dimensions: int,
        mask: Mask | None,
        *,
        totals: bool,
    ) -> TopDocs:
        query = query._replace(mask=None)
        of_passages = self.of_passages(query)
        passage_mask = self._passages.mask(mask)
        weight, size = np.float32(parameters.passage_weight), max(_CANDIDATES * k, 20)
        while True:
            (own,) = super().top([query], size, parameters, dimensions, mask, totals=totals)
            passages = self._top_passages(of_passages, size, parameters, passage_mask)
            documents, _, best = self._passages.best(passages.doc_ids, passages.scores)
            # Scores of documents that are only in one of the lists.
            missing = np.setdiff1d(documents, own.doc_ids)
            (rest,) = (
                super().top([query], len(missing), parameters, dimensions, self._mask(missing))
                if len(missing)
                else [TopDocs(own.doc_ids[:0], own.scores[:0], 0)]
            )
            doc_ids = np.concatenate((own.doc_ids, rest.doc_ids))
            scores = np.concatenate((own.scores, rest.scores))
            unknown = ~np.isin(doc_ids, documents)
            known = scores + weight * _looked_up(doc_ids, documents, best, 0)
            if len(known) > k:  # others cannot be among the k best
                unknown &= scores + weight * _last(passages, size) >= np.partition(known, -k)[-k]
            more, more_best = self._best_scores(of_passages, doc_ids[unknown], parameters)
            documents, best = np.concatenate((documents, more)), np.concatenate((best, more_best))
            scores = scores + weight * _looked_up(doc_ids, documents, best, 0)
            order = np.lexsort((doc_ids, -scores))[:k]
            if len(own.doc_ids) < size or (
                len(order) == k
                and scores[order[-1]] >= own.scores[-1] + weight * _last(passages, size)
            ):
                return TopDocs(doc_ids[order], scores[order], own.total)
            size *= 2

    def _best_scores(
        self, query: ParsedQuery, doc_ids: DocIds, parameters: SearchSettings
    ) -> tuple[DocIds, Scores]:
        """Return those of the documents that have a matching passage, and the scores of the best.

        Few passages are ranked at a time, because a document may have thousands.
        """
        documents, best = [doc_ids[:0]], [np.zeros(0, np.float32)]
        while len(doc_ids):
            mask = self._passages.mask_of(doc_ids)
            size = min(_PASSAGES * len(doc_ids), mask.size)
            top = self._top_passages(query, size, parameters, mask)
            found, _, scores = self._passages.best(top.doc_ids, top.scores)
            documents.append(found)
            best.append(scores)
            if size == mask.size or len(top.doc_ids) < size:
                break
            doc_ids = np.setdiff1d(doc_ids, found)
        return np.concatenate(documents), np.concatenate(best)

    def _top_passages(
        self, query: ParsedQuery, k: int, parameters: SearchSettings, mask: Mask | None
    ) -> TopDocs:
        state = self._passages.state
        if parameters is self._defaults:  # the same object saves the engine work
            parameters = state.info.defaults
        dimensions = state.parameters.dimensions(None, parameters)
        (top,) = state.searcher.top([query], k, parameters, dimensions, mask)
        return top

    def of_passages(self, query: ParsedQuery) -> ParsedQuery:
        """Return a query to documents as one to passages, without its mask."""
        terms = self._snapshot.vocabulary.terms
        return ParsedQuery(self._passages.terms_of(query.terms, terms))

    def _mask(self, doc_ids: DocIds) -> Mask:
        allowed = np.zeros(len(self._snapshot), np.bool_)
        allowed[doc_ids] = True
        return Mask(allowed)


def _last(top: TopDocs, size: int) -> np.float32:
    """Return a bound for the scores of passages that are not among the first ones."""
    return top.scores[-1] if len(top.scores) == size else np.float32(0)


def _looked_up(doc_ids: DocIds, keys: DocIds, values: np.ndarray, missing: float) -> np.ndarray:
    """Return the value of each doc id, or `missing`."""
    order = np.argsort(keys)
    places = np.searchsorted(keys[order], doc_ids)
    found = np.full(len(doc_ids), missing, values.dtype)
    known = places < len(keys)
    known[known] = keys[order][places[known]] == doc_ids[known]
    found[known] = values[order][places[known]]
    return found
