"""The open parts of an index: what reads their state, replaces it by refreshes, and writes to them.

An index is one generation, or partitions of which each is one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from klsa_search.analysis.tokenizers import trust
from klsa_search.collection.vectors import of_spaces
from klsa_search.errors import IndexNotFound, KlsaError, StoreError
from klsa_search.search.batches import WriteResult
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.parts.generation import Batch, OpenGeneration
from klsa_search.search.parts.part_set import IndexFacts, LocalParts, PartSet
from klsa_search.search.parts.reading import dimensions
from klsa_search.search.state.state import QueryConfiguration, statistics_of
from klsa_search.storage.catalog_entry import entry_stamp, read_entry
from klsa_search.storage.current import current_build, has_partitions
from klsa_search.storage.directories import is_index
from klsa_search.storage.documents import not_found
from klsa_search.storage.files import Stamp, stamp_of
from klsa_search.storage.generations import writing
from klsa_search.storage.manifest import Manifest, SpaceEntry, read_manifest, stored_settings
from klsa_search.storage.names import CURRENT
from klsa_search.storage.partitions import (
    generations_of_build,
    open_collection_terms,
    partitions_of,
)
from klsa_search.storage.rules import stored_rules
from klsa_search.storage.synonyms import stored_synonyms
from klsa_search.storage.write_log import LogPosition
from klsa_search.storage.write_log_writer import write_time

P = ParamSpec("P")
T = TypeVar("T")

Moment = tuple[Manifest, LogPosition, QueryConfiguration]
"""Of a snapshot: the manifest of its generation, the last write, and what queries used."""


class PartGroup(Protocol):
    """The open parts of one build of an index, in this process or in others."""

    def refresh(self) -> bool:
        """Read writes of other processes to all parts; return if there were any."""

    def write(
        self,
        number: int,
        function: Callable[Concatenate[OpenGeneration, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method of a part, where this is."""

    def state(self, facts: IndexFacts) -> PartSet:
        """Return their present state, with the statistics of all documents."""


class LocalGroup:
    """The open parts of one build of an index in this process: see `PartGroup`.

    until  last write that is read; by default all are
    """

    def __init__(self, facts: IndexFacts, until: LogPosition | None = None) -> None:
        terms = None if facts.terms is None else open_collection_terms(facts.terms[0])
        self._generations = [
            OpenGeneration(generation, terms, until) for generation in facts.generations
        ]

    def refresh(self) -> bool:
        """Read writes of other processes to all parts; return if there were any."""
        changes = [generation.refresh() for generation in self._generations]
        return any(changes)

    def write(
        self,
        number: int,
        function: Callable[Concatenate[OpenGeneration, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method of a part."""
        return function(self._generations[number], *args, **kwargs)

    def state(self, facts: IndexFacts) -> LocalParts:
        """Return the present state. Cost: O(V) if there are several parts."""
        statistics = None
        if facts.terms is not None:
            statistics = CollectionStatistics.of(
                [statistics_of(generation.state) for generation in self._generations], facts.lengths
            )
        parts = [
            generation.configure(facts.configuration, statistics)
            for generation in self._generations
        ]
        documents = sum(part.info.documents for part in parts)
        return LocalParts(facts.after((part.info.last for part in parts), documents), parts)


class OpenParts:
    """The parts of an index in their present state; thread-safe.

    The state is one immutable value, so that a search sees all parts with the same statistics.
    Synonyms and query settings belong to the index, not to a part, so that they change in all of
    them in one step.

    open_group  opens the parts of a build, by default in this process
    pinned      facts about the only build that is read; by default that in use is, and its writes
    """

    def __init__(
        self,
        path: Path,
        open_group: Callable[[IndexFacts], PartGroup] = LocalGroup,
        pinned: IndexFacts | None = None,
    ) -> None:
        self._path, self._open_group = path, open_group
        self.is_pinned = pinned is not None
        self._lock = threading.Lock()  # held while files are read
        self._swap_lock = threading.Lock()  # held briefly; guards writes of the state
        self._writing = threading.Lock()  # held while parts are written
        self._stamps = self._stamps_now()
        self._is_stale = False
        self.parts: PartSet  # the present state, also once it is closed
        self._group: PartGroup | None
        self.parts, self._group = self._of_current(lambda: self._open(pinned or self._read()))

    @property
    def group(self) -> PartGroup:
        """Return the open parts; StoreError once they are closed."""
        group = self._group
        self.parts.require_open()
        assert group is not None
        return group

    def _open(self, facts: IndexFacts) -> tuple[PartSet, PartGroup]:
        group = self._open_group(facts)
        return group.state(facts), group

    def _swap(self, parts: PartSet, group: PartGroup | None) -> None:
        """Replace the present state; StoreError if it was closed."""
        with self._swap_lock:
            self.parts.require_open()
            self.parts, self._group = parts, group

    def _of_current(self, read: Callable[[], T]) -> T:
        """Return what a function reads of the build in use.

        If it fails because builds have replaced and removed that meanwhile, it is called again.
        """
        while True:
            stamp = stamp_of(self._path / CURRENT)
            try:
                return read()
            except (StoreError, OSError):
                if stamp_of(self._path / CURRENT) in (stamp, None):
                    raise

    def _stamps_now(self) -> tuple[Stamp | None, Stamp | None]:
        return stamp_of(self._path / CURRENT), entry_stamp(self._path)

    def _read(self) -> IndexFacts:
        build = current_build(self._path)
        manifest = read_manifest(build)
        with read_entry(self._path) as entry:
            settings = stored_settings(entry, build.name, manifest.checked_settings())
            chosen = QueryConfiguration(stored_synonyms(entry), stored_rules(entry), settings)
        if not has_partitions(build):
            return IndexFacts(build, manifest, chosen, [build])
        _, *folders = generations_of_build(build)
        if not folders:
            raise StoreError(f"`{build}` was removed while it was opened; open the index again")
        *partitions, terms = folders
        lengths, of_terms = partitions_of(build).lengths, (terms, read_manifest(terms))
        return IndexFacts(build, manifest, chosen, partitions, lengths, of_terms)

    def refresh(self) -> bool:
        """Make writes and builds of other processes visible; return if there were any.

        Logs are read until none has changed, so that the state has all writes up to one of them.
        While another thread writes, nothing changes: all earlier writes are visible, and those of
        that thread will be in one step.
        """
        return self._refresh(is_to_write=False)

    def _refresh(self, *, is_to_write: bool) -> bool:
        with self._lock:
            self.parts.require_open()
            if self.is_pinned or self._writing.locked():
                return False
            return self._of_current(lambda: self._refreshed(is_to_write))

    def _refreshed(self, is_to_write: bool) -> bool:
        parts, group = self.parts, self.group
        stamps = self._stamps_now()
        facts = parts.facts if stamps == self._stamps else self._read()
        # Another build may have the name of one that was deleted.
        if facts.path != parts.facts.path or stamps[0] != self._stamps[0]:
            is_changed = True
            parts, group = self._open(facts)  # running calls keep the previous state
        else:
            is_changed = self._is_stale or facts.configuration != parts.facts.configuration
            self._is_stale = True  # until all parts were read
            # The log of an only part is read by the connection that writes it.
            while not (is_to_write and len(parts.parts) == 1) and group.refresh():
                is_changed = True
            if is_changed:
                parts = group.state(facts)
        self._swap(parts, group)
        self._stamps = stamps
        self._is_stale = False
        return is_changed

    def _configured_facts(self) -> IndexFacts:
        """Return the facts with the present configuration: `refresh` does nothing during a write.

        Unreadable rows change nothing; the next `refresh` raises their error.
        """
        facts, stamps = self.parts.facts, self._stamps_now()
        if stamps[0] == self._stamps[0] and stamps != self._stamps:
            with suppress(KlsaError, OSError):
                facts = facts._replace(configuration=self._read().configuration)
                self._stamps = stamps
        return facts

    def check_room(self, puts: int) -> None:
        """Raise WritingRefused if so many documents cannot be added, or a partition is full.

        Which documents a partition gets is not known yet.
        """
        count = len(self.parts.require_open().parts)
        room = puts if count == 1 else min(puts, 1)
        for number in range(count):
            self.group.write(number, OpenGeneration.check_room, room)

    def write(self, batch: Batch) -> WriteResult | None:
        """Write a batch to the parts; it is searchable on return.

        None, with nothing written, if another build is in use, whose vectors are of other models
        than those of the batch.

        Writers of all processes take turns, by the lock of the index. A write is atomic in each
        part. Documents for several partitions are checked before the first is written. If a
        partition cannot be written, StoreError says how many were; writing the same again completes
        it, as it does after a process was killed.
        """
        path = self.parts.facts.path.parent
        with writing(path):
            self._refresh(is_to_write=True)
            spaces = self.parts.facts.manifest.vectors
            if batch.spaces is not None and _models(batch.spaces) != _models(spaces):
                return None
            with self._writing:
                facts, group = self.parts.facts, self.group
                try:
                    results = self._write_parts(batch, group)
                finally:  # all becomes visible at once
                    with self._lock:
                        self._swap(group.state(self._configured_facts()), group)
            # PartitionMissing if a partition that was written does not answer.
            last = sum(part.info.last.seq for part in self.parts.parts)
        unknown = {id_ for result in results for id_ in result.unknown}
        return WriteResult(
            facts.path.name,
            last,
            added=sum(result.added for result in results),
            changed=sum(result.changed for result in results),
            deleted=sum(result.deleted for result in results),
            unknown=tuple(id_ for id_ in dict.fromkeys(batch.deletes) if id_ in unknown),
            warnings=tuple(warning for result in results for warning in result.warnings),
        )

    def _write_parts(self, batch: Batch, group: PartGroup) -> list[WriteResult]:
        """Write a batch to the parts, after checks if they are several."""
        parts, facts, results = self.parts.parts, self.parts.facts, list[WriteResult]()
        batches = batch.divided(len(parts))
        time = write_time()
        if len(batches) > 1:
            # Raises BadDocument: all partitions have the same spaces.
            list(of_spaces(batch.puts, parts[0].read(dimensions)))
            missing = [
                id_
                for number, of_part in batches.items()
                for id_ in group.write(number, OpenGeneration.check, of_part)
            ]
            if missing:
                unknown = {*missing}
                changes = (change.id for change in batch.changes)
                raise not_found([id_ for id_ in changes if id_ in unknown])
        for number, of_part in batches.items():
            try:
                results.append(group.write(number, OpenGeneration.write, of_part, time))
            except (KlsaError, OSError, MemoryError) as error:
                if not results:
                    raise
                folder = facts.generations[number].parent.name
                raise StoreError(
                    f"wrote to {len(results)} of {len(batches)} partitions of index "
                    f"`{facts.path.parent.name}`, not to `{folder}`: {error}; write the same again "
                    "to complete it"
                ) from error
        return results

    def close(self) -> None:
        """Release all files and memory."""
        with self._swap_lock:
            self.parts, self._group = replace(self.parts, parts=()), None


def _models(spaces: Iterable[SpaceEntry]) -> dict[str, tuple[str | None, int]]:
    return {space.name: (space.fingerprint, space.dimension) for space in spaces}


def reopened(path: Path, tokenizer: str | None, moment: Moment | None) -> OpenParts:
    """Open a pickled index, or its generation as it was at the moment of a snapshot.

    path       that it had
    tokenizer  trusted by the process that pickled the index; unpickling trusts that process
    IndexNotFound if there is no such index, or another build has the path of the generation.
    """
    if tokenizer is not None:
        trust(tokenizer)
    if moment is None:
        if not is_index(path.parent):
            raise IndexNotFound(
                f"no index at `{path.parent}`, the path of the pickled index; restore the folder, "
                "or open the index with open_index"
            )
        return OpenParts(path.parent)
    manifest, last, configuration = moment
    # Another build may have the name of one that was deleted, and its date and duration.
    if not path.is_dir() or read_manifest(path) != manifest:
        raise IndexNotFound(
            f"generation `{path}` of the pickled snapshot no longer exists; open the index and "
            "take a new snapshot"
        )
    facts = IndexFacts(path, manifest, configuration, [path])
    return OpenParts(path.parent, partial(LocalGroup, until=last), facts)
