"""The later writes of a generation and of its passages, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from klsa_search.core.build_settings import PASSAGE_WORDS
from klsa_search.core.config import Settings
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.filters.masks import FilterCache
from klsa_search.search.state.passages import PassageIndex, PassageWrites
from klsa_search.search.state.state import State
from klsa_search.storage.rules import Rule
from klsa_search.storage.write_log import LogPosition, Write

BATCH = 2_000
"""Writes that are applied at once."""


class QueryConfiguration(NamedTuple):
    """What changes without a build and all partitions of an index have in common."""

    synonyms: Mapping[str, Sequence[str]]
    rules: Sequence[Rule]
    settings: Settings


class Delta:
    """The writes to a state as it was built, and to its passages."""

    def __init__(self, built: State) -> None:
        from klsa_search.search.state.delta_index import DeltaIndex  # not needed without writes

        self._built, self._delta = built, DeltaIndex(built)
        self._filters, self._texts = built.filters.extended(), built.texts.extended()
        self._batch: list[Write] = []
        self._puts = 0  # documents of the batch
        self._size = 0  # documents that end it
        self._passages: Delta | None = None
        if built.passages is not None:
            self._passages = Delta(built.passages.state)
            words = built.info.settings.passage_words or PASSAGE_WORDS
            self._of_passages = PassageWrites(built.passages, built.documents, words)

    def add(self, write: Write) -> None:
        """Add the next write. Batches end where stored segments do."""
        if not self._batch:
            self._size = self._delta.next_size()
        self._batch.append(write)
        self._puts += write.document is not None
        if self._puts == self._size or len(self._batch) == BATCH:
            self._delta.apply(self._batch)
            self._batch, self._puts = [], 0
        if self._passages is not None:
            for passage_write in self._of_passages.of(write):
                self._passages.add(passage_write)

    def state(self, last: LogPosition, statistics: CollectionStatistics | None = None) -> State:
        """Return the state after all writes, of which this is the last.

        statistics  of all partitions; None for an index without partitions
        """
        self._delta.apply(self._batch)
        self._batch, self._puts = [], 0
        snapshot, documents, fields = self._delta.snapshot(statistics)
        count, built = snapshot.query_kernel.local_documents, self._built
        self._filters = FilterCache(fields, len(snapshot), documents.existing, self._filters)
        passages = None
        if self._passages is not None:
            document_of = self._of_passages.document_of()
            of_passages = None if statistics is None else statistics.passages
            state = self._passages.state(last, of_passages)
            passages = PassageIndex.of(state, document_of, documents)
        return replace(
            built,
            info=replace(
                built.info,
                documents=count,
                last=last,
                drift=self._delta.drift(),
                trained=None if statistics is not None else self._delta.trained(),
            ),
            snapshot=snapshot,
            documents=documents,
            passages=passages,
            fields=fields,
            filters=self._filters,
            texts=self._texts,
        )
