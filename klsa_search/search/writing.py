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
    """A batch that was written.

    generation  whose log it is in
    last        the number of its last row there
    put         documents that were put in
    deleted     documents that were deleted: of the ids given those that were there
    warnings    values that do not fit their fields, and count as missing
    """

    generation: str
    last_write: int
    written: int
    deleted: int
    warnings: tuple[FieldWarning, ...] = ()


class Added(int):
    """How many documents were added; a number, which also has what was noticed.

    warnings  values that do not fit their fields: how many, of which fields (`kinds`), the first
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
                f"{collection.numbered[0]}: its documents have no id, and as 1, 2, 3 they would "
                "replace those of these ids: name a column of ids (--id, in Python columns=)",
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
            f"index `{name}` is read-only, because it was built with D whole or in its factors: "
            "build it again from all documents, or with `--expansion sparse`"
        )
    used = max(len(snapshot), aligned(built))
    if puts and used + puts > packing.MAX_DOCUMENTS:
        raise WritingRefused(
            f"index `{name}` is full: it uses {used:,} of {packing.MAX_DOCUMENTS:,} "
            f"document numbers, and {puts:,} documents were to be added; `klsa-index refit "
            f"{name}` frees the numbers of deleted and replaced documents; otherwise divide the "
            "documents among several indexes"
        )
