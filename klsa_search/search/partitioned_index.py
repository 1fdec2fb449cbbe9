"""An index in partitions, which searches and writes as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from klsa_search.analysis.tokenizers import trust
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds, DocumentMask, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import SpellingName
from klsa_search.errors import DocumentNotFound, EmbedderFailed, KlsaError, StoreError
from klsa_search.search.costs import QueryCounts
from klsa_search.search.excerpts import Excerpt
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.options import Query, checked_integer
from klsa_search.search.partition import LocalSearches, Partition, PartitionRequest
from klsa_search.search.partitioned_search import (
    plan_and_seeds,
    rank_partitions,
    search_partitions,
    unsupported,
)
from klsa_search.search.partitions_reader import OpenedSet, PartitionsReader
from klsa_search.search.query.evidence import Evidence, Question, added
from klsa_search.search.results import Hit, SearchResults
from klsa_search.search.searcher import in_parallel
from klsa_search.search.suggest.suggester import Suggestion, checked_typed
from klsa_search.search.vector_ranking import VectorLike
from klsa_search.search.writing import WriteResult
from klsa_search.storage.generations import writing
from klsa_search.storage.log import checked_id
from klsa_search.storage.manifest import Manifest, SpaceEntry
from klsa_search.storage.partitions import partition_of
from klsa_search.storage.passages import PassageId

_Write = Callable[[Partition], WriteResult]


class PartitionedIndex(Index):
    """An index in partitions, each an index of some of its documents.

    Methods that need all documents in one place raise PartitionsUnsupported: see `Reader.state` and
    `docs/guides/partitions.md`. Writers of all processes take turns, by the lock of the index. A
    write is divided by the IDs of its documents, and atomic in each partition.
    """

    def __init__(self, reader: PartitionsReader, models: Models = NO_MODELS) -> None:
        super().__init__(reader, models)
        self._partitions_reader = reader

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Return read-only views of the partitions in one state, by number."""
        return self._partitions_reader.partitions

    @property
    def generations(self) -> dict[Path, Manifest]:
        """Return the manifests of the partitions and of their terms, by their folders."""
        return self._partitions_reader.generations

    def __repr__(self) -> str:
        """Return name, number of partitions and number of documents."""
        count = len(self.partitions)
        return f"<Index {self.name}: {len(self)} documents in {count} partitions>"

    def __reduce__(self) -> tuple[Callable[..., PartitionedIndex], tuple[object, ...]]:
        """Pickle by path; StoreError for a snapshot."""
        if self._reader.is_view:
            raise StoreError(
                "a snapshot of an index in partitions cannot be pickled; pickle the index itself"
            )
        return _reopen, (self.path.parent.absolute(), self.settings.tokenizer)

    def snapshot(self) -> Self:
        """Return a read-only view of the present state; it closes with this index."""
        return type(self)(self._partitions_reader.view(), self._models)

    def _search(self, request: Query) -> SearchResults:
        view = self.snapshot()
        results = search_partitions(
            view._partitions_reader.searches(),
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

    def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Return at most k completions of the typed text: see `Index.suggest`."""
        checked_typed(typed)
        count, states = checked_integer("k", k), self._partitions_reader.now().states
        answers: dict[Question, Any] = {}
        while True:
            evidence = [Evidence(answers) for _ in states]
            (suggestions, *_) = [
                state.suggester.suggestions(typed, count, evidence_)
                for state, evidence_ in zip(states, evidence, strict=True)
            ]
            if not any(lookup.own for lookup in evidence):
                return tuple(suggestions)
            answers |= added([lookup.own for lookup in evidence])

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: DocumentMask | None = None,
        vector: VectorLike | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> tuple[DocIds, Scores]:
        """Return doc ids and scores of the k best documents, best first: see `Index.rank`.

        A doc id has the number of the partition above 24 bits, so it does not change with writes.
        """
        if mask is not None:
            raise unsupported(self.name, "masks of doc ids")
        states = self._partitions_reader.now().states
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

        return in_parallel(work, queries, checked_integer("threads", threads))

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - as in `Index`
        *,
        vector: VectorLike | None = None,
        dimensions: int | None = None,
        **parameters: Unpack[SearchParameters],
    ) -> Explanation:
        """Return an explanation of the score of one document: see `Index.explain`."""
        states = self._partitions_reader.now().states
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

        def read(view: Partition, doc_ids_: Sequence[int]) -> Sequence[Hit]:
            return view.hits(
                np.array(doc_ids_, np.int64), np.zeros(len(doc_ids_), np.float32), terms, weights
            )

        hits = self._partitions_reader.read_by_doc_id(doc_ids.tolist(), read)
        return tuple(
            replace(hit, rank=rank, score=score)
            for rank, (hit, score) in enumerate(zip(hits, scores.tolist(), strict=True), start=1)
        )

    def parameters(self, /, **parameters: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self.partitions[0].parameters(**parameters)

    def excerpt(
        self,
        id: str,  # noqa: A002 - as in `Index`
        *,
        span: tuple[int, int] | None = None,
        page: int | None = None,
    ) -> Excerpt:
        """Return a passage by its ID, or a part of a document: see `Index.excerpt`."""
        partition = self._partitions_reader.partition_of(id)
        try:
            partition.document(id)
        except DocumentNotFound:
            with suppress(ValueError):  # the ID of no passage
                partition = self._partitions_reader.partition_of(PassageId.of(id).document_id)
        return partition.excerpt(id, span=span, page=page)

    def is_quick(self, query: str, k: int = 10) -> bool:
        """Return False: a search calls several partitions."""
        return False

    def query_counts(
        self,
        query: str,
        *,
        operators: bool | None = None,
        spelling: SpellingName | None = None,
        filter: FilterLike | None = None,  # noqa: A002 - as in `search`
    ) -> QueryCounts:
        """Return counts of what makes a query expensive, in all partitions together."""
        counts = [
            partition.query_counts(query, operators=operators, spelling=spelling, filter=filter)
            for partition in self.partitions
        ]
        return counts[0]._replace(
            misspelt=min(count.misspelt for count in counts),
            hit_bytes=max(count.hit_bytes for count in counts),
            phrase_documents=sum(count.phrase_documents for count in counts),
            rankings=sum(count.rankings for count in counts),
            matches=sum(count.matches for count in counts),
            terms=max(count.terms for count in counts),
            filter_ms=sum(count.filter_ms for count in counts),
        )

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
        spaces: dict[str, SpaceEntry] = {}
        for space in chain.from_iterable(partition.vector_spaces for partition in self.partitions):
            before = spaces.get(space.name)
            if before is not None:
                space = space.model_copy(
                    update={
                        "vectors": before.vectors + space.vectors,
                        "documents": before.documents + space.documents,
                    }
                )
            spaces[space.name] = space
        return tuple(spaces.values())

    def warm_up(self) -> None:
        """Prepare what the first queries need."""
        for partition in self.partitions:
            partition.warm_up()

    def write(self, puts: Sequence[Document] = (), deletes: Sequence[str] = ()) -> WriteResult:
        """Write documents and deletions to their partitions, atomically in each.

        Durable and searchable on return. Documents are checked before the first is written. If a
        partition cannot be written, StoreError says how many were; writing the same again completes
        it, as it does after a process was killed.
        """
        checked = [checked_id(id_) for id_ in deletes]

        def divided(now: OpenedSet) -> list[tuple[Partition, _Write]]:
            count = len(now.partitions)
            own_puts: dict[int, list[Document]] = {}
            own_deletes: dict[int, list[str]] = {}
            for put in puts:
                own_puts.setdefault(partition_of(put.id, count), []).append(put)
            for id_ in checked:
                own_deletes.setdefault(partition_of(id_, count), []).append(id_)
            for number, documents in own_puts.items():
                now.partitions[number].refuse(documents)

            def write_of(number: int) -> _Write:
                batch = own_puts.get(number, ()), own_deletes.get(number, ())
                return lambda partition: partition.write(*batch)

            numbers = sorted({*own_puts, *own_deletes})
            return [(now.partitions[number], write_of(number)) for number in numbers]

        return self._written(divided)

    def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002 - as in `Index`
        """Merge changes into one document: see `Index.patch`."""

        def of_one(now: OpenedSet) -> list[tuple[Partition, _Write]]:
            partition = now.partitions[partition_of(id, len(now.partitions))]
            return [(partition, lambda target: target.patch(id, changes))]

        return self._written(of_one)

    def _written(
        self, writes: Callable[[OpenedSet], list[tuple[Partition, _Write]]]
    ) -> WriteResult:
        """Write to the partitions that a function returns for the present state, in order."""
        self._reader.check_writable()
        with writing(self.path.parent):
            self.refresh()
            results: list[WriteResult] = []
            with self._partitions_reader.writing():
                planned = writes(self._partitions_reader.now())
                for partition, write in planned:
                    try:
                        results.append(write(partition))
                    except (KlsaError, OSError, MemoryError) as error:
                        if not results:
                            raise
                        raise StoreError(
                            f"wrote to {len(results)} of {len(planned)} partitions of index "
                            f"`{self.name}`, not to `{partition.name}`: {error}; write the same "
                            "again to complete it"
                        ) from error
            last = self.last_write.seq
        return WriteResult(
            self.generation,
            last,
            sum(result.written for result in results),
            sum(result.deleted for result in results),
            tuple(warning for result in results for warning in result.warnings),
        )


def _reopen(path: Path, tokenizer: str | None) -> PartitionedIndex:
    """Open the index that was pickled; it trusts the tokenizer of the pickling process."""
    if tokenizer is not None:
        trust(tokenizer)
    return PartitionedIndex(PartitionsReader.open(path))
