"""An open generation of an index: holds its state, replaces it by refreshes, and writes its log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from klsa_search.collection.model import Document, document_as_json
from klsa_search.collection.searched_text import searched_texts
from klsa_search.collection.vectors import of_spaces, set_vectors, vectors_of
from klsa_search.errors import BadDocument, KlsaError, StoreError, WritingRefused
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.batches import (
    Changes,
    WriteResult,
    declared_of,
    patched_documents,
    refuse_read_only,
)
from klsa_search.search.engine.collection_statistics import (
    CollectionStatistics,
    PartitionTerms,
    Weighing,
)
from klsa_search.search.models import has_same_text
from klsa_search.search.parts.part_set import LocalPart, LocalParts
from klsa_search.search.parts.reading import dimensions
from klsa_search.search.state.log_tailer import (
    LogTailer,
    PointInTime,
    QueryConfiguration,
    open_tailed,
)
from klsa_search.search.state.state import State
from klsa_search.storage.columns.declared import field_warnings
from klsa_search.storage.current import current_generation, open_current
from klsa_search.storage.generations import writing
from klsa_search.storage.log import WriteLog
from klsa_search.storage.log_writer import LogWriter
from klsa_search.storage.names import index_of
from klsa_search.storage.partitions import CollectionTerms


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
        """Release all files and memory."""
        with self._swap_lock:
            self._parts, self._tailer = LocalParts(self._parts.facts, ()), None


class GenerationWriter:
    """Writes to the log of a generation, and has it read the log: see `BatchWriter`."""

    def __init__(self, generation: OpenGeneration) -> None:
        self.generation = generation

    def check_room(self, puts: int) -> None:
        """Raise WritingRefused if so many documents cannot be added.

        Checked before a batch is logged: a log that cannot be applied would make the index
        unusable.
        """
        state = self.generation.state
        name = index_of(state.info.path).name
        refuse_read_only(name, state.info.settings)
        used = len(state.snapshot)
        if puts and used + puts > sparse_expansion.MAX_DOCUMENTS:
            raise WritingRefused(
                f"index `{name}` is full: {used:,} of {sparse_expansion.MAX_DOCUMENTS:,} doc "
                f"ids are in use, and {puts:,} more documents were given; `klsa-index "
                f"refit {name}` frees those of deleted documents, or divide the "
                "documents among several indexes"
            )

    def check(self, puts: Sequence[Document]) -> None:
        """Raise the error with which `write` would refuse documents."""
        for put in self._prepared(self.generation.state, puts):
            document_as_json(put)

    def check_patch(self, changes: Sequence[Changes]) -> None:
        """Raise the error with which `patch` would refuse changes."""
        self.check(self._patched(self.generation.state, changes))

    def write(
        self, puts: Sequence[Document], deletes: Sequence[str], time: str | None = None
    ) -> WriteResult:
        """Write a batch, deletions before documents; it is searchable on return.

        time  of a write to several partitions: see `LogWriter.append`
        """
        return self._write(lambda _: (puts, deletes), time)

    def patch(
        self,
        changes: Sequence[Changes],
        embedded: Mapping[str, Document],
        time: str | None = None,
    ) -> WriteResult:
        """Merge changes into documents, in one batch: see `Index.patch_many`.

        embedded  results with vectors by embedders, by ID; they are used if the text of the
                  document has not changed since
        """

        def batch(state: State) -> tuple[Sequence[Document], Sequence[str]]:
            stored, documents = state.documents, self._patched(state, changes)
            doc_ids = stored.doc_ids([document.id for document in documents])
            return [
                with_vectors_of(embedded.get(document.id), document)
                for doc_id, document in zip(doc_ids, documents, strict=True)
                if not stored.equals(doc_id, document)
            ], ()

        return self._write(batch, time)

    def _patched(self, state: State, changes: Sequence[Changes]) -> list[Document]:
        declared = declared_of(state.info.settings, state.fields)
        stored = state.documents.get
        return patched_documents(changes, stored, declared, state.info.manifest.vectors)

    def _write(
        self,
        batch: Callable[[State], tuple[Sequence[Document], Sequence[str]]],
        time: str | None,
    ) -> WriteResult:
        """Write the documents and deletions that a function returns for the present state.

        No other process writes between that state and the batch.
        """
        generation = self.generation
        path = generation.state.info.path.parent
        with ExitStack() as stack:
            with writing(path):
                log = stack.enter_context(LogWriter(current_generation(path)))
                generation.refresh(log)
                before = generation.state
                puts, deletes = batch(before)
                puts = self._prepared(before, puts)
                existing = [id_ for id_ in set(deletes) if before.documents.find(id_) is not None]
                last = log.append(puts, deletes, time)
            try:
                generation.refresh(log)
            except (KlsaError, OSError, MemoryError) as error:
                reason = str(error) or "there is not enough memory"
                raise StoreError(
                    f"the batch was written to index `{path.name}`, but is not searchable yet: "
                    f"{reason}"
                ) from error
        generation.save()
        state = generation.state
        declared = declared_of(state.info.settings, state.fields)
        warnings = tuple(field_warnings(puts, state.fields, declared.types, declared.forms))
        return WriteResult(before.info.path.name, last.seq, len(puts), len(existing), warnings)

    def _prepared(self, state: State, puts: Sequence[Document]) -> list[Document]:
        """Return documents as they are stored; WritingRefused, BadDocument."""
        self.check_room(len(puts))
        declared, analyzer = declared_of(state.info.settings, state.fields), state.info.analyzer
        prepared = list(of_spaces(map(declared.divided, puts), dimensions(state)))
        for put in prepared:
            if fault := declared.fault(put.metadata):
                raise BadDocument(f"document {put.id!r}: {fault}; correct it and write again")
        if analyzer.tokenizes:  # a document that it refuses would block the log
            for document in prepared:
                for text in searched_texts(document, state.info.settings.searched_fields):
                    analyzer.terms(text)
        return prepared


def with_vectors_of(embedded: Document | None, document: Document) -> Document:
    """Return a document with those vectors of another that it lacks, if they have the same text."""
    if embedded is None or not has_same_text(embedded, document):
        return document
    return set_vectors(document, {**vectors_of(embedded), **vectors_of(document)})
