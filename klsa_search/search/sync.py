"""Synchronise an index with a source: compare each document, then write the differences.

The comparison reads the source once and writes nothing to the index. Documents that differ wait in
a temporary file, so that a source that fails or looks truncated has changed nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

import numpy as np

from klsa_search.collection.model import Document, Problems, batches, document_as_json, document_of
from klsa_search.collection.vectors import VECTORS, set_vectors, vectors_of, without_vectors
from klsa_search.core.progress import DOCUMENTS, WRITES, Progress
from klsa_search.core.wording import counted
from klsa_search.errors import SettingsError
from klsa_search.search.batches import BATCH_CHARACTERS, WriteResult
from klsa_search.storage.documents import DocumentReader, record_of
from klsa_search.storage.partitions import partition_of

MAX_DELETE_SHARE: Final = 0.2
"""Share of the documents of an index that a sync may delete by default."""

MAX_DELETE_FEW: Final = 10
"""Number of documents that a sync may delete by default, from an index of any size."""

MAX_BATCH: Final = 20_000
"""Documents of a batch of a sync, at most."""

_IN_MEMORY: Final = 2**25
"""Bytes of changed documents that are kept in memory; more are written to a temporary file."""

_REPORTED: Final = 1_000
"""Documents between two reports of progress."""

MAX_DELETE_PATTERN: Final = r"^(?:(\d{1,18})|(100|\d{1,2}(?:\.\d+)?) ?%)$"
"""Pattern of a limit of deletions: a number, or a share in percent."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Result of a sync.

    added, changed, deleted
               IDs of the documents that were added, replaced and deleted
    unchanged  number of documents that were equal already
    batches    number of batches that were written to the log, for `rollback`; 0 for a dry run
    skipped    records of the source that were skipped, with on_error="skip"
    warnings   values of the wrong type for their fields, which count as missing
    removed_fields
               metadata fields that changed documents had, and that no document of the source has
    kept       IDs of documents that the source does not have, and that were not deleted; only with
               `partial`
    refusal    why they were not deleted
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: int
    batches: int = 0
    skipped: Problems = field(default_factory=Problems)
    warnings: Problems = field(default_factory=Problems)
    removed_fields: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    refusal: str = ""

    def as_json(self, *, ids: bool = False) -> dict[str, Any]:
        """Return the numbers as JSON; also the IDs, as `ids`, if they are wanted."""
        groups = {"added": self.added, "changed": self.changed, "deleted": self.deleted}
        numbers: dict[str, Any] = {name: len(group) for name, group in groups.items()}
        numbers |= {"unchanged": self.unchanged, "batches": self.batches}
        numbers["removed_fields"] = list(self.removed_fields)
        if ids:
            numbers["ids"] = {name: list(group) for name, group in groups.items()}
        return numbers


def max_deletions(max_delete: str | int | None, documents: int) -> int:
    """Return how many of so many documents a sync may delete; SettingsError.

    max_delete  a number, or a share such as "20%"; by default `MAX_DELETE_SHARE`, but at least
                `MAX_DELETE_FEW`
    """
    if max_delete is None:
        return max(int(MAX_DELETE_SHARE * documents), MAX_DELETE_FEW)
    limit = re.fullmatch(MAX_DELETE_PATTERN, str(max_delete).strip(), re.ASCII)
    if limit is None:
        raise SettingsError(
            f"max_delete = {max_delete!r} is not a limit of deletions; give a number of documents "
            "such as 500, or a share such as 20%",
            field="max_delete",
        )
    return int(limit[1]) if limit[1] else int(float(limit[2]) / 100 * documents)


class _Stored:
    """The documents of an index, or of one of its partitions, that a source may have."""

    def __init__(self, reader: DocumentReader) -> None:
        self.reader = reader
        live = np.array(reader.live_doc_ids(), np.int64)
        self.documents = len(live)
        missing = np.zeros(len(reader) + 1, np.bool_)  # one more, which is no document
        missing[live] = True
        self._missing = bytearray(missing.tobytes())
        self._next = 0  # the doc id after that of the last document

    def find(self, id_: str, record: bytes) -> int | None:
        """Return the doc id of a document of the source; None if it is not stored."""
        doc_id: int | None = self._next
        # A source mostly has the order of the build: this saves the look-up of the ID.
        if not (self._missing[self._next] and self.reader.is_record(self._next, record)):
            doc_id = self.reader.find(id_)
        if doc_id is not None:
            self._missing[doc_id], self._next = False, doc_id + 1
        return doc_id

    def missing(self) -> list[str]:
        """Return the IDs of the documents that were not found, in order of doc ids."""
        return self.reader.ids(np.flatnonzero(np.frombuffer(self._missing, np.uint8)))


class Comparison(AbstractContextManager["Comparison"]):
    """Differences between the documents of an index and those of a source.

    stored     of each partition of the index; a document that is written later counts as it was
    documents  number of documents of the index
    added, changed, unchanged  as in `SyncResult`
    Memory: 60 bytes for each ID that differs, 1 byte for each doc id.
    """

    def __init__(self, stored: Sequence[DocumentReader]) -> None:
        self.added: list[str] = []
        self.changed: list[str] = []
        self.unchanged = 0
        self._names: set[str] = set()  # of metadata fields in the source
        self._replaced: set[str] = set()  # of metadata fields in documents that changed
        self._stored = [_Stored(reader) for reader in stored]
        self.documents = sum(stored.documents for stored in self._stored)
        self._spool: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed at exit

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file."""
        self._spool.close()

    def read(
        self,
        documents: Iterable[Document],
        stored: Callable[[Document], Document],
        report: Progress,
    ) -> None:
        """Compare all documents of the source; BadDocument if one that differs cannot be stored.

        stored  returns a document as a write stores it
        Cost: 10 µs each, and reading them.
        """
        number = 0
        for number, document in enumerate(documents, 1):
            self._compare(document, stored(document))
            if number % _REPORTED == 0:
                report(DOCUMENTS, number, None)
        report(DOCUMENTS, number, None)

    def _compare(self, source: Document, document: Document) -> None:
        """Compare a document as stored; if it differs, keep that of the source."""
        self._names.update(document.metadata)
        record = b"".join(record_of(document))
        part = self._stored[0]
        if len(self._stored) > 1:
            part = self._stored[partition_of(document.id, len(self._stored))]
        doc_id, reader = part.find(document.id, record), part.reader
        if doc_id is not None:
            if reader.is_record(doc_id, record) or reader.equals(
                doc_id, _with_stored_vectors(reader, doc_id, document)
            ):
                self.unchanged += 1
                return
            stored = (without_vectors(document.metadata) for document in reader.at([doc_id]))
            self._replaced.update(*stored)
        (self.added if doc_id is None else self.changed).append(document.id)
        line = f"{json.dumps(source.id)}\t{document_as_json(source)}\n"
        self._spool.write(line.encode())

    def removed_fields(self) -> list[str]:
        """Return the metadata fields that changed documents had, and no document of the source."""
        return sorted(self._replaced - self._names)

    def deleted(self) -> list[str]:
        """Return the IDs of the documents that the source does not have, in order of doc ids."""
        return [id_ for stored in self._stored for id_ in stored.missing()]

    def differing(self) -> Iterator[Document]:
        """Yield the documents that were added or changed."""
        self._spool.seek(0)
        for line in self._spool:
            id_, _, written = line.decode().partition("\t")
            yield document_of(json.loads(id_), written)


def _with_stored_vectors(reader: DocumentReader, doc_id: int, document: Document) -> Document:
    (stored,) = reader.at([doc_id])
    if VECTORS in document.metadata or VECTORS not in stored.metadata:
        return document
    return set_vectors(document, vectors_of(stored))


def refused_deletions(
    index: str,
    compared: Comparison,
    deleted: int,
    max_delete: str | int | None,
    skipped: Problems,
) -> str:
    """Return why documents must not be deleted, as the source looks truncated; "" if they may be.

    skipped  records of the source that were skipped
    An empty source is refused unless `max_delete` was given and allows it.
    """
    had, coming = compared.documents, len(compared.added) + len(compared.changed)
    coming += compared.unchanged
    most = max_deletions(max_delete, had)
    if deleted <= most and (coming or not deleted or max_delete is not None):
        return ""
    limit = f"{most:,}" if max_delete is not None else f"{most:,} by default"
    fact = (
        f"the source has {counted(coming, 'document')} and index `{index}` has {had:,}, so "
        f"{deleted:,} would be deleted (allowed: {limit})"
        if coming
        else f"the source has no documents, and index `{index}` has {had:,}"
    )
    if skipped.count:
        bad = counted(skipped.count, "bad record")
        fact += f" ({bad} skipped, the first: {skipped.reasons[0]})"
    return (
        f"{fact}; check that the source is complete, or allow it with "
        f"--max-delete {deleted} (in Python and over HTTP max_delete={deleted})"
    )


def write_differences(
    write: Callable[[Sequence[Document], Sequence[str]], WriteResult],
    compared: Comparison,
    deleted: Sequence[str],
    report: Progress,
) -> tuple[int, Problems]:
    """Write what differs, and return the number of batches and the warnings.

    One batch, or several if it is large; the last one has the deletions, so that no document is
    missing that the source has under another ID. If it is interrupted, another sync completes it.
    """
    count, written, warnings = 0, 0, Problems()
    groups = batches(compared.differing(), size=MAX_BATCH, characters=BATCH_CHARACTERS)
    group = next(groups, [])
    while group or deleted:
        following = next(groups, [])
        result = write(group, [] if following else deleted)
        count, written = count + 1, written + len(group)
        for warning in result.warnings:
            warnings.add(warning.message, kind=warning.field)
        report(WRITES, written, len(compared.added) + len(compared.changed))
        if not following:
            break
        group = following
    return count, warnings
