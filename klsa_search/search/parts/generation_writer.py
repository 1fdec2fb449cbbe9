"""Writes batches to the log of one generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from klsa_search.collection.model import Document
from klsa_search.collection.searched_text import searched_texts
from klsa_search.collection.vectors import set_vectors, vectors_of
from klsa_search.errors import BadDocument, KlsaError, StoreError, WritingRefused
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.models import has_same_text
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.search.parts.reading import dimensions
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.search.state.state import State
from klsa_search.search.writing import (
    Changes,
    WriteResult,
    declared_of,
    of_spaces,
    patched_documents,
)
from klsa_search.storage.columns.declared import field_warnings
from klsa_search.storage.current import current_generation
from klsa_search.storage.generations import writing
from klsa_search.storage.log import document_as_json
from klsa_search.storage.log_writer import LogWriter


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
        name = state.info.path.parent.name
        if field := needs_eigenvectors(state.info.settings):
            raise WritingRefused(
                f"index `{name}` is read-only: {field} = {getattr(state.info.settings, field)} "
                "reads eigenvectors, which documents written after the build do not have; rebuild "
                "it with the spectral function gvsm, head 0 and another ranker to allow writes"
            )
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
