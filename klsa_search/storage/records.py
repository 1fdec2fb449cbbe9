"""Records of documents, concatenated.

A record is three uint32, the sizes of ID, title and metadata, then ID, title, metadata as JSON
(empty if there is none) and text, in UTF-8.
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
from klsa_search.errors import IndexDamaged
from klsa_search.storage.current import step_for
from klsa_search.storage.log import DECODER

_SIZES: Final = struct.Struct("<3I")
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class Record(NamedTuple):
    """A document with the bounds of its text instead of the text."""

    id: str
    title: str
    metadata: Mapping[str, Any]
    begin: int
    end: int


class Records:
    """Reads records by doc id; immutable, safe to share between threads.

    content  uint8, the records
    starts   (N + 1,) start of each
    path     file named in errors
    """

    def __init__(
        self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], path: Path
    ) -> None:
        self.content, self.starts, self.path = content, starts, path
        self.native = _native.Records(content, starts)
        # Memoryviews: reading a number or a string through them takes half of NumPy's time.
        self._bytes, self._starts = content.data, starts.data

    def heads(self, doc_ids: Sequence[int]) -> list[Record]:
        """Return documents without reading their texts. Cost: 0.5 µs each, and their metadata."""
        try:
            return list(map(Record._make, self.native.heads(doc_ids, DECODER.decode)))
        except ValueError as error:
            raise self.damaged(error) from error

    def record(self, doc_id: int) -> Record:
        """Return a document without reading its text."""
        return self.heads([doc_id])[0]

    def title(self, doc_id: int) -> str:
        """Return the title of a document; "" if there is none."""
        return self.record(doc_id).title if self._starts[doc_id] < self._starts[doc_id + 1] else ""

    def id(self, doc_id: int) -> str:
        """Return the ID of a document; "" if there is none."""
        return self.record(doc_id).id if self._starts[doc_id] < self._starts[doc_id + 1] else ""

    def text(self, record: Record) -> str:
        """Return the text of a document."""
        try:
            return str(self._bytes[record.begin : record.end], "utf-8")
        except ValueError as error:
            raise self.damaged(error) from error

    def document(self, doc_id: int) -> Document:
        """Return the document of a doc id."""
        record = self.record(doc_id)
        return Document(
            id=record.id, title=record.title, text=self.text(record), metadata=record.metadata
        )

    def is_record(self, doc_id: int, record: bytes) -> bool:
        """Return whether the record of a doc id has these bytes."""
        return bytes(self._bytes[self._starts[doc_id] : self._starts[doc_id + 1]]) == record

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
        return IndexDamaged(f"cannot read `{self.path}` ({error}); {step_for(self.path)}")


def _canonical(metadata: Mapping[str, Any]) -> str:
    return json.dumps(metadata, sort_keys=True)


def record_of(document: Document) -> tuple[bytes, ...]:
    """Return a document as a record, in pieces."""
    identifier, title, text = document.id.encode(), document.title.encode(), document.text.encode()
    # Most documents have no metadata.
    metadata = _ENCODER.encode(dict(document.metadata)).encode() if document.metadata else b""
    sizes = _SIZES.pack(len(identifier), len(title), len(metadata))
    return sizes, identifier, title, metadata, text
