"""An index in partitions, which searches and writes as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Unpack

import numpy as np

from klsa_search.core.array_types import DocIds, DocumentMask, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import SpellingName
from klsa_search.errors import DocumentNotFound, EmbedderFailed
from klsa_search.search.costs import QueryCounts
from klsa_search.search.excerpts import Excerpt
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.filters.masks import Given as Filter
from klsa_search.search.options import Query, whole_number
from klsa_search.search.partition import LocalSearches, Partition, PartitionRequest
from klsa_search.search.partition_limits import unsupported
from klsa_search.search.partitioned_search import (
    PartitionSearches,
    plan_and_seeds,
    rank_partitions,
    search_partitions,
)
from klsa_search.search.query.evidence import Evidence, Question, added
from klsa_search.search.results import Hit, SearchResults
from klsa_search.search.searcher import in_parallel
from klsa_search.search.suggest.suggester import Suggestion, checked_typed
from klsa_search.search.vector_ranking import GivenVector
from klsa_search.search.writable_partitions import WritablePartitions
from klsa_search.storage.manifest import SpaceEntry
from klsa_search.storage.partitions import partition_of
from klsa_search.storage.passages import PassageId


class PartitionedIndex(WritablePartitions):
    """An index in partitions, each an index of some of its documents.

    It has the methods of `Index`; those of `UNSUPPORTED_METHODS` raise PartitionsUnsupported.
    """

    def _search(self, request: Query) -> SearchResults:
        view = self.snapshot()
        results = search_partitions(
            view._searches(),
            request,
            self.name,
            view.document,
            self._models.reranker,
        )
        warnings = view._without_vectors(request)
        return replace(results, warnings=(*results.warnings, *warnings)) if warnings else results

    def _without_vectors(self, request: Query) -> tuple[str, ...]:
        """Return a warning if an embedder would make the vector of the query of one partition."""
        embedders = self._models.embedders.keys()
        if not embedders or request.vector is not None or not request.query.strip():
            return ()
        if not embedders & {space.name for space in self.vector_spaces}:
            return ()
        return (
            f"ranked by words only: index `{self.name}` has partitions, which do not support "
            "vectors; build it with one partition",
        )

    def _searches(self) -> PartitionSearches:
        """Return a new search in the present state of all partitions."""
        return LocalSearches(self._now().states)

    def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Return at most k completions of the typed text: see `Index.suggest`."""
        checked_typed(typed)
        count, states = whole_number("k", k), self._now().states
        known: dict[Question, Any] = {}
        while True:
            evidence = [Evidence(known) for _ in states]
            (found, *_) = [
                state.suggester.suggestions(typed, count, own)
                for state, own in zip(states, evidence, strict=True)
            ]
            if not any(own.own for own in evidence):
                return tuple(found)
            known |= added([own.own for own in evidence])

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: DocumentMask | None = None,
        vector: GivenVector | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> tuple[DocIds, Scores]:
        """Return doc ids and scores of the k best documents, best first: see `Index.rank`.

        A doc id has the number of the partition above 24 bits, so it does not change with writes.
        """
        if mask is not None:
            raise unsupported(self.name, "masks of doc ids")
        states = self._now().states
        ranking = Query(query, k, vector=vector, dimensions=dimensions, **parameters)
        if warnings := self._without_vectors(ranking):
            raise EmbedderFailed(warnings[0], field="embedder")
        return rank_partitions(LocalSearches(states), ranking, self.name)

    def rank_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: DocumentMask | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> list[tuple[DocIds, Scores]]:
        """Return the result of `rank` for each query, in order: see `Index.rank_many`."""
        view = self.snapshot()

        def work(batch: Sequence[str]) -> list[tuple[DocIds, Scores]]:
            return [
                view.rank(query, k, mask=mask, dimensions=dimensions, **parameters)
                for query in batch
            ]

        return in_parallel(work, queries, whole_number("threads", threads))

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - as in `Index`
        *,
        vector: GivenVector | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> Explanation:
        """Return an explanation of the score of one document: see `Index.explain`."""
        states = self._now().states
        searches = LocalSearches(states)
        explained = Query(
            query, 1, vector=vector, dimensions=dimensions, explain=True, **parameters
        )
        request = PartitionRequest(explained, {}, ranks_only=True)
        _, shared = plan_and_seeds(searches, request, self.name)
        partition = partition_of(id, len(states))
        return searches.explain(partition, id, shared[partition])

    def hits(
        self,
        doc_ids: DocIds,
        scores: Scores,
        terms: Collection[str],
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Hit, ...]:
        """Return hits of ranked documents, in order: see `Index.hits`."""

        def read(view: Partition, own: Sequence[int]) -> Sequence[Hit]:
            return view.hits(
                np.array(own, np.int64), np.zeros(len(own), np.float32), terms, weights
            )

        found = self._read_by_doc_id(doc_ids.tolist(), read)
        return tuple(
            replace(hit, rank=rank, score=score)
            for rank, (hit, score) in enumerate(zip(found, scores.tolist(), strict=True), start=1)
        )

    def parameters(self, /, **given: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self.partitions[0].parameters(**given)

    def excerpt(
        self,
        id: str,  # noqa: A002 - as in `Index`
        *,
        span: tuple[int, int] | None = None,
        page: int | None = None,
    ) -> Excerpt:
        """Return a passage by its ID, or a part of a document: see `Index.excerpt`."""
        own = self._of(id)
        try:
            own.document(id)
        except DocumentNotFound:
            with suppress(ValueError):  # the ID of no passage
                own = self._of(PassageId.of(id).document_id)
        return own.excerpt(id, span=span, page=page)

    def is_quick(self, query: str, k: int = 10) -> bool:
        """Return False: a search calls several partitions."""
        return False

    def query_counts(
        self,
        query: str,
        *,
        operators: bool | None = None,
        spelling: SpellingName | None = None,
        filter: Filter | None = None,  # noqa: A002 - as in `search`
    ) -> QueryCounts:
        """Return counts of what makes a query expensive, in all partitions together."""
        counts = [
            each.query_counts(query, operators=operators, spelling=spelling, filter=filter)
            for each in self.partitions
        ]
        return counts[0]._replace(
            misspelt=min(each.misspelt for each in counts),
            hit_bytes=max(each.hit_bytes for each in counts),
            phrase_documents=sum(each.phrase_documents for each in counts),
            rankings=sum(each.rankings for each in counts),
            matches=sum(each.matches for each in counts),
            terms=max(each.terms for each in counts),
            filter_ms=sum(each.filter_ms for each in counts),
        )

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field."""
        counts: Counter[str] = Counter()
        for each in self.partitions:
            counts.update(each.misfits)
        return dict(counts)

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids of all partitions, including deleted documents."""
        return sum(each.max_doc for each in self.partitions)

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings of all partitions."""
        return sum(each.segments for each in self.partitions)

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Return no rules: partitions do not support them."""
        return []

    def rule_warnings(self) -> list[str]:
        """Return no warnings, as there are no rules."""
        return []

    @property
    def passage_count(self) -> None:
        """Return None: documents of partitions are not divided into passages."""

    @property
    def embeds_queries(self) -> bool:
        """Return False: partitions are searched without vectors."""
        return False

    @property
    def vector_spaces(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents: see `Index`."""
        found: dict[str, SpaceEntry] = {}
        for space in chain.from_iterable(each.vector_spaces for each in self.partitions):
            before = found.get(space.name)
            if before is not None:
                space = space.model_copy(
                    update={
                        "vectors": before.vectors + space.vectors,
                        "documents": before.documents + space.documents,
                    }
                )
            found[space.name] = space
        return tuple(found.values())

    def warm_up(self) -> None:
        """Prepare what the first queries need."""
        for each in self.partitions:
            each.warm_up()
