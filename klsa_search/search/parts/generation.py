"""An open generation of an index: holds its state, and replaces it by refreshes."""

from __future__ import annotations

import threading
from pathlib import Path

from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.partition_terms import PartitionTerms, Weighing
from klsa_search.search.parts.part_set import LocalPart, LocalParts
from klsa_search.search.state.log_tailer import (
    LogTailer,
    PointInTime,
    QueryConfiguration,
    open_tailed,
)
from klsa_search.search.state.state import State
from klsa_search.storage.collection_terms import CollectionTerms
from klsa_search.storage.current import current_generation, open_current
from klsa_search.storage.log import WriteLog


class OpenGeneration:
    """A generation with later writes: all of an index, or one of several partitions; thread-safe.

    Its state is one immutable value, which `refresh` and `close` replace in one step. One of
    several partitions weighs words by the statistics of all, which it gets by `weigh`.
    """

    def __init__(
        self, state: State, tailer: LogTailer | None, terms: PartitionTerms | None
    ) -> None:
        self._terms, self._tailer = terms, tailer
        self._parts = LocalParts.of(LocalPart(state, terms))
        self._refresh_lock = threading.Lock()  # held during a refresh
        self._swap_lock = threading.Lock()  # held briefly; guards writes of _parts and _tailer

    @classmethod
    def open(
        cls,
        generation: Path,
        moment: PointInTime | None = None,
        terms: CollectionTerms | None = None,
    ) -> OpenGeneration:
        """Open a generation with its writes.

        moment  until which writes are read; later ones are never read then
        terms   of all partitions, if it is one of several
        """
        partition_terms = None if terms is None else PartitionTerms.of(terms, generation.parent)
        state, tailer = open_tailed(generation, partition_terms, moment)
        return cls(state, tailer if moment is None else None, partition_terms)

    @property
    def parts(self) -> LocalParts:
        """Return the present state, also once it is closed."""
        return self._parts

    @property
    def part(self) -> LocalPart:
        """Return the present state; StoreError once it is closed."""
        return self._parts.opened().parts[0]

    @property
    def state(self) -> State:
        """Return the state of `part`."""
        return self.part.state

    def refresh(self, log: WriteLog | None = None) -> bool:
        """Read writes and new generations of other processes; return if there were any.

        log  that of the generation in use, if this process writes it: folded writes are kept then
        """
        with self._refresh_lock:
            tailer, before = self._tailer, self.state
            if tailer is None:
                return False
            path = before.info.path
            if current_generation(path.parent) == path:
                state = tailer.state(before, log)
                if state is before:
                    return False
                self._swap(state, tailer)
                return True
            # Running calls keep the previous state, whose files close with the last of them.
            self._swap(
                *open_current(path.parent, lambda generation: open_tailed(generation, self._terms))
            )
            tailer.close()
            return True

    def _swap(self, state: State, tailer: LogTailer) -> None:
        """Replace the present state; StoreError if it was closed."""
        with self._swap_lock:
            self._parts.opened()
            self._parts, self._tailer = LocalParts.of(LocalPart(state, self._terms)), tailer

    def weigh(self, statistics: CollectionStatistics, chosen: QueryConfiguration) -> LocalPart:
        """Weigh words by all partitions, and use what is common to them; return the state."""
        assert self._terms is not None
        with self._refresh_lock:
            tailer = self._tailer
            assert tailer is not None
            tailer.configure(chosen)
            self._swap(tailer.weighed(self.state, Weighing(self._terms, statistics)), tailer)
            return self.part

    def save(self) -> None:
        """Store what was folded in files of the generation, for processes that open it later."""
        with self._refresh_lock:
            if self._tailer is not None:
                self._tailer.save()

    def close(self) -> None:
        """Release all files and memory; wait for what writes files."""
        with self._swap_lock:
            parts, tailer = self._parts, self._tailer
            self._parts, self._tailer = LocalParts(parts.facts, ()), None
        if tailer is not None:
            tailer.close()
