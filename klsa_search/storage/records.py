"""Records: documents as bytes, one after the other.

A record is the bytes of id, title and metadata, each a uint32, then id, title, metadata as JSON
(nothing for none) and text, in UTF-8.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.compiling import compiled
from klsa_search.errors import IndexDamaged
from klsa_search.storage.current import step_for
from klsa_search.storage.log import DECODER

_SIZES: Final = struct.Struct("<3I")
_HEAD: Final = _SIZES.size


class Record(NamedTuple):
    """A document without its text, which is between two places of the records."""

    id: str
    title: str
    metadata: Mapping[str, Any]
    begin: int
    end: int


class Records:
    """Reads records by position; immutable, safe to share between threads.

    content  uint8, the records
    starts   (N + 1,) where each begins
    path     of the file that is named where one is damaged
    """

    def __init__(
        self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], path: Path
    ) -> None:
        self.content, self.starts, self.path = content, starts, path
        # As views of memory: to take a number or a string out of one costs half of NumPy's time.
        self._bytes, self._starts = content.data, starts.data

    def record(self, position: int) -> Record:
        """Read the document at a position, its text left where it is."""
        begin, end = self._starts[position], self._starts[position + 1]
        content = self._bytes
        try:
            id_size, title_size, metadata_size = _SIZES.unpack_from(content, begin)
            title = begin + _HEAD + id_size
            metadata = title + title_size
            text = metadata + metadata_size
            if not 0 <= begin < text <= end <= len(content):
                raise ValueError("a record is longer than its place")
            return Record(
                str(content[title - id_size : title], "utf-8"),
                str(content[title:metadata], "utf-8"),
                DECODER.decode(str(content[metadata:text], "utf-8")) if metadata_size else {},
                text,
                end,
            )
        except (struct.error, ValueError) as error:
            raise self.damaged(error) from error

    def title(self, position: int) -> str:
        """Read the title at a position alone; "" where there is no document."""
        begin, end = self._starts[position], self._starts[position + 1]
        if begin == end:
            return ""
        content = self._bytes
        try:
            id_size, size, _ = _SIZES.unpack_from(content, begin)
            title = begin + _HEAD + id_size
            if not 0 <= begin < title + size <= end <= len(content):
                raise ValueError("a record is longer than its place")
            return str(content[title : title + size], "utf-8")
        except (struct.error, ValueError) as error:
            raise self.damaged(error) from error

    def text(self, record: Record) -> str:
        """Text of a document."""
        try:
            return str(self._bytes[record.begin : record.end], "utf-8")
        except ValueError as error:
            raise self.damaged(error) from error

    def document(self, position: int) -> Document:
        """Document at a position."""
        record = self.record(position)
        return Document(
            id=record.id, title=record.title, text=self.text(record), metadata=record.metadata
        )

    def damaged(self, error: object) -> IndexDamaged:
        """Say that the records cannot be read for that reason."""
        return IndexDamaged(f"cannot read `{self.path}` ({error}); {step_for(self.path)}")


@compiled
def text_at(
    content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], position: int
) -> tuple[int, int]:
    """Where the text of a document begins and ends; both 0 where its record is damaged."""
    begin, end = starts[position], starts[position + 1]
    text = begin + _HEAD
    if begin < 0 or text > end or end > len(content):
        return 0, 0
    for i in range(_HEAD):
        text += np.int64(content[begin + i]) << (8 * (i % 4))
    return (text, end) if text <= end else (0, 0)


def record_of(document: Document) -> tuple[bytes, ...]:
    """Write a document as a record, in pieces."""
    identifier, title, text = document.id.encode(), document.title.encode(), document.text.encode()
    # Most documents have none.
    metadata = (
        json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False).encode()
        if document.metadata
        else b""
    )
    sizes = _SIZES.pack(len(identifier), len(title), len(metadata))
    return sizes, identifier, title, metadata, text
