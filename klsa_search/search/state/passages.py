"""The passages of an open index, which are an index of their own, and rankings by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, GrowableArray, Numbers, Scores, values_at
from klsa_search.core.parameters import RankingSettings
from klsa_search.search.engine.mask import Mask, intersection
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.search.ranking.searcher import AllPartitions, Searcher, SeedCandidates, TopRequest
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.passages import passages_of
from klsa_search.storage.write_log import Write

if TYPE_CHECKING:
    from klsa_search.search.state.state import State


@dataclass(frozen=True)
class PassageIndex:
    """Passages in one state of an index; their doc ids are called rows here.

    state        of the index of passages
    document_of  (P,) int32, doc id of the document of each row, ascending
    """

    state: State
    document_of: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls, state: State, document_of: npt.NDArray[np.int32], documents: DocumentReader
    ) -> PassageIndex:
        """Return the passages of documents, whose filters name these."""
        passages, find = cls(state, document_of), documents.existing
        filters = state.filters.finding(lambda ids: passages.rows_of(find(ids)))
        return replace(passages, state=replace(state, filters=filters))

    def rows_of(self, doc_ids: DocIds) -> Numbers:
        """Return the rows of the passages of documents."""
        first = np.searchsorted(self.document_of, doc_ids, "left")
        after = np.searchsorted(self.document_of, doc_ids, "right")
        counts = after - first
        ends = np.cumsum(counts)
        rows = np.arange(counts.sum()) + np.repeat(first - (ends - counts), counts)
        return np.asarray(rows, np.int64)

    def mask_of(self, doc_ids: DocIds) -> Mask:
        """Return the mask of the passages of documents."""
        return Mask.of_documents(self.rows_of(doc_ids), len(self.document_of))

    def mask(self, documents: Mask | None) -> Mask | None:
        """Return the mask of the passages of the documents of a mask."""
        return None if documents is None else Mask(documents.allowed[self.document_of])

    def best(self, top: TopDocs) -> TopDocs:
        """Return the best passage of each document, of passages best first."""
        _, positions = np.unique(self.document_of[top.doc_ids], return_index=True)
        return top.at(np.sort(positions))

    def best_of(self, doc_ids: DocIds, best: TopDocs) -> TopDocs:
        """Return the best passage of each document: row -1 and score 0 if it has none.

        best  at most one passage of each document
        """
        documents, none = self.document_of[best.doc_ids], len(best.doc_ids)
        order = np.argsort(documents)
        positions = values_at(doc_ids, documents[order], order, missing=none)
        return best.joined(best.unscored(np.full(1, -1))).at(positions)

    def terms_of(self, numbers: Iterable[int], terms: Sequence[str]) -> list[int]:
        """Return term numbers of documents as those of passages; negative ones stay.

        terms  of the documents, by number
        """
        of_passages = self.state.snapshot.vocabulary.numbers
        return [n if n < 0 else of_passages.get(terms[n], UNKNOWN) for n in numbers]


class PassageWrites:
    """Writes of documents as writes of passages, and the document of each passage."""

    def __init__(self, built: State, passages: PassageIndex) -> None:
        self._passages, self._documents = passages, built.documents
        self._words = built.info.settings.passage_words
        self._ids: dict[str, list[str]] = {}  # passages of later documents
        self._next = len(built.documents)
        self._document_of = GrowableArray.of(passages.document_of)

    def of(self, write: Write) -> list[Write]:
        """Return a write of a document as writes of its passages, deletions first."""
        before = self._ids.get(write.id)
        if before is None:
            before, doc_id = [], self._documents.find(write.id)
            if doc_id is not None:
                rows = self._passages.rows_of(np.array([doc_id], np.int64))
                before = self._passages.state.documents.ids(rows.tolist())
        passages = list(passages_of(write.document, self._words)) if write.document else []
        after = [passage.id for passage in passages]
        gone = set(before).difference(after)
        self._ids[write.id] = after
        if passages:
            self._document_of.extend(np.full(len(passages), self._next, np.int32))
            self._next += 1
        puts = [Write(write.seq, passage.id, passage) for passage in passages]
        return [*(Write(write.seq, id_, None) for id_ in sorted(gone)), *puts]

    @property
    def document_of(self) -> npt.NDArray[np.int32]:
        """Return the document of each passage so far."""
        return self._document_of.rows


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
        self, snapshot: Snapshot, defaults: RankingSettings, passages: PassageIndex
    ) -> None:
        super().__init__(snapshot, defaults)
        self.passages = passages

    def uses_passages(self, parameters: RankingSettings) -> bool:
        """Return whether passages count; not for rankers that need a spectrum they do not have."""
        has_spectrum = self.passages.state.snapshot.has_spectrum
        is_available = has_spectrum or not needs_eigenvectors(parameters)
        return parameters.passage_weight > 0 and is_available

    def within(self, partitions: AllPartitions) -> Self:
        """Return a searcher of one of several partitions, for one search."""
        searcher, state = super().within(partitions), self.passages.state
        of_passages = AllPartitions(
            partitions.seeds[1:], partitions.evidence.of_passages(), partitions.local[1:]
        )
        state = state.with_searcher(state.searcher.within(of_passages))
        searcher.passages = replace(self.passages, state=state)
        return searcher

    def seed_candidates(
        self, query: ParsedQuery, parameters: RankingSettings
    ) -> list[SeedCandidates]:
        """Return what documents and passages of a partition add to the seeds of all."""
        candidates = super().seed_candidates(query, parameters)
        if candidates and self.uses_passages(parameters):
            of_passages = self._of_passages(query, parameters)
            candidates += self.passages.state.searcher.seed_candidates(*of_passages)
        return candidates

    def scores(self, query: ParsedQuery, parameters: RankingSettings) -> Scores:
        """Return the scores of all documents: (N,) float32."""
        scores = super().scores(query, parameters)
        if not self.uses_passages(parameters):
            return scores
        searcher = self.passages.state.searcher
        scores_ = searcher.scores(self.of_passages(query), parameters)
        best = np.zeros_like(scores)
        np.maximum.at(best, self.passages.document_of, scores_)
        return np.where(scores > 0, scores + np.float32(parameters.passage_weight) * best, scores)

    def top(
        self, queries: Sequence[ParsedQuery], parameters: RankingSettings, request: TopRequest
    ) -> list[TopDocs]:
        """Return the best documents of each query.

        Exact for the scores of both indexes: more candidates are ranked until no other document
        can be among the k best. Cost: some four rankings.
        """
        if not self.uses_passages(parameters):
            return super().top(queries, parameters, request)
        requests = (request._replace(mask=intersection(request.mask, q.mask)) for q in queries)
        return [
            self._top_with_passages(query._replace(mask=None), parameters, of_query)
            for query, of_query in zip(queries, requests, strict=True)
        ]

    def best_passages(
        self, query: ParsedQuery, doc_ids: DocIds, parameters: RankingSettings
    ) -> tuple[DocIds, Numbers]:
        """Return the row of the best passage of each document, -1 without a match, and how many of
        its passages match.
        """
        mask = self.passages.mask_of(doc_ids)
        of_passages = self._of_passages(query, parameters)
        top = self._top_passages(*of_passages, TopRequest(mask.size, mask))
        best = self.passages.best_of(doc_ids, self.passages.best(top))
        matched, counts = np.unique(self.passages.document_of[top.doc_ids], return_counts=True)
        return best.doc_ids, values_at(doc_ids, matched, counts)

    def of_passages(self, query: ParsedQuery) -> ParsedQuery:
        """Return a query to documents as one to passages, without its mask."""
        terms = self.snapshot.vocabulary.terms
        return ParsedQuery(self.passages.terms_of(query.terms, terms))

    def _of_passages(
        self, query: ParsedQuery, parameters: RankingSettings
    ) -> tuple[ParsedQuery, RankingSettings]:
        if parameters is self._defaults:  # the same object saves the engine work
            parameters = self.passages.state.info.defaults
        return self.of_passages(query), parameters

    def _top_passages(
        self, query: ParsedQuery, parameters: RankingSettings, request: TopRequest
    ) -> TopDocs:
        """Return the best passages for a query to passages."""
        (top,) = self.passages.state.searcher.top([query], parameters, request)
        return top

    def _top_with_passages(
        self, query: ParsedQuery, parameters: RankingSettings, request: TopRequest
    ) -> TopDocs:
        k, rank = request.k, partial(self._top_passages, *self._of_passages(query, parameters))
        passage_mask = self.passages.mask(request.mask)
        weight, size = np.float32(parameters.passage_weight), max(_CANDIDATES * k, 20)
        while True:
            (documents,) = super().top([query], parameters, request._replace(k=size))
            passages = rank(TopRequest(size, passage_mask))
            next_document, next_passage = _last(documents, size), weight * _last(passages, size)
            best = self.passages.best(passages)
            documents = self._with_documents_of(best, documents, query, parameters)
            best_of, scores = self._added(documents, best, weight)
            unknown = best_of.doc_ids < 0
            if len(scores) > k:  # others cannot be among the k best
                unknown &= documents.scores + next_passage >= np.partition(scores, -k)[-k]
            best = self._with_best_of(best, documents.doc_ids[unknown], rank)
            best_of, scores = self._added(documents, best, weight)
            order = np.lexsort((documents.doc_ids, -scores))[:k]
            is_complete = len(order) == k and scores[order[-1]] >= next_document + next_passage
            if is_complete or not next_document:
                top = documents.at(order).rescored(scores[order], documents.total)
                return top._replace(passages=best_of.at(order))
            size *= 2

    def _with_documents_of(
        self, best: TopDocs, documents: TopDocs, query: ParsedQuery, parameters: RankingSettings
    ) -> TopDocs:
        """Return documents, then those of passages that are not among them, scored."""
        missing = np.setdiff1d(self.passages.document_of[best.doc_ids], documents.doc_ids)
        if not len(missing):
            return documents
        only = Mask.of_documents(missing, len(self.snapshot))
        (scored,) = super().top([query], parameters, TopRequest(len(missing), only))
        return documents.joined(scored)

    def _added(
        self, documents: TopDocs, best: TopDocs, weight: np.float32
    ) -> tuple[TopDocs, Scores]:
        """Return the best passage of each document, as far as it is among these, and the sums."""
        best_of = self.passages.best_of(documents.doc_ids, best)
        return best_of, documents.scores + weight * best_of.scores

    def _with_best_of(
        self, best: TopDocs, doc_ids: DocIds, rank: Callable[[TopRequest], TopDocs]
    ) -> TopDocs:
        """Return best passages with those of more documents, as far as they match.

        Few passages are ranked at a time, because a document may have thousands.
        """
        while len(doc_ids):
            mask = self.passages.mask_of(doc_ids)
            size = min(_PASSAGES * len(doc_ids), mask.size)
            top = rank(TopRequest(size, mask))
            further = self.passages.best(top)
            best = best.joined(further)
            if size == mask.size or len(top.doc_ids) < size:
                break
            doc_ids = np.setdiff1d(doc_ids, self.passages.document_of[further.doc_ids])
        return best


def _last(top: TopDocs, size: int) -> np.float32:
    """Return a bound for the scores of those that are not among the first ones; 0 for none."""
    return top.scores[-1] if len(top.scores) == size else np.float32(0)
