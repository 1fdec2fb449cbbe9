"""The partitions of an index in one state, as one set of documents, and what opens them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar, Unpack

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import SpellingName
from klsa_search.errors import DocumentNotFound, PartitionsUnsupported
from klsa_search.search.costs import QueryCounts
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.local_seeds import FIRST_LATER
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts.doc_ids import global_doc_ids, local_doc_id
from klsa_search.search.parts.generation_reader import GenerationReader
from klsa_search.search.parts.generation_writer import GenerationWriter
from klsa_search.search.parts.part_search import LocalSearches, PartSearches
from klsa_search.search.query.evidence import Question, SharedAnswers, added
from klsa_search.search.state.log_tailer import QueryConfiguration
from klsa_search.search.state.restricted_states import RestrictedStates
from klsa_search.search.state.state import State
from klsa_search.search.suggest.suggester import Candidate
from klsa_search.search.writing import Changes, WriteResult
from klsa_search.storage.collection_terms import open_collection_terms
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.manifest import Manifest, SpaceEntry
from klsa_search.storage.partitions import PartitionSet, generations_of, partition_of
from klsa_search.storage.passages import PassageId

T = TypeVar("T")

MAX_ANSWERS: Final = 2**16
"""Answers that searches of one state share, at most."""


class PartitionFiles(NamedTuple):
    """What all partitions of an index have in common.

    path   folder of the index
    terms  generation of their terms, and its manifest
    """

    path: Path
    partition_set: PartitionSet
    configuration: QueryConfiguration
    terms: tuple[Path, Manifest]


class PartitionWriter(Protocol):
    """Writes batches to one partition, here or in another process: see `GenerationWriter`."""

    def check(self, puts: Sequence[Document]) -> None:
        """Raise the error with which `write` would refuse documents."""

    def write(self, puts: Sequence[Document], deletes: Sequence[str]) -> WriteResult:
        """Write a batch, deletions before documents."""

    def patch(self, changes: Sequence[Changes], embedded: Mapping[str, Document]) -> WriteResult:
        """Merge changes into documents."""


@dataclass(frozen=True)
class OpenedSet:
    """The partitions of an index in one state: statistics of all weigh the words of each.

    partitions  open, to refresh them
    writers     of the partitions
    views       of the state of each, which searches read
    restricted  views of it: see `PartitionsReader.restricted`
    """

    files: PartitionFiles
    partitions: tuple[GenerationReader, ...]
    writers: Sequence[PartitionWriter]
    views: tuple[GenerationReader, ...]
    restricted: RestrictedStates[OpenedSet] = field(init=False, default_factory=RestrictedStates)
    _answers: list[SharedAnswers] = field(init=False, default_factory=lambda: [SharedAnswers()])

    @property
    def states(self) -> tuple[State, ...]:
        """Return the states of the partitions."""
        return tuple(view.state() for view in self.views)

    @property
    def answers(self) -> SharedAnswers:
        """Return the answers of all partitions that searches of this state share."""
        if len(self._answers[0]) > MAX_ANSWERS:
            self._answers[0] = SharedAnswers()  # running searches keep theirs
        return self._answers[0]

    @property
    def shared(self) -> PartitionSet:
        """Return the description of the partitions."""
        return self.files.partition_set

    def partition_of(self, id_: str) -> GenerationReader:
        """Return the view of the partition of an ID."""
        views = self.views
        return views[partition_of(id_, len(views))]

    def document(self, id: str) -> Document:  # noqa: A002 - as in `Index`
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self.partition_of(id).document(id)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, by default of all in the order of the source."""
        if doc_ids is None:
            return list(
                self._in_order(lambda _, state: state.documents.ids(state.documents.live_doc_ids()))
            )
        return self.read_by_doc_id(doc_ids, lambda view, local_ids: view.ids(local_ids))

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID: see `global_doc_ids`; DocumentNotFound."""
        views = self.views
        numbers = []
        for id_ in ids:
            number = partition_of(id_, len(views))
            numbers += global_doc_ids(number, np.array(views[number].doc_ids([id_]))).tolist()
        return numbers

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents as they were indexed, by doc id: see `Index.documents`."""
        return self.read_by_doc_id(doc_ids, lambda view, local_ids: view.documents(local_ids))

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents, in the order of `ids`: (n,) int64."""

        def live_of(number: int, state: State) -> list[int]:
            live = np.array(state.documents.live_doc_ids(), np.int64)
            numbers: list[int] = global_doc_ids(number, live).tolist()
            return numbers

        return np.fromiter(self._in_order(live_of), np.int64)

    def read_by_doc_id(
        self, doc_ids: Iterable[int], read: Callable[[GenerationReader, list[int]], Sequence[T]]
    ) -> list[T]:
        """Return what partitions read for their own doc ids, in order."""
        views, positions = self.views, [local_doc_id(int(doc_id)) for doc_id in doc_ids]
        if any(partition >= len(views) for partition, _ in positions):
            raise IndexError(f"index `{self.files.path.name}` has {len(views)} partitions")
        values: list[Iterator[T]] = [
            iter(read(view, [doc_id for partition, doc_id in positions if partition == number]))
            for number, view in enumerate(views)
        ]
        return [next(values[partition]) for partition, _ in positions]

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents as they were indexed.

        Those of the build come in the order of the source, then later ones.
        """
        return self._in_order(lambda _, state: state.documents.live_documents())

    def _in_order(self, values: Callable[[int, State], Iterable[T]]) -> Iterator[T]:
        """Yield the values of the live documents of all partitions by their ordinals."""
        ordered = [
            # `repeat` is endless.
            zip(_ordinals(state), repeat(number), values(number, state), strict=False)
            for number, state in enumerate(self.states)
        ]
        merged = heapq.merge(*ordered, key=itemgetter(0, 1))
        return (value for _, _, value in merged)

    def document_readers(self) -> list[DocumentReader]:
        """Return the readers of the present documents of all partitions."""
        return [state.documents for state in self.states]

    def hits(
        self,
        doc_ids: DocIds,
        scores: Scores,
        terms: Collection[str],
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Hit, ...]:
        """Return hits of ranked documents, in order: see `Index.hits`."""

        def read(view: GenerationReader, doc_ids_: Sequence[int]) -> Sequence[Hit]:
            return view.hits(
                np.array(doc_ids_, np.int64), np.zeros(len(doc_ids_), np.float32), terms, weights
            )

        hits = self.read_by_doc_id(doc_ids.tolist(), read)
        return tuple(
            replace(hit, rank=rank, score=score)
            for rank, (hit, score) in enumerate(zip(hits, scores.tolist(), strict=True), start=1)
        )

    def excerpt(
        self,
        id: str,  # noqa: A002 - as in `Index`
        *,
        span: tuple[int, int] | None = None,
        page: int | None = None,
    ) -> Excerpt:
        """Return a passage by its ID, or a part of a document: see `Index.excerpt`."""
        partition = self.partition_of(id)
        try:
            partition.document(id)
        except DocumentNotFound:
            with suppress(ValueError):  # the ID of no passage
                partition = self.partition_of(PassageId.of(id).document_id)
        return partition.excerpt(id, span=span, page=page)

    def candidates(
        self, typed: str, k: int, filter_: FilterLike | None = None
    ) -> Sequence[Iterator[Candidate]]:
        """Return completions of the typed text by kind: see `Suggester.candidates`."""
        answers: dict[Question, Any] = {}
        while True:
            partition_set = [view.candidates_by(answers, typed, k, filter_) for view in self.views]
            asked = [answered for _, answered in partition_set]
            if not any(asked):
                return [iter(kind) for kind in partition_set[0][0]]
            answers |= added(asked)

    def rule_warnings(self) -> list[str]:
        """Return what the rules refer to and no partition has."""
        first, *others = [view.rule_warnings() for view in self.views]
        return [warning for warning in first if all(warning in warnings for warnings in others)]

    def parameters(self, /, **parameters: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self.views[0].parameters(**parameters)

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
            for partition in self.views
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
    def space_entries(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents: see `Index`."""
        spaces: dict[str, SpaceEntry] = {}
        for space in chain.from_iterable(partition.space_entries for partition in self.views):
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


def _ordinals(state: State) -> Iterator[int]:
    """Yield the numbers by which the live documents of a partition are ordered."""
    live = np.array(state.documents.live_doc_ids(), np.int64)
    # Later documents are in the order of partitions.
    return iter(np.minimum(state.snapshot.ordinals_of(live), FIRST_LATER).tolist())


class PartitionsOpener(Protocol):
    """Opens the partitions of an index, in this process or in others."""

    def open(self, files: PartitionFiles) -> OpenedSet:
        """Open all partitions of the index in a folder."""

    def weighed(self, files: PartitionFiles, partitions: tuple[GenerationReader, ...]) -> OpenedSet:
        """Return the present state of open partitions, with the statistics of all documents."""

    def restricted(self, opened: OpenedSet, filter_: FilterLike) -> OpenedSet:
        """Return one state of all partitions with the documents that match a filter."""

    def searches(self, opened: OpenedSet) -> PartSearches:
        """Return a new search in one state of all partitions."""


class LocalPartitions:
    """Opens the partitions of an index in this process."""

    def open(self, files: PartitionFiles) -> OpenedSet:
        """Open all partitions of the index in a folder."""
        folders = generations_of(files.path, files.partition_set)
        terms = open_collection_terms(files.terms[0])
        partitions = (GenerationReader.open(folder, terms=terms) for folder in folders)
        return self.weighed(files, tuple(partitions))

    def weighed(self, files: PartitionFiles, partitions: tuple[GenerationReader, ...]) -> OpenedSet:
        """Return the present state, with the statistics of all documents. Cost: O(V)."""
        statistics = CollectionStatistics.of(
            [partition.statistics() for partition in partitions], files.partition_set.length
        )
        for partition in partitions:
            partition.weigh(statistics, files.configuration)
        views = tuple(partition.view() for partition in partitions)
        return OpenedSet(files, partitions, tuple(map(GenerationWriter, partitions)), views)

    def restricted(self, opened: OpenedSet, filter_: FilterLike) -> OpenedSet:
        """Return one state of all partitions with the documents that match a filter."""
        views = [view.restricted(filter_) for view in opened.views]
        statistics = CollectionStatistics.of(
            [view.statistics() for view in views], opened.files.partition_set.length
        )
        return replace(opened, views=tuple(view.restricted_by_all(statistics) for view in views))

    def searches(self, opened: OpenedSet) -> PartSearches:
        """Return a new search in one state of all partitions."""
        return LocalSearches(opened.states, answers=opened.answers)


def unsupported(index: str, what: str) -> PartitionsUnsupported:
    """Return the error of an index in partitions that was called for something unsupported."""
    return PartitionsUnsupported(
        f"index `{index}` has partitions, which do not support {what}; build it with one partition"
    )
