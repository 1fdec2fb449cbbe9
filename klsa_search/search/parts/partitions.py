"""The open partitions of an index: hold their state, replace it by refreshes, and write to them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import of_spaces
from klsa_search.errors import IndexDamaged, IndexNotFound, KlsaError, StoreError
from klsa_search.search.batches import Changes, WriteResult
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.parts.generation import GenerationWriter, OpenGeneration
from klsa_search.search.parts.part_set import IndexFacts, LocalParts, Part, PartSet
from klsa_search.search.parts.reading import dimensions
from klsa_search.search.state.log_tailer import QueryConfiguration
from klsa_search.storage.catalog_entry import entry_stamp
from klsa_search.storage.current import current_build, has_partitions
from klsa_search.storage.generations import writing
from klsa_search.storage.log import LogPosition
from klsa_search.storage.log_writer import write_time
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.partitions import (
    PartitionSet,
    generations_of,
    open_collection_terms,
    partition_of,
    partitions_of,
    stamp_of,
    terms_generation,
)
from klsa_search.storage.rules import read_rules
from klsa_search.storage.synonyms import read_synonyms

P = ParamSpec("P")
T = TypeVar("T")


class PartitionFiles(NamedTuple):
    """What all partitions of an index have in common.

    path   folder of the index
    terms  generation of their terms, and its manifest
    stamps   of the files that were read
    """

    path: Path
    partition_set: PartitionSet
    configuration: QueryConfiguration
    terms: tuple[Path, Manifest]
    stamps: object


class PartitionGroup(Protocol):
    """The open partitions of one build of an index, in this process or in others."""

    def refresh(self) -> bool:
        """Read writes of other processes to all partitions; return if there were any."""

    def write(
        self,
        number: int,
        function: Callable[Concatenate[GenerationWriter, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method of the writer of a partition, where this is."""

    def weighed(self, files: PartitionFiles) -> PartSet:
        """Return their present state, with the statistics of all documents."""

    def close(self) -> None:
        """Release all files and memory."""


class LocalPartitions:
    """The open partitions of one build of an index in this process: see `PartitionGroup`."""

    def __init__(self, files: PartitionFiles) -> None:
        terms = open_collection_terms(files.terms[0])
        self._writers = [
            GenerationWriter(OpenGeneration.open(folder, terms=terms))
            for folder in generations_of(files.path, files.partition_set)
        ]

    def refresh(self) -> bool:
        """Read writes of other processes to all partitions; return if there were any."""
        return sum(writer.generation.refresh() for writer in self._writers) > 0  # all of them

    def write(
        self,
        number: int,
        function: Callable[Concatenate[GenerationWriter, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a method of the writer of a partition."""
        return function(self._writers[number], *args, **kwargs)

    def weighed(self, files: PartitionFiles) -> LocalParts:
        """Return the present state, with the statistics of all documents. Cost: O(V)."""
        partitions = [writer.generation for writer in self._writers]
        statistics = CollectionStatistics.of(
            [partition.part.statistics() for partition in partitions], files.partition_set.lengths
        )
        parts = [partition.weigh(statistics, files.configuration) for partition in partitions]
        positions = [part.info.last for part in parts]
        return LocalParts(facts_of(files, statistics, positions), parts)

    def close(self) -> None:
        """Release all files and memory."""
        for writer in self._writers:
            writer.generation.close()


def facts_of(
    files: PartitionFiles, statistics: CollectionStatistics, positions: Iterable[LogPosition]
) -> IndexFacts:
    """Return the facts about partitions in one state.

    Writes to an index follow one another, and a state has all writes up to one of them, so another
    process with this number of writes to all partitions, or a larger one, has the same writes.

    positions  last write of each partition
    """
    seqs, undos = zip(*positions, strict=True)
    return IndexFacts(
        files.path / files.partition_set.generation,
        files.partition_set.manifest,
        files.configuration,
        statistics.documents,
        LogPosition(sum(seqs), sum(undos)),
        files.terms,
    )


class OpenPartitions:
    """The partitions of an index: see `Source`; thread-safe.

    The state is one immutable value, so that a search sees all partitions with the same statistics.
    Synonyms and query settings belong to the index, not to a partition, so that they change in all
    of them in one step.

    opens  the partitions that files name
    """

    def __init__(self, path: Path, opens: Callable[[PartitionFiles], PartitionGroup]) -> None:
        self._path, self._opens = path, opens
        self._lock = threading.Lock()  # held while the state is replaced
        self._writing = threading.Lock()  # held while partitions are written
        self._of_current(lambda: self._use(self._read(self._stamps_now())))

    @property
    def parts(self) -> PartSet:
        """Return the present state, also once it is closed."""
        return self._parts

    def _use(self, files: PartitionFiles) -> None:
        """Open the partitions that files name, and use them."""
        group = self._opens(files)
        self._parts, self.group, self.files = group.weighed(files), group, files
        self._is_stale = False

    def _of_current(self, read: Callable[[], T]) -> T:
        """Return what a function reads of the partitions in use.

        If it fails because a build has replaced and removed them meanwhile, it is called again.
        """
        while True:
            stamp = stamp_of(self._path)
            try:
                return read()
            except (IndexDamaged, IndexNotFound, OSError):
                if stamp_of(self._path) in (stamp, None):
                    raise

    def _stamps_now(self) -> object:
        return stamp_of(self._path), entry_stamp(self._path)

    def _read(self, stamps: object) -> PartitionFiles:
        """Read the files of the index."""
        build = current_build(self._path)
        if not has_partitions(build):
            raise IndexNotFound(
                f"`{self._path}` no longer has partitions; open it again if it was rebuilt with "
                "one partition"
            )
        partition_set = partitions_of(build)
        terms = terms_generation(self._path / partition_set.folders[0])
        configuration = QueryConfiguration(
            read_synonyms(self._path), read_rules(self._path), partition_set.settings(self._path)
        )
        return PartitionFiles(
            self._path, partition_set, configuration, (terms, read_manifest(terms)), stamps
        )

    def refresh(self) -> bool:
        """Make writes and builds of other processes visible; return if there were any.

        Logs are read until none has changed, so that the state has all writes up to one of them.
        While another thread writes, nothing changes: all earlier writes are visible, and those of
        that thread will be in one step.
        """
        with self._lock:
            self._parts.opened()
            return not self._writing.locked() and self._of_current(self._refreshed)

    def _refreshed(self) -> bool:
        """Read all writes and builds; return if there were any."""
        before, stamps = self.files, self._stamps_now()
        files = before if stamps == before.stamps else self._read(stamps)
        if files.partition_set.folders != before.partition_set.folders:
            self._use(files)
            return True
        is_changed = self._is_stale or files._replace(stamps=before.stamps) != before
        self._is_stale = True  # until all partitions were read
        while self.group.refresh():
            is_changed = True
        if is_changed:
            self._parts = self.group.weighed(files)
        self.files, self._is_stale = files, False
        return is_changed

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Return a context to write to partitions; all becomes visible at its end, at once."""
        with self._writing:
            try:
                yield
            finally:
                with self._lock:
                    self._parts.opened()
                    self._parts = self.group.weighed(self.files)

    def close(self) -> None:
        """Release all files and memory."""
        with self._lock:
            self._parts = replace(self._parts, parts=())
            self.group.close()


_Writes = Mapping[int, Callable[[str], WriteResult]]
"""Writes by number of the partition, which take their time."""


class PartitionsWriter:
    """Writes to the partitions of an index, with the methods of `GenerationWriter`.

    Writers of all processes take turns, by the lock of the index. A write is atomic in each
    partition. Documents are checked before the first is written. If a partition cannot be written,
    StoreError says how many were; writing the same again completes it, as it does after a process
    was killed.
    """

    def __init__(self, opened: OpenPartitions) -> None:
        self._opened = opened

    def check_room(self, puts: int) -> None:
        """Raise WritingRefused if a partition is full: which documents it gets is not known yet."""
        opened = self._opened
        for number in range(len(opened.parts.opened().parts)):
            opened.group.write(number, GenerationWriter.check_room, min(puts, 1))

    def write(self, puts: Sequence[Document], deletes: Sequence[str]) -> WriteResult:
        """Write documents and deletions to their partitions, atomically in each."""

        def writes(parts: Sequence[Part], group: PartitionGroup) -> _Writes:
            puts_of = _divided(puts, lambda put: put.id, len(parts))
            deletes_of = _divided(deletes, str, len(parts))
            _ = list(of_spaces(puts, parts[0].read(dimensions)))  # in all partitions alike
            for number, documents in puts_of.items():
                group.write(number, GenerationWriter.check, documents)
            return {
                number: partial(
                    group.write,
                    number,
                    GenerationWriter.write,
                    puts_of.get(number, ()),
                    deletes_of.get(number, ()),
                )
                for number in sorted({*puts_of, *deletes_of})
            }

        return self._write(writes)

    def patch(self, changes: Sequence[Changes], embedded: Mapping[str, Document]) -> WriteResult:
        """Merge changes into documents, atomically in each partition: see `GenerationWriter`."""

        def writes(parts: Sequence[Part], group: PartitionGroup) -> _Writes:
            changes_of = _divided(changes, lambda change: change.id, len(parts))
            if len(changes_of) > 1:
                for number, of_partition in changes_of.items():
                    group.write(number, GenerationWriter.check_patch, of_partition)
            return {
                number: partial(
                    group.write, number, GenerationWriter.patch, changes_of[number], embedded
                )
                for number in sorted(changes_of)
            }

        return self._write(writes)

    def _write(self, writes: Callable[[Sequence[Part], PartitionGroup], _Writes]) -> WriteResult:
        """Write to partitions, in order, what a function returns for the present state."""
        opened = self._opened
        path = opened.parts.facts.path.parent
        with writing(path):
            opened.refresh()
            results: list[WriteResult] = []
            with opened.writing():
                planned, time = writes(opened.parts.parts, opened.group), write_time()
                for number, write in planned.items():
                    try:
                        results.append(write(time))
                    except (KlsaError, OSError, MemoryError) as error:
                        if not results:
                            raise
                        folder = opened.files.partition_set.folders[number]
                        raise StoreError(
                            f"wrote to {len(results)} of {len(planned)} partitions of index "
                            f"`{path.name}`, not to `{folder}`: {error}; write the same again to "
                            "complete it"
                        ) from error
            parts = opened.parts
            # PartitionMissing if a partition that was written does not answer.
            last = sum(part.info.last.seq for part in parts.parts)
        return WriteResult(
            parts.facts.path.name,
            last,
            sum(result.added for result in results),
            sum(result.deleted for result in results),
            tuple(warning for result in results for warning in result.warnings),
        )


def _divided(items: Iterable[T], id_of: Callable[[T], str], count: int) -> dict[int, list[T]]:
    """Return items by the number of the partition of their ID, of so many partitions."""
    divided: dict[int, list[T]] = {}
    for item in items:
        divided.setdefault(partition_of(id_of(item), count), []).append(item)
    return divided
