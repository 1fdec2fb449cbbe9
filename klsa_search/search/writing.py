"""Writing to an index: documents from any source into the log of the generation in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, Unpack

from klsa_search.collection import (
    Collection,
    Document,
    OpenedCollection,
    Problems,
    Reading,
    open_collection,
)
from klsa_search.collection.left_out import warn_of_left_out
from klsa_search.config import Settings
from klsa_search.errors import CollectionError, WritingRefused
from klsa_search.expansion import packing
from klsa_search.kernel.segments import aligned
from klsa_search.search.snapshot import Snapshot
from klsa_search.store.fields.columns import Fields
from klsa_search.store.fields.declared import Declared, fitting
from klsa_search.store.fields.warnings import FieldWarning

Source = str | Path | BinaryIO | Collection | Iterable[Document | Mapping[str, Any]]

DOCUMENTS: Final = 1_000
"""Of a batch, at most."""

CHARACTERS: Final = 2**25
"""Of the titles and texts of a batch, at most; a single document may be longer."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of writing one batch.

    generation  generation that was written to
    last_write  number of the last row of the batch in the log of writes
    written     number of documents that were added or replaced
    deleted     number of documents that were deleted
    warnings    values of the wrong type for their fields, which count as missing
    """

    generation: str
    last_write: int
    written: int
    deleted: int
    warnings: tuple[FieldWarning, ...] = ()


class Added(int):
    """Number of added documents, with warnings.

    warnings  values of the wrong type: their number, their fields (`kinds`) and the first ones
    """

    warnings: Problems

    def __new__(cls, documents: int, warnings: Problems) -> Self:
        """Return the number, with the warnings."""
        added = super().__new__(cls, documents)
        added.warnings = warnings
        return added

    def __reduce__(self) -> tuple[type[Self], tuple[int, Problems]]:
        """Copy and pickle it with its warnings."""
        return type(self), (int(self), self.warnings)


def documents_of(
    source: Source, declared: Declared, **reading: Unpack[Reading]
) -> Iterator[Document]:
    """Documents of anything `build` takes, one in memory at a time, that fit declared fields."""
    opened = None
    if isinstance(source, Collection):
        collection = source
    else:
        collection = opened = open_collection(source, **reading)
    for document in fitting(collection, declared):
        if isinstance(collection, OpenedCollection) and collection.numbered:
            raise CollectionError(
                f"{collection.numbered[0]}: the documents have no IDs, and numbers "
                "would replace documents 1, 2, 3; name a column of IDs (--id, in "
                "Python columns=)",
                field="columns",
            )
        yield document
    if opened is not None:
        warn_of_left_out(opened)


def declared_of(settings: Settings, fields: Fields) -> Declared:
    """Return the fields that were declared, with the types they have by now."""
    declared = settings.declared()
    known = {name: fields[name].type for name in declared if name in fields}
    return Declared(declared | known)


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Divide documents into what is written at once."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        length = len(document.title) + len(document.text)
        if batch and (len(batch) == DOCUMENTS or characters + length > CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(document)
        characters += length
    if batch:
        yield batch


def check_writable(name: str, snapshot: Snapshot, built: int, puts: int) -> None:
    """Raise WritingRefused if so many documents cannot be added to an index.

    built  documents of its generation; the first later one comes at the next aligned position
    Checked before a batch is logged: a log that cannot be applied would keep the index closed.
    """
    if snapshot.cut is None:
        raise WritingRefused(
            f"index `{name}` is read-only, because it was built with a dense or "
            "factored expansion; rebuild it with --expansion sparse to allow "
            "writes"
        )
    used = max(len(snapshot), aligned(built))
    if puts and used + puts > packing.MAX_DOCUMENTS:
        raise WritingRefused(
            f"index `{name}` is full: {used:,} of {packing.MAX_DOCUMENTS:,} doc "
            f"ids are in use, and {puts:,} more documents were given; `klsa-index "
            f"refit {name}` frees those of deleted documents, or divide the "
            "documents among several indexes"
        )
