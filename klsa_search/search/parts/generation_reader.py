"""The reader of an index that has one generation: holds its state, and replaces it by refreshes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from klsa_search.analysis.tokenizers import trust
from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.search.engine.collection_statistics import (
    CollectionStatistics,
    PartitionStatistics,
)
from klsa_search.search.engine.partition_terms import PartitionTerms, Weighing
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.models import Models
from klsa_search.search.parts.part_search import LocalSearches
from klsa_search.search.parts.state_reader import StateReader
from klsa_search.search.state.log_tailer import (
    LogTailer,
    PointInTime,
    QueryConfiguration,
    open_tailed,
)
from klsa_search.search.state.restricted_state import restricted_state, with_statistics
from klsa_search.search.state.state import GenerationInfo, State
from klsa_search.storage.collection_terms import CollectionTerms
from klsa_search.storage.current import current_generation, open_current
from klsa_search.storage.directories import is_index
from klsa_search.storage.log import WriteLog


class _Current(NamedTuple):
    """Everything about an index that changes, replaced as a whole.

    state   None once the index is closed
    tailer  None once the index is closed, and for a view of one state
    """

    info: GenerationInfo
    state: State | None
    tailer: LogTailer | None


class GenerationReader(StateReader):
    """Reads a generation of an index with later writes.

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
        """Release all files and memory, unless it is a view; later calls raise StoreError.

        Running calls of other threads keep their arrays until they end, but raise StoreError if
        they look up an ID after this, as does a running `refresh`.
        """
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


def opened_before_fork(path: Path) -> StoreError:
    """Return the error of an index that was opened by a process from which this one was forked.

    path  in the folder of the index
    Locks that threads of that process had acquired are never released here.
    """
    return StoreError(
        f"index `{path.parent.name}` was opened before this process was forked; open it again "
        "in this process with open_index, or start processes by spawn or forkserver"
    )
