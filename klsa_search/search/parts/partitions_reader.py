"""The reader of an index in partitions: holds their state, and replaces it by refreshes."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.tokenizers import trust
from klsa_search.core.cached import delegated
from klsa_search.core.config import Settings
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.search.filters.masks import FilterLike, key_of
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.parts.generation_reader import GenerationReader, opened_before_fork
from klsa_search.search.parts.opened_partitions import (
    LocalPartitions,
    OpenedSet,
    PartitionFiles,
    PartitionsOpener,
    unsupported,
)
from klsa_search.search.parts.part_search import PartSearches
from klsa_search.search.state.log_tailer import QueryConfiguration
from klsa_search.search.state.state import State
from klsa_search.search.writing import Drift
from klsa_search.storage.catalog_entry import entry_stamp
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.log import LogPosition
from klsa_search.storage.manifest import Manifest, SpaceEntry, read_manifest
from klsa_search.storage.names import PARTITIONS
from klsa_search.storage.partitions import (
    is_partitioned,
    read_partitions,
    stamp_of,
    terms_generation,
    with_files,
)
from klsa_search.storage.rules import Rule, read_rules
from klsa_search.storage.synonyms import read_synonyms

T = TypeVar("T")

RESTRICTED: Final = 64
"""Restricted views of one state that are cached."""


class PartitionsReader:
    """Reads an index in partitions, with the methods of `StateReader`.

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
        return self._opener.open(files)

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
        configuration = QueryConfiguration(
            read_synonyms(self._path), read_rules(self._path), partition_set.settings(self._path)
        )
        files = PartitionFiles(
            self._path, partition_set, configuration, (terms, read_manifest(terms))
        )
        self._stamps = stamps
        return before if files == before else files

    def now(self) -> OpenedSet:
        """Return the present state; StoreError once it is closed."""
        if self._process != os.getpid():
            raise opened_before_fork(self.path)
        if self._current is None:
            raise StoreError(f"index `{self.name}` was closed; open it again")
        return self._current

    def state(self, operation: str = "this") -> State:
        """Raise PartitionsUnsupported: each partition has a state of its documents."""
        self.now()
        raise unsupported(self.name, operation)

    def searches(self, models: Models = NO_MODELS) -> PartSearches:
        """Return a new search in the present state of all partitions."""
        return self._opener.searches(self.now())

    @property
    def partitions(self) -> tuple[GenerationReader, ...]:
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
        return self.now().files.configuration.synonyms

    @property
    def rules(self) -> Sequence[Rule]:
        """Return the rules of the index."""
        return self.now().files.configuration.rules

    @property
    def passage_count(self) -> None:
        """Return None: documents of partitions are not divided into passages."""

    @property
    def built_spaces(self) -> Sequence[SpaceEntry]:
        """Return the spaces of vectors of the build, with the fingerprints of their models."""
        return self.now().shared.manifest.vectors

    @property
    def dimensions(self) -> Mapping[str, int]:
        """Return the dimensions of the present spaces of vectors, by name."""
        return self.partitions[0].dimensions

    @property
    def space_entries(self) -> tuple[SpaceEntry, ...]:
        """Return the spaces of vectors, with the numbers of live documents."""
        return self.now().space_entries

    def __len__(self) -> int:
        """Return the number of live documents."""
        return sum(map(len, self.partitions))

    def refresh(self) -> bool:
        """Make writes and new generations of other processes visible; return if any were.

        Searches continue meanwhile; running ones see the state at their start. StoreError if the
        index is or gets closed. Cost: 0.5 ms if nothing changed, else see `add`.

        >>> other = open_index("index/reports")
        >>> other.delete(["tyre", "copy"])
        2
        >>> len(index), index.refresh(), len(index)
        (6, True, 4)

        In partitions, logs are read until none has changed, so that the state has all writes up to
        one of them. While another thread writes, nothing changes: all earlier writes are visible,
        and those of that thread will be in one step.
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
        if files.partition_set.folders != now.shared.folders:
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

    def restricted(self, filter_: FilterLike) -> PartitionsReader:
        """Return a view of the documents that match a filter: see `Index.restricted`."""
        now = self.now()
        restricted = now.restricted.of(
            key_of(filter_), RESTRICTED, lambda: self._opener.restricted(now, filter_)
        )
        return PartitionsReader(self._path, self._opener, restricted)

    def __reduce__(self) -> tuple[Callable[..., PartitionsReader], tuple[object, ...]]:
        """Pickle by path: unpickling opens the partitions here; StoreError for a view."""
        if self._is_view:
            raise StoreError(
                "a snapshot of an index in partitions cannot be pickled; pickle the index itself"
            )
        return _reopened, (self._path.absolute(), self.settings.tokenizer)

    def check_writable(self) -> None:
        """Raise StoreError if it is a view, or closed."""
        self.now()
        if self._is_view:
            raise StoreError("a snapshot is read-only; write to the index itself")

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

    @property
    def _opened(self) -> OpenedSet:
        return self.now()

    document = delegated("_opened", OpenedSet.document)
    ids = delegated("_opened", OpenedSet.ids)
    doc_ids = delegated("_opened", OpenedSet.doc_ids)
    documents = delegated("_opened", OpenedSet.documents)
    live_doc_ids = delegated("_opened", OpenedSet.live_doc_ids)
    live_documents = delegated("_opened", OpenedSet.live_documents)
    document_readers = delegated("_opened", OpenedSet.document_readers)
    hits = delegated("_opened", OpenedSet.hits)
    excerpt = delegated("_opened", OpenedSet.excerpt)
    candidates = delegated("_opened", OpenedSet.candidates)
    parameters = delegated("_opened", OpenedSet.parameters)
    rule_warnings = delegated("_opened", OpenedSet.rule_warnings)
    query_counts = delegated("_opened", OpenedSet.query_counts)

    def is_quick(self, query: str, k: int) -> bool:
        """Return False: a search calls several partitions."""
        return False

    def warm_up(self) -> None:
        """Load what the first queries need."""
        for partition in self.partitions:
            partition.warm_up()

    def close(self) -> None:
        """Release all files and memory; later calls raise StoreError."""
        state, self._current = self._current, None
        if state is not None and not self._is_view:
            for partition in state.partitions:
                partition.close()


def _reopened(path: Path, tokenizer: str | None) -> PartitionsReader:
    """Open the index that was pickled; it trusts the tokenizer of the pickling process."""
    if tokenizer is not None:
        trust(tokenizer)
    return PartitionsReader.open(path)
