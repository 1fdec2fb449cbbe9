"""The reader of an index that has one generation: holds its state, and replaces it by refreshes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.tokenizers import trust
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.build_settings import FieldType
from klsa_search.core.cached import delegated
from klsa_search.core.config import SearchSettings, Settings
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import SpellingName
from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.search.costs import QueryCounts
from klsa_search.search.engine.collection_statistics import (
    CollectionStatistics,
    PartitionStatistics,
)
from klsa_search.search.engine.partition_terms import PartitionTerms, Weighing
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.models import Models
from klsa_search.search.pages.applied_rules import rule_warnings
from klsa_search.search.pages.excerpts import Excerpt, excerpt_of
from klsa_search.search.pages.hits import hits_of
from klsa_search.search.pages.query_costs import counts_of, is_quick
from klsa_search.search.pages.results import Hit
from klsa_search.search.parts.part_search import LocalSearches, warm_up
from klsa_search.search.parts.reader import opened_before_fork
from klsa_search.search.query.evidence import Answers, Evidence
from klsa_search.search.state.log_tailer import (
    LogTailer,
    PointInTime,
    QueryConfiguration,
    open_tailed,
)
from klsa_search.search.state.restricted_state import restricted_state, with_statistics
from klsa_search.search.state.state import GenerationInfo, State
from klsa_search.search.suggest.suggester import Candidate
from klsa_search.search.writing import Drift
from klsa_search.storage.collection_terms import CollectionTerms
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.current import current_generation, open_current
from klsa_search.storage.directories import is_index
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import LogPosition, WriteLog
from klsa_search.storage.manifest import Manifest, SpaceEntry
from klsa_search.storage.rules import Rule


class _Current(NamedTuple):
    """Everything about an index that changes, replaced as a whole.

    state   None once the index is closed
    tailer  None once the index is closed, and for a view of one state
    """

    info: GenerationInfo
    state: State | None
    tailer: LogTailer | None


class GenerationReader:
    """Reads a generation of an index with later writes: see `Reader`.

    The state is one immutable value, which `refresh` and `close` replace in one step. One of
    several partitions weighs words by the statistics of all, which it gets by `weigh`.
    """

    def __init__(self, current: _Current, terms: PartitionTerms | None, *, owns: bool) -> None:
        self._current = current
        self._terms = terms
        self._owns = owns  # the open documents; views borrow them
        self._process = os.getpid()
        self._refresh_lock = threading.Lock()  # held during a refresh
        self._swap_lock = threading.Lock()  # held briefly; guards writes of _current

    @classmethod
    def open(
        cls,
        generation: Path,
        moment: PointInTime | None = None,
        terms: CollectionTerms | None = None,
    ) -> GenerationReader:
        """Open a generation with its writes.

        moment  until which writes are read; the result is a view then
        terms   of all partitions, if it is one of several
        """
        partition_terms = None if terms is None else PartitionTerms.of(terms, generation.parent)
        _, state, tailer = open_tailed(generation, partition_terms, moment)
        current = _Current(state.info, state, tailer if moment is None else None)
        return cls(current, partition_terms, owns=True)

    def view(self) -> GenerationReader:
        """Return a reader of the present state, which closes with this one."""
        return self._view_of(self.state())

    def restricted(self, filter_: FilterLike) -> GenerationReader:
        """Return a view of the documents that match a filter: see `Index.restricted`."""
        return self._view_of(restricted_state(self.state(), filter_))

    def _view_of(self, state: State) -> GenerationReader:
        """Return a reader of one state, which closes with this one."""
        return GenerationReader(_Current(state.info, state, None), self._terms, owns=False)

    def __reduce__(self) -> tuple[Callable[..., GenerationReader], tuple[object, ...]]:
        """Pickle by path: unpickling opens the generation in use, or that of a view.

        StoreError for a restricted view, and for one of several partitions.
        """
        state, generation = self.state(), self.path.absolute()
        trusted = self.settings.tokenizer
        if state.info.restricted or self._terms is not None:
            kind = "a partition" if self._terms is not None else "a restricted index"
            raise StoreError(f"{kind} cannot be pickled; pickle the index itself")
        if not self.is_view:
            return _reopened, (generation.parent, trusted)
        moment = PointInTime(
            state.info.last,
            dict(state.query_parser.synonyms),
            state.rules.rules,
            state.info.settings,
        )
        return _reopened, (generation, trusted, moment)

    @property
    def is_view(self) -> bool:
        """Return whether it reads one state only."""
        return self._current.tailer is None

    @property
    def info(self) -> GenerationInfo:
        """Return what is known of the present state, also once it is closed."""
        return self._current.info

    def state(self, operation: str = "this") -> State:
        """Return the present state; StoreError once it is closed."""
        state = self._current.state
        if self._process != os.getpid():
            raise opened_before_fork(self.path)
        if state is None:
            raise StoreError(
                f"index `{self.name}` is closed; open it again with "
                f"open_index({str(self.path.parent)!r})"
            )
        return state

    def searches(self, models: Models) -> LocalSearches:
        """Return a new search in the present state."""
        return LocalSearches((self.state(),), models)

    @property
    def partitions(self) -> tuple[GenerationReader, ...]:
        """Return a view of the only one."""
        return (self.view(),)

    def refresh(self, log: WriteLog | None = None) -> bool:
        """Read writes and new generations of other processes; return if there were any.

        log  that of the generation in use, if this process writes it: folded writes are kept then
        """
        with self._refresh_lock:
            tailer, before = self._current.tailer, self.state()
            if tailer is None:
                return False
            if current_generation(self.path.parent) == self.path:
                state = tailer.state(before, log)
                if state is before:
                    return False
                self._swap(state, tailer)
                return True
            base, state, next_tailer = open_current(
                self.path.parent, lambda generation: open_tailed(generation, self._terms)
            )
            try:
                # Running calls keep the previous state, whose files close with the last of them.
                self._swap(state, next_tailer)
            except BaseException:
                base.close()
                raise
            tailer.close()
            return True

    def _swap(self, state: State, tailer: LogTailer) -> None:
        """Replace the current state; StoreError if the index was closed."""
        with self._swap_lock:
            self.state()
            self._current = _Current(state.info, state, tailer)

    def statistics(self) -> PartitionStatistics:
        """Return the statistics of the live documents of one of several partitions."""
        assert self._terms is not None
        return self._terms.statistics(self.state().snapshot)

    def weigh(self, statistics: CollectionStatistics, chosen: QueryConfiguration) -> None:
        """Weigh words by all partitions, and use what is common to them, from now on."""
        assert self._terms is not None
        with self._refresh_lock:
            tailer = self._current.tailer
            assert tailer is not None
            tailer.configure(chosen)
            self._swap(tailer.weighed(self.state(), Weighing(self._terms, statistics)), tailer)

    def restricted_by_all(self, statistics: CollectionStatistics) -> GenerationReader:
        """Return a restricted view that weighs words by the views of all partitions."""
        return self._view_of(with_statistics(self.state(), statistics))

    def save(self) -> None:
        """Store what was folded in files of the generation, for readers that open it later."""
        with self._refresh_lock:
            if self._current.tailer is not None:
                self._current.tailer.save()

    def close(self) -> None:
        """Release all files and memory, unless it is a view; wait for what writes files."""
        with self._swap_lock:
            _, state, tailer = self._current
            self._current = _Current(self.info, None, None)
        if tailer is not None:
            tailer.close()
        if state is not None and self._owns:
            state.close()

    def check_writable(self) -> None:
        """Raise StoreError if it is a view, or closed."""
        is_view = self.is_view
        self.state()
        if is_view:
            raise StoreError("a snapshot is read-only; write to the index itself")

    @property
    def path(self) -> Path:
        """Return the folder of the generation."""
        return self.info.path

    @property
    def name(self) -> str:
        """Return the name of the index."""
        return self.path.parent.name

    @property
    def generation(self) -> str:
        """Return the name of the generation."""
        return self.path.name

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the generation."""
        return self.info.manifest

    @property
    def generations(self) -> dict[Path, Manifest]:
        """Return the manifest of the generation by its folder."""
        return {self.path: self.manifest}

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self.info.settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser."""
        return self.info.analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the last write of the log in the present state."""
        return self.info.last

    @property
    def drift(self) -> Drift:
        """Return the drift from the build."""
        return self.info.drift

    @property
    def fields(self) -> Fields:
        """Return the metadata fields that are columns."""
        return self.state().fields

    @property
    def field_types(self) -> dict[str, FieldType]:
        """Return the types of the metadata fields that are columns."""
        return {name: field.type for name, field in self.fields.items()}

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field."""
        return {name: field.misfits for name, field in self.fields.items()}

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids."""
        return len(self.state().snapshot)

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings."""
        return len(self.state().snapshot.query_kernel.postings.parts)

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of the index."""
        return self.state().query_parser.synonyms

    @property
    def passage_count(self) -> int | None:
        """Return the number of passages; None if documents are not divided."""
        passages = self.state().passages
        return None if passages is None else passages.state.info.documents

    @property
    def space_entries(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents."""
        return self.state().snapshot.space_entries(self.manifest.vectors)

    @property
    def rules(self) -> Sequence[Rule]:
        """Return the rules of the index."""
        return self.state().rules.rules

    def rule_warnings(self) -> list[str]:
        """Return what the rules refer to and the index does not have."""
        return rule_warnings(self.state())

    def __len__(self) -> int:
        """Return the number of live documents."""
        return self.info.documents

    @property
    def _documents(self) -> DocumentReader:
        return self.state().documents

    document = delegated("_documents", DocumentReader.get)
    documents = delegated("_documents", DocumentReader.at)
    doc_ids = delegated("_documents", DocumentReader.doc_ids)
    live_documents = delegated("_documents", DocumentReader.live_documents)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, by default of all live ones."""
        documents = self._documents
        return documents.ids(documents.live_doc_ids() if doc_ids is None else doc_ids)

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents: (n,)."""
        return np.flatnonzero(self.state().snapshot.live_docs())

    def document_readers(self) -> list[DocumentReader]:
        """Return the reader of the present documents."""
        return [self._documents]

    @property
    def built_spaces(self) -> Sequence[SpaceEntry]:
        """Return the spaces of vectors of the build."""
        return self.manifest.vectors

    @property
    def dimensions(self) -> dict[str, int]:
        """Return the dimensions of the present spaces of vectors, by name."""
        return {name: space.dimension for name, space in self.state().snapshot.vectors.items()}

    def hits(
        self,
        doc_ids: DocIds,
        scores: Scores,
        terms: Collection[str],
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Hit, ...]:
        """Return hits of ranked documents: see `Index.hits`."""
        return hits_of(self.state(), doc_ids, scores, terms, weights)

    def excerpt(
        self,
        id: str,  # noqa: A002 - as in `Index`
        *,
        span: tuple[int, int] | None = None,
        page: int | None = None,
    ) -> Excerpt:
        """Return a passage by its ID, or a part of a document: see `Index.excerpt`."""
        return excerpt_of(self.state().documents, id, span, page)

    def candidates(
        self, typed: str, k: int, filter_: FilterLike | None = None
    ) -> Sequence[Iterator[Candidate]]:
        """Return completions of the typed text by kind: see `Suggester.candidates`."""
        return self.state().suggester_within(filter_).candidates(typed, k, Evidence())

    def candidates_by(
        self, answers: Answers, typed: str, k: int, filter_: FilterLike | None
    ) -> tuple[list[list[Candidate]], Answers]:
        """Return completions by answers of all partitions, and the answers that those lack."""
        suggester, evidence = self.state().suggester_within(filter_), Evidence(answers)
        return list(map(list, suggester.candidates(typed, k, evidence))), evidence.local

    def parameters(self, /, **parameters: Unpack[SearchParameters]) -> SearchSettings:
        """Return search parameters, completed by those of the index; QueryError if invalid."""
        return self.state().parameters.read(parameters)[1]

    def is_quick(self, query: str, k: int) -> bool:
        """Return whether a search by words takes at most 1 ms: see `Index.is_quick`."""
        return is_quick(self.state(), query, k)

    def query_counts(
        self,
        query: str,
        *,
        operators: bool | None = None,
        spelling: SpellingName | None = None,
        filter: FilterLike | None = None,  # noqa: A002 - as in `search`
    ) -> QueryCounts:
        """Return counts of what makes a query expensive: see `Index.query_counts`."""
        options: SearchParameters = {"operators": operators, "spelling": spelling}
        return counts_of(self.state(), query, options, filter)

    def warm_up(self) -> None:
        """Load what the first queries need, by ranking and returning a document."""
        warm_up(self.state())


def _reopened(
    path: Path, tokenizer: str | None, moment: PointInTime | None = None
) -> GenerationReader:
    """Open the index in a folder, or a generation as it was at a moment.

    tokenizer  trusted by the process that pickled the index; unpickling trusts that process
    """
    if tokenizer is not None:
        trust(tokenizer)
    if moment is None:
        if not is_index(path):
            raise IndexNotFound(
                f"no index at `{path}`, the path of the pickled index; restore the folder, or open "
                "the index with open_index"
            )
        return GenerationReader.open(current_generation(path))
    if not path.is_dir():
        raise IndexNotFound(
            f"generation `{path}` of the pickled snapshot no longer exists; open the index and "
            "take a new snapshot"
        )
    return GenerationReader.open(path, moment)
