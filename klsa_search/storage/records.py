"""Records of documents, concatenated.

A record is four uint32, the sizes of ID, title, metadata and text, then ID, title, metadata as JSON
(empty if there is none) and text, in UTF-8. So the start of each follows from the records alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.collection.model import Document
from klsa_search.core.cached import lazy_property
from klsa_search.errors import IndexDamaged
from klsa_search.storage.current import step_for
from klsa_search.storage.files import unreadable

MAX_LONGEST: Final = 20
"""Number of the longest documents whose sizes are known."""

_SIZES: Final = struct.Struct("<4I")
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class Record(NamedTuple):
    """A document without its text."""

    id: str
    title: str
    metadata: Mapping[str, Any]


class RecordsPart:
    """The records of consecutive documents.

    content  uint8, the records
    starts   (n + 1,) start of each
    """

    def __init__(self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        self.content, self.starts = content, starts

    @lazy_property
    def longest(self) -> npt.NDArray[np.int64]:
        """The sizes of the `MAX_LONGEST` longest, in any order. Cost: O(n)."""
        sizes = np.diff(self.starts)
        count = min(MAX_LONGEST, len(sizes))
        return np.partition(sizes, len(sizes) - count)[len(sizes) - count :] if count else sizes


class Records:
    """Reads records by doc id; immutable, safe to share between threads.

    parts  one after the other
    path   file named in errors
    """

    def __init__(self, parts: Sequence[RecordsPart], path: Path) -> None:
        self.parts, self.path = tuple(parts), path
        self._bytes = _native.DocumentBytes([(part.content, part.starts) for part in parts])
        self.native = _native.Records(self._bytes)

    def __len__(self) -> int:
        """Return the number of doc ids."""
        return len(self._bytes)

    def extended(self, part: RecordsPart) -> Records:
        """Return these records, followed by those of a part."""
        return Records((*self.parts, part), self.path)

    @property
    def size(self) -> int:
        """Return the bytes of all records."""
        return sum(int(part.starts[-1] - part.starts[0]) for part in self.parts)

    @lazy_property
    def longest(self) -> list[int]:
        """The sizes of the `MAX_LONGEST` longest records, longest first."""
        sizes = np.sort(np.concatenate([part.longest for part in self.parts]))
        return list(map(int, sizes[::-1][:MAX_LONGEST]))

    def heads(self, doc_ids: Sequence[int]) -> list[Record]:
        """Return documents without reading their texts. Cost: 0.5 µs each, and their metadata."""
        try:
            return list(map(Record._make, self.native.heads(doc_ids, json.loads)))
        except ValueError as error:
            raise self.damaged(error) from error

    def record(self, doc_id: int) -> Record:
        """Return a document without reading its text."""
        return self.heads([doc_id])[0]

    def title(self, doc_id: int) -> str:
        """Return the title of a document."""
        return self.record(doc_id).title

    def id(self, doc_id: int) -> str:
        """Return the ID of a document."""
        return self.record(doc_id).id

    def text(self, doc_id: int) -> str:
        """Return the text of a document."""
        try:
            return self.native.text(doc_id)
        except ValueError as error:
            raise self.damaged(error) from error

    def document(self, doc_id: int) -> Document:
        """Return the document of a doc id."""
        record = self.record(doc_id)
        return Document(
            id=record.id, title=record.title, text=self.text(doc_id), metadata=record.metadata
        )

    def is_record(self, doc_id: int, record: bytes) -> bool:
        """Return whether the record of a doc id has these bytes."""
        return self._bytes[doc_id] == record

    def equals(self, doc_id: int, document: Document) -> bool:
        """Return whether the document of a doc id has this title, text and metadata.

        The order of metadata fields is ignored. Cost: some microseconds, and decoding the document.
        """
        stored = self.document(doc_id)
        return (stored.title, stored.text) == (document.title, document.text) and (
            _canonical(stored.metadata) == _canonical(document.metadata)
        )

    def damaged(self, error: object) -> IndexDamaged:
        """Return the error that the records cannot be read for that reason."""
        return unreadable(self.path, error, step_for(self.path))


def _canonical(metadata: Mapping[str, Any]) -> str:
    return json.dumps(metadata, sort_keys=True)


def starts_of(content: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
    """Return the start of each record, and the end of the last; None if they do not fit together.

    Cost: 0.3 µs a record.
    """
    starts = [0]
    while starts[-1] + _SIZES.size <= len(content):
        starts.append(starts[-1] + _SIZES.size + sum(_SIZES.unpack_from(content.data, starts[-1])))
    return np.array(starts, np.int64) if starts[-1] == len(content) else None


def record_of(document: Document) -> tuple[bytes, ...]:
    """Return a document as a record, in pieces."""
    identifier, title, text = document.id.encode(), document.title.encode(), document.text.encode()
    # Most documents have no metadata.
    metadata = _ENCODER.encode(dict(document.metadata)).encode() if document.metadata else b""
    sizes = _SIZES.pack(len(identifier), len(title), len(metadata), len(text))
    return sizes, identifier, title, metadata, text
