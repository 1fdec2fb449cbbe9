"""Writing documents to an open index: adding, deleting, patching, and synchronising a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack, cast

from klsa_search.collection.model import Collection, Document, Problems, Source, batches, checked_id
from klsa_search.collection.opened_collection import OpenedCollection, warn_of_skipped
from klsa_search.collection.opening import open_collection
from klsa_search.collection.reading_options import ReadingOptions
from klsa_search.collection.vectors import checked_vectors, of_spaces
from klsa_search.core.arguments import checked_argument, checked_items
from klsa_search.core.build_settings import DateOrder, DecimalSign, FormSettings
from klsa_search.core.config import Settings
from klsa_search.core.progress import DOCUMENTS, Progress, open_progress
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError, KlsaError
from klsa_search.search.batches import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    Changes,
    Deleted,
    WriteResult,
    declared_of,
    patched_documents,
)
from klsa_search.search.models import embed_documents
from klsa_search.search.parts.generation import Batch
from klsa_search.search.parts.reader import Reader
from klsa_search.search.sync import (
    Comparison,
    SyncResult,
    max_deletions,
    refused_deletions,
    write_differences,
)
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.columns.declared import SourceForms, fitting


class AddResult(int):
    """Number of added documents, with warnings.

    warnings  values of the wrong type: their number, their fields (`kinds`) and the first ones
    """

    warnings: Problems

    def __new__(cls, documents: int, warnings: Problems | None = None) -> Self:
        """Return the number, with the warnings."""
        added = super().__new__(cls, documents)
        added.warnings = warnings or Problems()
        return added


class AddOptions(ReadingOptions, total=False):
    """Keyword arguments of `Index.add`: `ReadingOptions`, and how the source writes values."""

    html: Sequence[str] | None
    dates: DateOrder | None
    decimal: DecimalSign | None


class Writer:
    """Methods of `Index` that write documents."""

    _reader: Reader

    def add(
        self,
        source: Source,
        *,
        progress: Progress | bool | None = None,
        **options: Unpack[AddOptions],
    ) -> AddResult:
        """Add documents and return their number. They are durable and searchable on return.

        source    as for `build`: a file or folder, or an iterable of Documents or mappings with id,
                  title, text and metadata. A document replaces the one with the same ID.
        progress  called with ("documents", number added so far, None) after each batch, or True for
                  a progress bar
        options   `format`, `on_error`, `columns` and so on, as in `build`, see `ReadingOptions`;
                  documents without IDs, which a build numbers, are refused. `html`, `dates` and
                  `decimal` say how this source writes them if unlike the index: HTML of these
                  fields is stored as text, dates as ISO 8601 and numbers as numbers
        Written in atomic batches of 1,000; if one fails, those before it are kept: `added` of a
        `KlsaError` is their number. BadDocument for an invalid document, or one with a value that
        does not fit a declared field; IndexBusy during a build; WritingRefused if the index is
        read-only or full; StoreError if the disk is.
        A value of the wrong type for a detected field is kept and counts as missing; the `warnings`
        of the result have their number and the first ones.
        Cost: about 1 ms a document, and 10 ms.

        >>> index.add([{"id": "fan", "title": "Fans", "text": "A fan that stands overheats."}])
        1
        >>> [hit.id for hit in index.search("fans").hits][:1]
        ['fan']
        """
        count, warnings = 0, Problems()
        try:
            with open_progress(progress) as report:
                reader = self._reader
                documents = _documents_of(source, reader.settings, reader.fields, options)
                for puts in batches(documents, size=BATCH_DOCUMENTS, characters=BATCH_CHARACTERS):
                    written = self.write(puts)
                    count += written.added
                    for warning in written.warnings:
                        warnings.add(warning.message, kind=warning.field)
                    report(DOCUMENTS, count, None)
        except KlsaError as error:
            error.added = count
            raise
        return AddResult(count, warnings)

    def delete(self, ids: Iterable[str]) -> Deleted:
        """Delete documents by ID and return the number of deleted documents.

        Unknown IDs are no error: `unknown` of the result lists them. The deletion is durable and
        visible on return. Errors: see `add`.

        >>> deleted = index.delete(["tyre", "copy", "never there"])
        >>> deleted, deleted.unknown
        (2, ('never there',))
        """
        written = self.write((), checked_items("ids", ids, str))
        return Deleted(written.deleted, written.unknown)

    def sync(
        self,
        source: Source,
        *,
        max_delete: str | int | None = None,
        partial: bool = False,
        dry_run: bool = False,
        progress: Progress | bool | None = None,
        **reading: Unpack[ReadingOptions],
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
        reader = self._reader
        writable = None if dry_run else reader.require_writer()
        reader.refresh()
        now = reader.view()
        max_deletions(max_delete, 0)
        if writable is not None:
            writable.check_room(0)
        opened = None
        if isinstance(source, Collection):
            collection = source
        else:
            options = cast(ReadingOptions, {**reader.manifest.reading, **reading})
            collection = opened = open_collection(source, **options)
        with (
            open_progress(progress) as report,
            Comparison([part.documents for part in now.parts.local.parts]) as compared,
        ):
            declared = declared_of(reader.settings, now.fields)
            documents = of_spaces(fitting(collection, declared), now.dimensions)
            compared.read(documents, declared.stored, report)
            if opened is not None:
                warn_of_skipped(opened)
            deleted = compared.deleted()
            kept: list[str] = []
            skipped = collection.problems
            refusal = refused_deletions(reader.name, compared, len(deleted), max_delete, skipped)
            if refusal and not partial:
                raise CollectionError(f"nothing was changed: {refusal}")
            if partial and deleted and skipped.count and not refusal:
                refusal = (
                    f"{counted(skipped.count, 'record')} of the source cannot be read, and may "
                    "be of these documents; correct or remove them"
                )
            if refusal:
                kept, deleted = deleted, []
            count, warnings = 0, Problems()
            if writable is not None:
                puts = len(compared.added) + len(compared.changed)
                writable.check_room(puts)
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

        >>> written = index.write(list(open_collection("reports.jsonl").documents())[:2], ["copy"])
        >>> written.added, written.deleted
        (2, 1)
        """
        self._reader.require_writer()
        checked = list(map(checked_id, checked_items("deletes", deletes, str)))
        reader = self._reader
        declared = declared_of(reader.settings, reader.fields)
        puts = list(map(declared.without_html, checked_items("puts", puts, Document)))
        return self._write(puts, checked, ())

    def _write(
        self, puts: Sequence[Document], deletes: Sequence[str], changes: Sequence[Changes]
    ) -> WriteResult:
        """Write a batch, made again if its vectors are not by the models of the index any more.

        changes  of documents; nothing else is written with them
        """
        reader = self._reader
        writable, embedders = reader.require_writer(), reader.models.embedders
        if not embedders:
            result = writable.write(Batch(puts, deletes, changes, {}))
            assert result is not None, "it has no vectors by models"
            return result
        if changes:
            reader.refresh()
        while True:
            manifest, documents = reader.manifest, puts
            if changes:
                declared = declared_of(reader.settings, reader.fields)
                documents = patched_documents(changes, reader.document, declared, manifest.vectors)
            checked, settings = list(map(checked_vectors, documents)), reader.settings
            embedded, warnings = embed_documents(
                embedders, reader.name, manifest, settings, checked
            )
            batch = Batch(embedded, deletes, (), {}, manifest.vectors)
            if changes:
                by_id = {document.id: document for document in embedded}
                batch = Batch((), (), changes, by_id, manifest.vectors)
            result = writable.write(batch)
            if result is not None:
                is_written = result.changed or not changes
                return replace(
                    result, warnings=(*result.warnings, *(warnings if is_written else ()))
                )

    def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002 - the field's own name
        """Merge changes into one document, and return the WriteResult.

        changes  new values of `title`, `text` and metadata fields; None removes a field, mappings
                 are merged, other values are replaced (JSON Merge Patch, RFC 7396). `metadata` may
                 also be a mapping of its own, as documents have it
        Concurrent patches do not lose each other's changes. A patch that changes nothing is not
        written. DocumentNotFound; BadDocument if the result cannot be stored; other errors and cost
        as for `add`.

        >>> index.patch("heat", {"title": "Overheating engines", "year": None}).changed
        1
        >>> index.document("heat").title, "year" in index.document("heat").metadata
        ('Overheating engines', False)
        """
        changes = checked_argument("changes", changes, Mapping)
        return self._write((), (), [Changes(checked_argument("id", id, str), changes)])

    def patch_many(self, changes: Iterable[Mapping[str, object]]) -> WriteResult:
        """Merge changes into documents, in one atomic batch, and return the WriteResult.

        changes  mappings like those of `patch`, each with the `id` (or `_id`) of its document;
                 several of one document are merged in order
        Either all are written or none: DocumentNotFound names the IDs that the index does not have;
        BadDocument for changes without an ID, or with a result that cannot be stored. Memory is
        that of the documents; other errors and cost as for `patch`.

        >>> index.patch_many([{"id": "heat", "year": 1972}, {"id": "leak", "year": 1971}]).changed
        2
        """
        items = enumerate(checked_items("changes", changes, Mapping))
        records = [Changes.of_record(record, f"changes[{number}]") for number, record in items]
        return self._write((), (), records)


def _documents_of(
    source: Source, settings: Settings, fields: Fields, options: AddOptions
) -> Iterator[Document]:
    """Yield the documents of a source, one in memory at a time, that fit declared fields.

    settings, fields  of the index
    CollectionError if no document has a title or text, but others, unless these may be searched.
    """
    chosen = {name: value for name, value in options.items() if name in FormSettings.model_fields}
    forms = SourceForms(FormSettings.checked(chosen), fields)
    reading = cast(ReadingOptions, {n: value for n, value in options.items() if n not in chosen})
    opened = None
    if isinstance(source, Collection):
        collection = source
    else:
        collection = opened = open_collection(source, **reading)
    declared = declared_of(settings, fields)
    for document in fitting(collection, declared, forms.converted if chosen else None):
        if isinstance(collection, OpenedCollection) and collection.numbered:
            raise CollectionError(
                f"{collection.numbered[0]}: the documents have no IDs, and numbers "
                "would replace documents 1, 2, 3; name a column of IDs (--id, in "
                "Python columns=)",
                field="columns",
            )
        yield document
    forms.report()
    if isinstance(collection, OpenedCollection) and not settings.searched_fields.others:
        collection.refuse_unused_texts()
    if opened is not None:
        warn_of_skipped(opened)
