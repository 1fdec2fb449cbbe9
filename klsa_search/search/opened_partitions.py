"""The part of an index in partitions that replaces its state, and reads documents from it."""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.tokenizers import trust
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocIds
from klsa_search.core.config import Settings
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.search.collection_statistics import CollectionStatistics
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.partition import Partition
from klsa_search.search.partition_doc_ids import global_doc_ids, local_doc_id
from klsa_search.search.partition_limits import UnsupportedInPartitions, unsupported
from klsa_search.search.pickling import check_process
from klsa_search.search.state import State
from klsa_search.search.writing import Drift
from klsa_search.storage.checked_file import Stamp, stamp_of
from klsa_search.storage.collection_terms import open_collection_terms
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import PARTITIONS, SYNONYMS
from klsa_search.storage.partitions import (
    PartitionSet,
    generations_of,
    is_partitioned,
    partition_of,
    read_partitions,
    terms_generation,
    with_files,
)
from klsa_search.storage.synonyms import read_synonyms

T = TypeVar("T")


class PartitionFiles(NamedTuple):
    """The small files of an index in partitions, which all partitions have in common.

    terms  generation of their terms, and its manifest
    """

    stamps: tuple[Stamp | None, ...]
    found: PartitionSet
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


class OpenedPartitions(UnsupportedInPartitions):
    """The state of an open index in partitions, and its documents.

    The state is one immutable value, so that a search sees all partitions with the same statistics.
    Synonyms and query settings are files of the index, not of a partition, so that they change in
    all of them in one step.
    """

    def __init__(self, path: Path, *, models: Models = NO_MODELS) -> None:
        self._path, self._models, self._process = path, models, os.getpid()
        self._lock = threading.Lock()  # held while the state is replaced
        self._writing = threading.Lock()  # held while partitions are written
        self._is_view = False
        self._state: OpenedSet | None = self._of_current(lambda: self._open(self._read(None)))

    def _of_current(self, read: Callable[[], T]) -> T:
        """Return what a function reads of the partitions in use.

        If it fails because a build has replaced and removed them meanwhile, it is called again.
        """
        while True:
            stamp = stamp_of(self._path / PARTITIONS)
            try:
                return read()
            except (IndexDamaged, IndexNotFound, OSError):
                if stamp_of(self._path / PARTITIONS) in (stamp, None):
                    raise

    def _read(self, before: PartitionFiles | None) -> PartitionFiles:
        """Read the files of the index, unless they are those read before."""
        stamps = stamp_of(self._path / PARTITIONS), stamp_of(self._path / SYNONYMS)
        if before is not None and stamps == before.stamps:
            return before
        if not is_partitioned(self._path):
            raise IndexNotFound(
                f"`{self._path}` no longer has partitions; open it again if it was rebuilt with "
                "one partition"
            )
        found = read_partitions(self._path)
        terms = terms_generation(self._path / found.folders[0])
        synonyms = read_synonyms(self._path)
        return PartitionFiles(stamps, found, synonyms, (terms, read_manifest(terms)))

    def _open(self, files: PartitionFiles) -> OpenedSet:
        """Open all partitions."""
        folders = generations_of(self._path, files.found)
        terms = open_collection_terms(files.terms[0])
        return self._weighed(files, tuple(Partition(folder, terms) for folder in folders))

    @staticmethod
    def _weighed(files: PartitionFiles, partitions: tuple[Partition, ...]) -> OpenedSet:
        """Return the present state, with the statistics of all documents. Cost: O(V)."""
        found = files.found
        settings = found.current_settings()
        own = [each.statistics() for each in partitions]
        statistics = CollectionStatistics.of(own, found.length)
        for each in partitions:
            each.configure(files.synonyms, settings)
            each.weigh_by(statistics)
        return OpenedSet(partitions, tuple(each.snapshot() for each in partitions), files)

    def _now(self) -> OpenedSet:
        check_process(self._process, self.path)
        if self._state is None:
            raise StoreError(f"index `{self.name}` was closed; open it again")
        return self._state

    def _opened(self) -> NoReturn:
        self._now()
        raise unsupported(self.name, "this")

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Return read-only views of the partitions in one state, by number."""
        return self._now().views

    @property
    def path(self) -> Path:
        """Return the file that names the partitions, in the folder of the index."""
        return self._path / PARTITIONS

    @property
    def generation(self) -> str:
        """Return the name of the build."""
        return self._now().shared.generation

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of all documents of the build, with the files of all partitions."""
        return with_files(self._path, self._now().shared.manifest, self.generations)

    @property
    def generations(self) -> dict[Path, Manifest]:
        """Return the manifests of the partitions and of their terms, by their folders."""
        path, manifest = self._now().files.terms
        return {**{each.path: each.manifest for each in self.partitions}, path: manifest}

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
        found = [each.last_write for each in self.partitions]
        return LogPosition(sum(each.seq for each in found), undos=sum(each.undos for each in found))

    @property
    def drift(self) -> Drift:
        """Return the drift of all partitions from their builds."""
        drifts = [each.drift for each in self.partitions]
        names = ("added", "deleted", "passed", "words", "unseen", "bytes")
        return Drift(**{name: sum(getattr(each, name) for each in drifts) for name in names})

    @property
    def fields(self) -> Fields:
        """Metadata fields of the first partition: types are those of all."""
        return self.partitions[0].fields

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms of words and sequences of words: see `set_synonyms`."""
        return self._now().files.synonyms

    def __len__(self) -> int:
        """Return the number of live documents."""
        return sum(map(len, self.partitions))

    def __repr__(self) -> str:
        """Return name, number of partitions and number of documents."""
        count = len(self.partitions)
        return f"<Index {self.name}: {len(self)} documents in {count} partitions>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        """Pickle by path; StoreError for a snapshot."""
        if self._is_view:
            raise StoreError(
                "a snapshot of an index in partitions cannot be pickled; pickle the index itself"
            )
        return _reopen, (type(self), self._path.absolute(), self.settings.tokenizer)

    def refresh(self) -> bool:
        """Make writes and builds of other processes visible; return if any were.

        Logs are read until none has changed, so that the state has all writes up to one of them.
        While another thread writes, nothing changes: all earlier writes are visible, and those of
        that thread will be in one step.
        """
        if self._is_view:
            self._now()
            return False
        with self._lock:
            now = self._now()
            if self._writing.locked():
                return False
            self._state = self._of_current(lambda: self._refreshed(now))
            return self._state is not now

    def _refreshed(self, now: OpenedSet) -> OpenedSet:
        """Return the state with all writes and builds; the present one if there were none."""
        files = self._read(now.files)
        if files.found.folders != now.shared.folders:
            return self._open(files)
        is_written = False
        while sum(each.refresh() for each in now.partitions):  # all of them
            is_written = True
        if files is now.files and not is_written:
            return now
        return self._weighed(files, now.partitions)

    def snapshot(self) -> Self:
        """Return a read-only view of the present state; it closes with this index."""
        self._now()
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, _is_view=True)
        return view

    def _check_writable(self) -> None:
        """Raise StoreError if the index is a snapshot, or closed."""
        self._now()
        if self._is_view:
            raise StoreError("a snapshot is read-only; write to the index itself")

    def _of(self, id_: str) -> Partition:
        """Return the view of the partition of an ID."""
        views = self._now().views
        return views[partition_of(id_, len(views))]

    def document(self, id: str) -> Document:  # noqa: A002 - as in `Index`
        """Return the document with this ID as it was indexed; DocumentNotFound."""
        return self._of(id).document(id)

    def ids(self, doc_ids: Iterable[int] | None = None) -> list[str]:
        """Return the IDs of documents by doc id, by default of all in the order of the source."""
        if doc_ids is None:
            return list(
                self._in_order(lambda _, state: state.documents.ids(state.documents.live_doc_ids()))
            )
        return self._read_by_doc_id(doc_ids, lambda view, own: view.ids(own))

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of documents by ID: see `global_doc_ids`; DocumentNotFound."""
        views = self._now().views
        found = []
        for id_ in ids:
            number = partition_of(id_, len(views))
            found += global_doc_ids(number, np.array(views[number].doc_ids([id_]))).tolist()
        return found

    def documents(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents as they were indexed, by doc id: see `Index.documents`."""
        return self._read_by_doc_id(doc_ids, lambda view, own: view.documents(own))

    def live_doc_ids(self) -> DocIds:
        """Return the doc ids of all live documents, in the order of `ids`: (n,) int64."""

        def own(number: int, state: State) -> list[int]:
            live = np.array(state.documents.live_doc_ids(), np.int64)
            found: list[int] = global_doc_ids(number, live).tolist()
            return found

        return np.fromiter(self._in_order(own), np.int64)

    def _read_by_doc_id(
        self, doc_ids: Iterable[int], read: Callable[[Partition, list[int]], Sequence[T]]
    ) -> list[T]:
        """Return what partitions read for their own doc ids, in order."""
        views, places = self._now().views, [local_doc_id(int(each)) for each in doc_ids]
        if any(partition >= len(views) for partition, _ in places):
            raise IndexError(f"index `{self.name}` has {len(views)} partitions")
        found: list[Iterator[T]] = [
            iter(read(view, [own for partition, own in places if partition == number]))
            for number, view in enumerate(views)
        ]
        return [next(found[partition]) for partition, _ in places]

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
            for number, state in enumerate(self._now().states)
        ]
        merged = heapq.merge(*ordered, key=itemgetter(0, 1))
        return (value for _, _, value in merged)

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError."""
        state, self._state = self._state, None
        if state is not None and not self._is_view:
            for each in state.partitions:
                each.close()


def _ordinals(state: State) -> Iterator[int]:
    """Yield the numbers by which the live documents of a partition are ordered."""
    live = np.array(state.documents.live_doc_ids(), np.int64)
    return iter(state.snapshot.ordinals_of(live).tolist())


def _reopen(cls: Callable[[Path], Index], path: Path, tokenizer: str | None) -> Index:
    """Open the index that was pickled; it trusts the tokenizer of the pickling process."""
    if tokenizer is not None:
        trust(tokenizer)
    return cls(path)
