"""Writing to an index: documents from any source into the log of the generation in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from klsa_search.collection import Collection, Document, open_collection
from klsa_search.errors import StoreError
from klsa_search.search.snapshot import Snapshot
from klsa_search.store.fields.declared import Declared, fitting

Source = str | Path | Collection | Iterable[Document | Mapping[str, Any]]

_DOCUMENTS: Final = 1_000
_CHARACTERS: Final = 2**24
"""Of a batch, at most; a single document may be longer."""


def documents_of(source: Source, declared: Declared, **reading: Any) -> Iterator[Document]:
    """Documents of anything `build` takes, one in memory at a time, that fit declared fields."""
    collection = source if isinstance(source, Collection) else open_collection(source, **reading)
    yield from fitting(collection, declared)


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Divide documents into what is written at once."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        length = len(document.title) + len(document.text)
        if batch and (len(batch) == _DOCUMENTS or characters + length > _CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(document)
        characters += length
    if batch:
        yield batch


def refuse_whole(name: str, snapshot: Snapshot) -> None:
    """StoreError where later documents cannot be folded in."""
    if snapshot.cut is None:
        raise StoreError(
            f"index {name} keeps D whole or in its factors, which later documents cannot be "
            "folded into: build it again from all documents, or with --expansion cut"
        )
