"""Batches of writes: documents as they are stored, and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from klsa_search.collection.columns import ID_NAMES
from klsa_search.collection.mappings import merged
from klsa_search.collection.model import Document, document_as_json
from klsa_search.collection.vectors import VECTORS, checked_vectors
from klsa_search.core.config import Settings
from klsa_search.errors import BadDocument, DocumentNotFound, WritingRefused
from klsa_search.search.models import without_outdated
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.columns.declared import (
    DeclaredFields,
    FieldWarning,
    forms_of,
)
from klsa_search.storage.documents import not_found
from klsa_search.storage.manifest import SpaceEntry

BATCH_DOCUMENTS: Final = 1_000
"""Documents of a batch, at most."""

BATCH_CHARACTERS: Final = 2**25
"""Characters of titles and texts after which a batch ends."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of writing one batch.

    generation    generation that was written to
    log_position  number of the last row of the batch in the log of writes
    added         number of documents that were added or replaced
    changed       number of documents that a patch changed
    deleted       number of documents that were deleted
    unknown       IDs to delete that no document had
    warnings      values of the wrong type for their fields, which count as missing, and documents
                  that are stored without vectors because an embedder failed
    """

    generation: str
    log_position: int
    added: int
    deleted: int
    warnings: tuple[FieldWarning, ...] = ()
    changed: int = 0
    unknown: tuple[str, ...] = ()


class Deleted(int):
    """Number of deleted documents.

    unknown  IDs that no document had
    """

    unknown: tuple[str, ...]

    def __new__(cls, documents: int, unknown: Iterable[str] = ()) -> Self:
        """Return the number, with the unknown IDs."""
        deleted = super().__new__(cls, documents)
        deleted.unknown = tuple(unknown)
        return deleted


class Changes(NamedTuple):
    """Changes of the fields of one document: see `Index.patch`."""

    id: str
    fields: Mapping[str, object]

    @classmethod
    def of_record(cls, record: Mapping[str, object], origin: str) -> Self:
        """Return the changes of a mapping that has the ID of its document.

        BadDocument, which begins with `origin`, if it has none.
        """
        name = next((name for name in ID_NAMES if name in record), None)
        if name is None:
            names = ", ".join(map(repr, list(record)[:5])) or "nothing"
            raise BadDocument(
                f"{origin}: {names} without an ID; add the `id` of the document", field="id"
            )
        return cls(str(record[name]), record)


def patched_documents(
    changes: Iterable[Changes],
    stored_document: Callable[[str], Document],
    declared: DeclaredFields,
    spaces: Sequence[SpaceEntry],
) -> list[Document]:
    """Return stored documents with changes merged into them: see `Index.patch_many`.

    stored_document  returns the document of an ID
    DocumentNotFound, which names all IDs without a document; BadDocument if a result cannot be
    stored.
    """
    patched: dict[str, Document] = {}
    missing = list[str]()
    for id_, fields in changes:
        try:
            before = patched.get(id_) or stored_document(id_)
        except DocumentNotFound:
            missing.append(id_)
            continue
        document = checked_vectors(declared.without_html(merged(before, fields), before))
        document_as_json(document)  # raises before it is compared
        if VECTORS not in fields:
            document = without_outdated(document, before, spaces)
        patched[id_] = document
    if missing:
        raise not_found(missing)
    return list(patched.values())


def refuse_read_only(name: str, settings: Settings) -> None:
    """Raise WritingRefused for the settings of an index to which no document can be added."""
    if field := needs_eigenvectors(settings):
        raise WritingRefused(
            f"index `{name}` is read-only: {field} = {getattr(settings, field)} reads "
            "eigenvectors, which documents written after the build do not have; rebuild it with "
            "the spectral function gvsm, head 0 and another ranker to allow writes"
        )


def declared_of(settings: Settings, fields: Fields) -> DeclaredFields:
    """Return the declared fields with their present types, and how others are read."""
    declared = settings.declared()
    types = {name: fields[name].type for name in declared if name in fields}
    return DeclaredFields(
        declared | types, settings.separators(), forms_of(settings), settings.html or ()
    )
