"""The reader of an index in partitions: holds their state, and replaces it by refreshes."""

from __future__ import annotations

import heapq
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds
from klsa_search.core.config import Settings
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.kernels.vector_space import VectorSpaces
from klsa_search.search.collection_statistics import CollectionStatistics
from klsa_search.search.partition import LocalSearches, Partition
from klsa_search.search.partition_doc_ids import global_doc_ids, local_doc_id
from klsa_search.search.partitioned_search import PartitionSearches, unsupported
from klsa_search.search.reader import check_process
from klsa_search.search.state import State
from klsa_search.search.writing import Drift
from klsa_search.storage.catalog import entry_stamp
from klsa_search.storage.collection_terms import open_collection_terms
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import PARTITIONS
from klsa_search.storage.partitions import (
    PartitionSet,
    generations_of,
    is_partitioned,
    partition_of,
    read_partitions,
    stamp_of,
    terms_generation,
    with_files,
)
from klsa_search.storage.synonyms import read_synonyms

T = TypeVar("T")


class PartitionFiles(NamedTuple):
    """What all partitions of an index have in common.

    terms  generation of their terms, and its manifest
    """

    found: PartitionSet
    settings: Settings
    synonyms: Mapping[str, Sequence[str]]
    terms: tuple[Path, Manifest]


@dataclass(frozen=True)
class OpenedSet:
    """The partitions of an index in one state: statistics of all weigh the words of each.

    partitions  open, to refresh them and to write to them
    views       of the state of each, which searches read
    """

    partitions: tuple[Partition, ...]
    views: tuple[Partition, ...]
    files: PartitionFiles

    @property
    def states(self) -> tuple[State, ...]:
        """Return the states of the partitions."""
        return tuple(view.state() for view in self.views)

    @property
    def shared(self) -> PartitionSet:
        """Return the description of the partitions."""
        return self.files.found


class PartitionsOpener(Protocol):
    """Opens the partitions of an index, in this process or in others."""

    def open(self, path: Path, files: PartitionFiles) -> OpenedSet:
        """Open all partitions of the index in a folder."""

    def weighed(self, files: PartitionFiles, partitions: tuple[Partition, ...]) -> OpenedSet:
        """Return the present state of open partitions, with the statistics of all documents."""

    def searches(self, opened: OpenedSet) -> PartitionSearches:
        """Return a new search in one state of all partitions."""


class LocalPartitions:
    """Opens the partitions of an index in this process."""

    def open(self, path: Path, files: PartitionFiles) -> OpenedSet:
        """Open all partitions of the index in a folder."""
        folders = generations_of(path, files.found)
        terms = open_collection_terms(files.terms[0])
        return self.weighed(files, tuple(Partition.open(folder, terms) for folder in folders))

    def weighed(self, files: PartitionFiles, partitions: tuple[Partition, ...]) -> OpenedSet:
        """Return the present state, with the statistics of all documents. Cost: O(V)."""
        statistics = CollectionStatistics.of(
            [partition.statistics() for partition in partitions], files.found.length
        )
        for partition in partitions:
            partition.configure(files.synonyms, files.settings)
            partition.weigh_by(statistics)
        return OpenedSet(partitions, tuple(partition.view() for partition in partitions), files)

    def searches(self, opened: OpenedSet) -> PartitionSearches:
        """Return a new search in one state of all partitions."""
        return LocalSearches(opened.states)


class PartitionsReader:
    """Reads an index in partitions: see `Reader`.

    The state is one immutable value, so that a search sees all partitions with the same statistics.
    Synonyms and query settings belong to the index, not to a partition, so that they change in all
    of them in one step.
    """

    def __init__(
        self, path: Path, opener: PartitionsOpener, opened: OpenedSet | None = None
    ) -> None:
        self._path, self._opener, self._process = path, opener, os.getpid()
        self._lock = threading.Lock()  # held while the state is replaced
        self._writing = threading.Lock()  # held while partitions are written
        self._is_view = opened is not None
        self._stamps: object = None  # of the files that were read
        self._current: OpenedSet | None = opened or self._of_current(
            lambda: self._open(self._read(None))
        )

    @classmethod
    def open(cls, path: Path) -> PartitionsReader:
        """Open the index in a folder in this process."""
        return cls(path, LocalPartitions())

    @property
    def is_view(self) -> bool:
        """Return whether it reads one state only."""
        return self._is_view

    def _open(self, files: PartitionFiles) -> OpenedSet:
        return self._opener.open(self._path, files)

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

    def _read(self, before: PartitionFiles | None) -> PartitionFiles:
        """Read the files of the index, unless they are those read before."""
        stamps = stamp_of(self._path), entry_stamp(self._path)
        if before is not None and stamps == self._stamps:
            return before
        if not is_partitioned(self._path):
            raise IndexNotFound(
                f"`{self._path}` no longer has partitions; open it again if it was rebuilt with "
                "one partition"
            )
        partition_set = read_partitions(self._path)
        terms = terms_generation(self._path / partition_set.folders[0])
        settings, synonyms = partition_set.settings(self._path), read_synonyms(self._path)
        files = PartitionFiles(partition_set, settings, synonyms, (terms, read_manifest(terms)))
        self._stamps = stamps
        return before if files == before else files

    def now(self) -> OpenedSet:
        """Return the present state; StoreError once it is closed."""
        check_process(self._process, self.path)
        if self._current is None:
            raise StoreError(f"index `{self.name}` was closed; open it again")
        return self._current

    def state(self, operation: str = "this") -> State:
        """Raise PartitionsUnsupported: each partition has a state of its documents."""
        self.now()
        raise unsupported(self.name, operation)

    def searches(self) -> PartitionSearches:
        """Return a new search in the present state of all partitions."""
        return self._opener.searches(self.now())

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Return read-only views of the partitions in one state, by number."""
        return self.now().views

    @property
    def name(self) -> str:
        """Return the name of the index."""
        return self._path.name

    @property
    def path(self) -> Path:
        """Return the file that names the partitions, in the folder of the index."""
        return self._path / PARTITIONS

    @property
    def generation(self) -> str:
        """Return the name of the build."""
        return self.now().shared.generation

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of all documents of the build, with the files of all partitions."""
        return with_files(self._path, self.now().shared.manifest, self.generations)

    @property
    def generations(self) -> dict[Path, Manifest]:
        """Return the manifests of the partitions and of their terms, by their folders."""
        path, manifest = self.now().files.terms
        return {
            **{partition.path: partition.manifest for partition in self.partitions},
            path: manifest,
        }

    @property
    def settings(self) -> Settings:
        """Return the settings of the index."""
        return self.partitions[0].settings

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyser, which turns texts into terms."""
        return self.partitions[0].analyzer

    @property
    def last_write(self) -> LogPosition:
        """Return the number of writes to all partitions that are visible to searches.

        Writes to an index follow one another, and a state has all writes up to one of them, so
        another process that has this number, or a larger one, has the same writes.
        """
        positions = [partition.last_write for partition in self.partitions]
        return LogPosition(
            sum(position.seq for position in positions),
            undos=sum(position.undos for position in positions),
        )

    @property
    def drift(self) -> Drift:
        """Return the drift of all partitions from their builds."""
        drifts = [partition.drift for partition in self.partitions]
        names = ("added", "deleted", "passed", "words", "unseen", "bytes")
        return Drift(**{name: sum(getattr(part, name) for part in drifts) for name in names})

    @property
    def fields(self) -> Fields:
        """Metadata fields of the first partition: types are those of all."""
        return self.partitions[0].fields

    @property
    def misfits(self) -> dict[str, int]:
        """Return the numbers of documents whose value of a field does not fit, by field."""
        counts: Counter[str] = Counter()
        for partition in self.partitions:
            counts.update(partition.misfits)
        return dict(counts)

    @property
    def max_doc(self) -> int:
        """Return the number of doc ids of all partitions, including deleted documents."""
        return sum(partition.max_doc for partition in self.partitions)

    @property
    def segments(self) -> int:
        """Return the number of segments of the postings of all partitions."""
        return sum(partition.segments for partition in self.partitions)

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of words and sequences of words: see `set_synonyms`."""
        return self.now().files.synonyms

    def __len__(self) -> int:
        """Return the number of live documents."""
        return sum(map(len, self.partitions))

    def refresh(self) -> bool:
        """Make writes and builds of other processes visible; return if any were.

        Logs are read until none has changed, so that the state has all writes up to one of them.
        While another thread writes, nothing changes: all earlier writes are visible, and those of
        that thread will be in one step.
        """
        if self._is_view:
            self.now()
            return False
        with self._lock:
            now = self.now()
            if self._writing.locked():
                return False
            self._current = self._of_current(lambda: self._refreshed(now))
            return self._current is not now

    def _refreshed(self, now: OpenedSet) -> OpenedSet:
        """Return the state with all writes and builds; the present one if there were none."""
        files = self._read(now.files)
        if files.found.folders != now.shared.folders:
            return self._open(files)
        is_written = False
        while sum(partition.refresh() for partition in now.partitions):  # all of them
            is_written = True
        if files is now.files and not is_written:
            return now
        return self._opener.weighed(files, now.partitions)

    def view(self) -> PartitionsReader:
        """Return a reader of the present state, which closes with this one."""
        return PartitionsReader(self._path, self._opener, self.now())

    def check_writable(self) -> None:
        """Raise StoreError if it is a view, or closed."""
        self.now()
        if self._is_view:
            raise StoreError("a snapshot is read-only; write to the index itself")

    def check_room(self, puts: int) -> None:
        """Do nothing: each partition checks its documents when it is written."""

    def expect_writes(self) -> None:
        """Do nothing: partitions save what they fold when they are written."""

    def save(self) -> None:
        """Do nothing: see `expect_writes`."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Return a context to write to partitions; all becomes visible at its end, at once."""
        with self._writing:
            try:
                yield
            finally:
                with self._lock:
                    now = self.now()
                    self._current = self._opener.weighed(now.files, now.partitions)

    def partition_of(self, id_: str) -> Partition:
        """Return the view of the partition of an ID."""
        views = self.now().views
        return views[partition_of(id_, len(views))]

    def document(self, id_: str) -> Document:
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self.partition_of(id_).document(id_)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, by default of all in the order of the source."""
        if doc_ids is None:
            return list(
                self._in_order(lambda _, state: state.documents.ids(state.documents.live_doc_ids()))
            )
        return self.read_by_doc_id(doc_ids, lambda view, local_ids: view.ids(local_ids))

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID: see `global_doc_ids`; DocumentNotFound."""
        views = self.now().views
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

        def own(number: int, state: State) -> list[int]:
            live = np.array(state.documents.live_doc_ids(), np.int64)
            numbers: list[int] = global_doc_ids(number, live).tolist()
            return numbers

        return np.fromiter(self._in_order(own), np.int64)

    def read_by_doc_id(
        self, doc_ids: Iterable[int], read: Callable[[Partition, list[int]], Sequence[T]]
    ) -> list[T]:
        """Return what partitions read for their own doc ids, in order."""
        views, places = self.now().views, [local_doc_id(int(doc_id)) for doc_id in doc_ids]
        if any(partition >= len(views) for partition, _ in places):
            raise IndexError(f"index `{self.name}` has {len(views)} partitions")
        values: list[Iterator[T]] = [
            iter(read(view, [doc_id for partition, doc_id in places if partition == number]))
            for number, view in enumerate(views)
        ]
        return [next(values[partition]) for partition, _ in places]

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
            for number, state in enumerate(self.now().states)
        ]
        merged = heapq.merge(*ordered, key=itemgetter(0, 1))
        return (value for _, _, value in merged)

    def document_readers(self) -> list[DocumentReader]:
        """Return the readers of the present documents of all partitions."""
        return [state.documents for state in self.now().states]

    def vector_spaces(self) -> VectorSpaces:
        """Return the spaces of vectors of all partitions by name."""
        spaces = [state.snapshot.vectors for state in self.now().states]
        return {name: space for part in spaces for name, space in part.items()}

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError."""
        state, self._current = self._current, None
        if state is not None and not self._is_view:
            for partition in state.partitions:
                partition.close()


def _ordinals(state: State) -> Iterator[int]:
    """Yield the numbers by which the live documents of a partition are ordered."""
    live = np.array(state.documents.live_doc_ids(), np.int64)
    return iter(state.snapshot.ordinals_of(live).tolist())
