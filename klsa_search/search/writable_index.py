"""The part of an open index that writes documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

from klsa_search.collection.mappings import merged
from klsa_search.collection.model import Collection, Document, Problems, Source, batches
from klsa_search.collection.opened_collection import warn_of_skipped
from klsa_search.collection.opening import open_collection
from klsa_search.collection.reading_options import Reading
from klsa_search.collection.searched_text import all_texts
from klsa_search.collection.vectors import VECTORS, set_vectors, vectors_of
from klsa_search.core.progress import DOCUMENTS, Progress, open_progress
from klsa_search.errors import BadDocument, CollectionError, KlsaError, StoreError
from klsa_search.search.configurable_index import ConfigurableIndex
from klsa_search.search.embedders import embed_documents, has_same_text, without_outdated
from klsa_search.search.state import State
from klsa_search.search.sync import (
    Comparison,
    SyncResult,
    max_deletions,
    refused_deletions,
    write_differences,
)
from klsa_search.search.writing import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    Added,
    AddOptions,
    WriteResult,
    checked_vectors,
    declared_of,
    documents_of,
    of_spaces,
)
from klsa_search.storage.columns.declared import FieldWarning, field_warnings, fitting
from klsa_search.storage.generations import writing
from klsa_search.storage.log import checked_id, document_as_json
from klsa_search.storage.log_writer import LogWriter


class WritableIndex(ConfigurableIndex):
    """An open index that adds, deletes and patches documents; `Index` adds searches."""

    def add(
        self,
        source: Source,
        *,
        progress: Progress | bool | None = None,
        **options: Unpack[AddOptions],
    ) -> Added:
        """Add documents and return their number. They are durable and searchable on return.

        source    as for `build`: a file or folder, or an iterable of Documents or mappings with id,
                  title, text and metadata. A document replaces the one with the same ID.
        progress  called with ("documents", number added so far, None) after each batch, or True for
                  a progress bar
        options   `format`, `on_error`, `columns` and so on, as in `build` (`Reading`); documents
                  without IDs, which a build numbers, are refused. `html`, `dates` and `decimal`
                  say how this source writes them if unlike the index: HTML of these fields is
                  stored as text, dates as ISO 8601 and numbers as numbers
        Written in atomic batches of 1,000; if one fails, those before it are kept. BadDocument for
        an invalid document, or one with a value that does not fit a declared field; IndexBusy
        during a build; WritingRefused if the index is read-only or full; StoreError if the disk is.
        A value of the wrong type for a detected field is kept and counts as missing; the `warnings`
        of the result have their number and the first ones.
        Cost: about 1 ms a document, and 10 ms.

        >>> index.add([{"id": "fan", "title": "Fans", "text": "A fan that stands overheats."}])
        1
        >>> [hit.id for hit in index.search("fans").hits][:1]
        ['fan']
        """
        count, warnings = 0, Problems()
        with open_progress(progress) as report:
            documents = documents_of(
                source, declared_of(self.settings, self.fields), self.fields, options
            )
            for puts in batches(documents, size=BATCH_DOCUMENTS, characters=BATCH_CHARACTERS):
                written = self.write(puts)
                count += written.written
                for warning in written.warnings:
                    warnings.add(warning.message, kind=warning.field)
                report(DOCUMENTS, count, None)
        return Added(count, warnings)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by ID and return how many there were.

        Unknown IDs are ignored. The deletion is durable and visible on return. Errors: see `add`.

        >>> index.delete(["tyre", "copy", "never there"])
        2
        """
        if isinstance(ids, str):  # its letters would be IDs
            raise CollectionError(f"ids = {ids!r} is a text; give a list of IDs", field="ids")
        return self.write((), list(ids)).deleted

    def sync(
        self,
        source: Source,
        *,
        max_delete: str | int | None = None,
        partial: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
        **reading: Unpack[Reading],
    ) -> SyncResult:
        """Make the index contain exactly the documents of a source, and return what differed.

        source      as for `build`: all documents, not only those that changed
        max_delete  most documents to delete, as a number or a share such as "20%"; by default 20%,
                    but at least 10. A source that would delete more, or an empty one, is refused
        partial     write what was added and changed also if deletions are refused or records were
                    skipped, and delete nothing then: `kept` and `refusal` of the result
        dry_run     compare only
        progress    called with ("documents", number compared, None), then with ("writes", number
                    written, total), or True for a progress bar
        reading     `format`, `on_error`, `columns` and so on, as in `build`; by default those with
                    which the index was built. An opened `Collection` keeps its own

        A document whose title, text and metadata are equal is neither written nor counted as drift;
        others are replaced, and those that the source does not have are deleted. The source is read
        completely before anything is written. Differences of up to 20,000 documents are one batch,
        which `rollback` undoes; more are several, and if the call is interrupted, another one
        completes it. Documents that others write meanwhile stay as they wrote them unless they
        differ from the source at the start; another sync finds them.

        CollectionError if the source cannot be read, has a bad record, or has too few documents;
        SettingsError for an invalid `max_delete`; other errors as for `add`. Cost: reading the
        source, 10 µs a document, and `add` of those that differ.

        >>> reports = list(open_collection("reports.jsonl").documents())
        >>> fan = {"id": "fan", "text": "A fan that stands overheats."}
        >>> result = index.sync([*reports[1:], fan])
        >>> result.added, result.changed, result.deleted, result.unchanged
        (('fan',), (), ('heat',), 5)
        """
        self._reader.check_writable()
        self.refresh()
        now = self.snapshot()
        max_deletions(max_delete, 0)
        now._reader.check_room(0)
        opened = None
        if isinstance(source, Collection):
            collection = source
        else:
            options = cast(Reading, {**self.manifest.reading, **reading})
            collection = opened = open_collection(source, **options)
        with (
            open_progress(progress) as report,
            Comparison(now._reader.document_readers()) as compared,
        ):
            declared = declared_of(self.settings, now.fields)
            documents = of_spaces(fitting(collection, declared), now._reader.vector_spaces())
            compared.read(documents, declared.stored, report)
            if opened is not None:
                warn_of_skipped(opened)
            deleted = compared.deleted()
            kept: list[str] = []
            skipped = collection.problems
            refusal = refused_deletions(self.name, compared, len(deleted), max_delete, skipped)
            if refusal and not partial:
                raise CollectionError(f"nothing was changed: {refusal}")
            if partial and deleted and skipped.count and not refusal:
                refusal = (
                    f"{skipped.count:,} records of the source cannot be read, and may be of "
                    "these documents; correct or remove them"
                )
            if refusal:
                kept, deleted = deleted, []
            count, warnings = 0, Problems()
            if not dry_run:
                puts = len(compared.added) + len(compared.changed)
                now._reader.check_room(puts)
                count, warnings = write_differences(self.write, compared, deleted, report)
        return SyncResult(
            added=tuple(compared.added),
            changed=tuple(compared.changed),
            deleted=tuple(deleted),
            unchanged=compared.unchanged,
            batches=count,
            skipped=skipped,
            warnings=warnings,
            removed_fields=tuple(compared.removed_fields()),
            kept=tuple(kept),
            refusal=refusal,
        )

    def write(self, puts: Sequence[Document] = (), deletes: Sequence[str] = ()) -> WriteResult:
        """Write one atomic batch, deletions before documents, and return its WriteResult.

        Of several documents with one ID the last is kept. Durable and searchable on return. Errors:
        see `add`; memory is that of the batch as JSON.
        """
        self._reader.check_writable()
        checked = [checked_id(id_) for id_ in deletes]
        puts = list(map(declared_of(self.settings, self.fields).without_html, puts))
        puts, warnings = self._with_vectors(puts)
        result = self._write(lambda _: (puts, checked))
        return replace(result, warnings=(*result.warnings, *warnings))

    def _with_vectors(
        self, puts: Sequence[Document]
    ) -> tuple[Sequence[Document], Sequence[FieldWarning]]:
        """Return documents with vectors by the embedders of the index, and which have none."""
        if not self._models.embedders or not puts:
            return puts, ()
        return embed_documents(
            self._models.embedders, self._state(), list(map(checked_vectors, puts))
        )

    def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002 - the field's own name
        """Merge changes into one document, and return the WriteResult.

        changes  new values of `title`, `text` and metadata fields; None removes a field, mappings
                 are merged, other values are replaced (JSON Merge Patch, RFC 7396). `metadata` may
                 also be a mapping of its own, as documents have it
        Concurrent patches do not lose each other's changes. A patch that changes nothing is not
        written. DocumentNotFound; BadDocument if the result cannot be stored; other errors and cost
        as for `add`.

        >>> index.patch("heat", {"title": "Overheating engines", "year": None}).written
        1
        >>> index.document("heat").title, "year" in index.document("heat").metadata
        ('Overheating engines', False)
        """
        self._reader.check_writable()

        def patched(state: State) -> Document:
            stored = state.documents.get(id)
            declared = declared_of(self.settings, self.fields)
            document = declared.without_html(merged(stored, changes), stored)
            document = checked_vectors(document)
            document_as_json(document)  # raises before it is compared
            return document if VECTORS in changes else without_outdated(document, stored, state)

        ahead: Document | None = None
        warnings: Sequence[FieldWarning] = ()
        if self._models.embedders:
            self.refresh()
            (ahead,), warnings = self._with_vectors([patched(self._state())])

        def batch(state: State) -> tuple[Sequence[Document], Sequence[str]]:
            document = patched(state)
            (doc_id,) = state.documents.doc_ids([id])
            if state.documents.equals(doc_id, document):
                return [], ()
            if ahead is not None and has_same_text(ahead, document):
                document = set_vectors(document, {**vectors_of(ahead), **vectors_of(document)})
            return [document], ()

        result = self._write(batch)
        return replace(result, warnings=(*result.warnings, *warnings)) if result.written else result

    def _write(
        self, batch: Callable[[State], tuple[Sequence[Document], Sequence[str]]]
    ) -> WriteResult:
        """Write the documents and deletions that a function returns for the present state.

        No other process writes between that state and the batch.
        """
        with writing(self.path.parent):
            self.refresh()
            state = self._state()
            puts, deletes = batch(state)
            puts = self._prepared(state, puts)
            existing = [id_ for id_ in set(deletes) if state.documents.find(id_) is not None]
            self._reader.expect_writes()
            with LogWriter(state.info.path) as writer:
                last = writer.append(puts, deletes)
        try:
            self.refresh()
        except (KlsaError, OSError, MemoryError) as error:
            reason = str(error) or "there is not enough memory"
            raise StoreError(
                f"the batch was written to index `{self.name}`, but is not searchable yet: {reason}"
            ) from error
        self._reader.save()
        declared = declared_of(self.settings, self.fields)
        warnings = tuple(field_warnings(puts, self.fields, declared.types, declared.forms))
        return WriteResult(state.info.path.name, last.seq, len(puts), len(existing), warnings)

    def _prepared(self, state: State, puts: Sequence[Document]) -> list[Document]:
        """Return documents as they are stored; WritingRefused, BadDocument."""
        self._reader.check_room(len(puts))
        declared = declared_of(self.settings, self.fields)
        prepared = list(of_spaces(map(declared.divided, puts), state.snapshot.vectors))
        for put in prepared:
            if fault := declared.fault(put.metadata):
                raise BadDocument(f"document {put.id!r}: {fault}; correct it and write again")
        if self.analyzer.tokenizes:  # a document that it refuses would block the log
            for text in all_texts(prepared, self.settings.searched_fields):
                self.analyzer.terms(text)
        return prepared
