"""An open generation: all of an index, or one of its partitions, which is read and written."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from klsa_search.analysis.searched_text import searched_texts
from klsa_search.collection.model import Document, document_as_json
from klsa_search.collection.vectors import of_spaces, set_vectors, vectors_of
from klsa_search.errors import BadDocument, StoreError, WritingRefused
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.batches import (
    Changes,
    WriteResult,
    declared_of,
    patched_documents,
    refuse_read_only,
)
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.models import has_same_text
from klsa_search.search.parts.reading import dimensions
from klsa_search.search.query.rules import RuleSet
from klsa_search.search.query.synonyms import Synonyms
from klsa_search.search.state.state import QueryConfiguration, State, configured, open_state
from klsa_search.storage.columns.declared import field_warnings
from klsa_search.storage.generations import writing
from klsa_search.storage.manifest import SpaceEntry
from klsa_search.storage.names import index_of
from klsa_search.storage.partitions import CollectionTerms, partition_of
from klsa_search.storage.write_log import LogPosition, WriteLog
from klsa_search.storage.write_log_writer import LogWriter

if TYPE_CHECKING:
    from klsa_search.search.state.delta import Delta


class OpenGeneration:
    """A generation with later writes: the only one of an index, or a partition; thread-safe.

    Its state is one immutable value, which `refresh` and `use` replace in one step.

    collection  terms of all partitions, if it is one of several
    until       last write that is read; by default all are
    """

    def __init__(
        self,
        generation: Path,
        collection: CollectionTerms | None = None,
        until: LogPosition | None = None,
    ) -> None:
        self.built = self.state = built = open_state(generation, collection)
        self._log = WriteLog(generation)
        self._until = until
        self._delta: Delta | None = None
        self._applied = LogPosition()
        self._configuration = built.info.settings, built.synonyms, built.rules
        self._statistics: CollectionStatistics | None = None  # None for an index without partitions
        self._lock = threading.Lock()  # held while writes are read
        self.refresh()

    def refresh(self, log: WriteLog | None = None) -> bool:
        """Read the writes of other processes; return if there were any.

        log  that of the generation, if this process writes it
        Cost: see `_after`.
        """
        with self._lock:
            log = log or self._log
            last = self._until or log.last()
            if last == self.state.info.last:
                return False
            self.state = self._after(last, log)
            return True

    def _append(
        self, log: LogWriter, puts: Sequence[Document], deletes: Sequence[str], time: str | None
    ) -> LogPosition:
        """Append a batch to the log, and use the state after it; return the end of the log.

        A batch that cannot be applied is not stored: each reader of the log would fail at it.
        """
        with self._lock:
            try:
                # A batch that changes nothing is not stored.
                with log.batch(puts, deletes, time) as last:
                    is_new = last != self.state.info.last
                    state = self._after(last, log) if is_new else self.state
            except BaseException:
                self._delta = None  # it may have writes that are not stored
                raise
            self.state = state
            return last

    def configure(
        self, configuration: QueryConfiguration, statistics: CollectionStatistics | None = None
    ) -> State:
        """Use what all parts of an index have in common; return the state.

        statistics  of all partitions, by which words are weighed; None if it is the only part
        """
        with self._lock:
            analyzer, (_, synonyms, rules) = self.built.info.analyzer, self._configuration
            if configuration.synonyms != synonyms.as_written:
                synonyms = Synonyms(configuration.synonyms, analyzer)
            if configuration.rules != rules.rules:
                rules = RuleSet(configuration.rules, analyzer)
            self._configuration = configuration.settings, synonyms, rules
            if statistics is not None:
                self._statistics = statistics
                self.state = self._after(self.state.info.last, self._log)
            else:
                self.state = self._configured(self.state)
            return self.state

    def check_room(self, puts: int) -> None:
        """Raise WritingRefused if so many documents cannot be added.

        Checked before a batch is logged: a log that cannot be applied would make the index
        unusable.
        """
        state = self.state
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

    def check(self, batch: Batch) -> list[str]:
        """Return the IDs of changes that no document has; if all are known, raise the error with
        which `write` would refuse the batch.
        """
        find = self.state.documents.find
        missing = [id_ for id_, _ in batch.changes if find(id_) is None]
        for put in () if missing else self._puts(batch):
            document_as_json(put)
        return missing

    def write(self, batch: Batch, time: str | None = None) -> WriteResult:
        """Write a batch; it is searchable on return.

        time  of a write to several partitions: see `LogWriter.append`
        The caller has the lock of the index, and has checked that the generation is in use.
        """
        path = self.state.info.path
        # A host of a partition may write for several processes that have the index open.
        is_partition = self.built.snapshot.collection is not None
        lock = writing(path.parent) if is_partition else nullcontext()
        with lock, LogWriter(path) as log:
            self.refresh(log)
            documents = self.state.documents
            puts = self._puts(batch)
            deletes = dict.fromkeys(batch.deletes)
            existing = {id_: None for id_ in deletes if documents.find(id_) is not None}
            try:
                last = self._append(log, puts, [*existing], time)
            except (OSError, MemoryError) as error:
                reason = str(error) or "there is not enough memory"
                raise StoreError(
                    f"the batch cannot be applied to index `{path.parent.name}`, so nothing of it "
                    f"was kept: {reason}"
                ) from error
        state = self.state
        declared = declared_of(state.info.settings, state.fields)
        warnings = tuple(field_warnings(puts, state.fields, declared.types, declared.forms))
        is_patch = bool(batch.changes)
        return WriteResult(
            path.name,
            last.seq,
            added=0 if is_patch else len(puts),
            changed=len(puts) if is_patch else 0,
            deleted=len(existing),
            unknown=tuple(id_ for id_ in deletes if id_ not in existing),
            warnings=warnings,
        )

    def _puts(self, batch: Batch) -> list[Document]:
        """Return the documents of a batch as they are stored; WritingRefused, BadDocument."""
        state = self.state
        settings, analyzer = state.info.settings, state.info.analyzer
        declared = declared_of(settings, state.fields)
        puts = batch.puts
        if batch.changes:
            stored = state.documents
            vectors = state.info.manifest.vectors
            patched = patched_documents(batch.changes, stored.get, declared, vectors)
            doc_ids = stored.doc_ids([document.id for document in patched])
            puts = [
                with_vectors_of(batch.embedded.get(document.id), document)
                for doc_id, document in zip(doc_ids, patched, strict=True)
                if not stored.equals(doc_id, document)
            ]
        self.check_room(len(puts))
        prepared = list(of_spaces(map(declared.divided, puts), dimensions(state)))
        for put in prepared:
            if fault := declared.fault(put.metadata):
                raise BadDocument(f"document {put.id!r}: {fault}; correct it and write again")
        if analyzer.tokenizes:  # a document that it refuses would block the log
            for document in prepared:
                for text in searched_texts(document, settings.searched_fields):
                    analyzer.terms(text)
        return prepared

    def _configured(self, state: State) -> State:
        settings, synonyms, rules = self._configuration
        if state.synonyms is synonyms and state.rules is rules and state.info.settings == settings:
            return state
        return configured(state, settings, synonyms, rules)

    def _after(self, last: LogPosition, log: WriteLog) -> State:
        """Return the state after the writes of a log up to `last`.

        Cost: reading the log, and applying each new write: see `Delta`.
        """
        if last.seq == 0 and self._statistics is None:
            return self._configured(replace(self.built, info=replace(self.built.info, last=last)))
        applied = self._applied
        if last.undos != applied.undos and log.valid_until(applied) < applied.seq:
            self._delta = None
        if self._delta is None:
            from klsa_search.search.state.delta import Delta  # not needed without writes

            self._delta = Delta(self.built)
            self._applied = LogPosition()
        try:
            for write in log.rows(self._applied.seq, last):
                self._delta.add(write)
            state = self._delta.state(last, self._statistics)
        except BaseException:
            self._delta = None  # the next call starts again
            raise
        self._applied = last
        return self._configured(state)


class Batch(NamedTuple):
    """What is written at once: deletions, then documents; or changes of documents.

    embedded  results of changes with vectors by embedders, by ID; they are used if the text of the
              document has not changed since
    spaces    those of which an embedder computed vectors here; None if none did
    """

    puts: Sequence[Document]
    deletes: Sequence[str]
    changes: Sequence[Changes]
    embedded: Mapping[str, Document]
    spaces: Sequence[SpaceEntry] | None = None

    def divided(self, count: int) -> dict[int, Batch]:
        """Return what each of so many parts gets, by number, in order."""
        parts: defaultdict[int, tuple[list[Document], list[str], list[Changes]]]
        parts = defaultdict(lambda: ([], [], []))
        for put in self.puts:
            parts[partition_of(put.id, count)][0].append(put)
        for id_ in self.deletes:
            parts[partition_of(id_, count)][1].append(id_)
        for change in self.changes:
            parts[partition_of(change.id, count)][2].append(change)
        return {n: Batch(*parts[n], self.embedded) for n in sorted(parts)} or {0: self}


def with_vectors_of(embedded: Document | None, document: Document) -> Document:
    """Return a document with those vectors of another that it lacks, if they have the same text."""
    if embedded is None or not has_same_text(embedded, document):
        return document
    return set_vectors(document, {**vectors_of(embedded), **vectors_of(document)})
