"""Documents as JSON, and the batches in which they are sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any, Final

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import VECTORS

Record = Document | Mapping[str, Any]
"""A document, or a mapping with `id`, `title`, `text` and metadata fields."""

BATCH: Final = 1_000
"""Documents of a request that adds documents, at most."""

_BATCH_BYTES: Final = 2**22
"""Bytes of JSON after which such a request is sent."""


class Batch:
    """Documents that wait to be sent together."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self._bytes = 0

    def add(self, record: Record) -> bool:
        """Add a document; return whether the batch is full."""
        written = as_json(record)
        self.documents.append(written)
        self._bytes += len(written)
        return len(self.documents) == BATCH or self._bytes > _BATCH_BYTES

    def take(self) -> bytes:
        """Return the documents as an array of JSON, and begin another batch."""
        taken, self.documents, self._bytes = self.documents, [], 0
        return f"[{','.join(taken)}]".encode()


async def stream_records(
    records: Iterable[Record] | AsyncIterable[Record],
) -> AsyncIterator[Record]:
    """Yield records from an iterable of either kind."""
    if isinstance(records, AsyncIterable):
        async for record in records:
            yield record
    else:
        for record in records:
            yield record


def as_json(record: Record) -> str:
    """Return a document as JSON."""
    if isinstance(record, Document):
        record = {
            "id": record.id,
            "title": record.title,
            "text": record.text,
            "metadata": dict(record.metadata),
        }
    return json.dumps(with_lists(record), ensure_ascii=False)


def with_lists(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a document, with lists instead of arrays in its vectors."""
    if VECTORS in record:
        return {**record, VECTORS: without_arrays(record[VECTORS])}
    if isinstance(metadata := record.get("metadata"), Mapping) and VECTORS in metadata:
        return {**record, "metadata": with_lists(metadata)}
    return record


def without_arrays(value: Any) -> Any:
    """Return a mapping, list or array with lists of numbers instead of arrays."""
    if isinstance(value, Mapping):
        return {name: without_arrays(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [without_arrays(entry) for entry in value] if isinstance(value, list | tuple) else value
