"""Stored documents, and their IDs.

documents.npy         uint8   the records, concatenated
documents_starts.npy  int64   (N + 1,) start of each
documents_keys.npy    uint64  (N,) ascending: the upper half of the hash of an ID, then its doc
                              id in 32 bits

A record is four uint32, the sizes of ID, title, metadata and text, then ID, title, metadata as JSON
(empty if there is none) and text, in UTF-8. So the start of each follows from the records alone.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from json import loads
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.collection.model import Document, id_hash
from klsa_search.core.array_types import DocumentMask, Numbers
from klsa_search.core.lazy import lazy_property
from klsa_search.errors import DocumentNotFound, IndexDamaged
from klsa_search.storage.arrays import (
    ArrayWriter,
    open_array,
    read_header,
    write_arrays,
    write_lists,
)
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

    def __init__(self, content: npt.NDArray[np.uint8], starts: Numbers) -> None:
        self.content, self.starts = content, starts

    @lazy_property
    def longest(self) -> Numbers:
        """The sizes of the `MAX_LONGEST` longest, in any order. Cost: O(n)."""
        sizes = np.diff(self.starts)
        count = min(MAX_LONGEST, len(sizes))
        return np.partition(sizes, len(sizes) - count)[len(sizes) - count :] if count else sizes


def _canonical(metadata: Mapping[str, Any]) -> str:
    return json.dumps(metadata, sort_keys=True)


def starts_of(content: npt.NDArray[np.uint8]) -> Numbers | None:
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


RECORDS: Final = "documents"
STARTS: Final = "documents_starts"
KEYS: Final = "documents_keys"

_PIECE: Final = 2**22
"""Bytes of records that are read at once."""

_DOC_ID: Final = 2**32 - 1
"""Bits of a key that are a doc id."""


class DocumentWriter(AbstractContextManager["DocumentWriter"]):
    """Writes documents in order; the first has doc id 0. Use as a context manager.

    Raise OSError if nothing can be written, for example on a full disk. Memory: 16 bytes a
    document.
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self._starts, self._keys = array("q", [0]), array("Q")
        self._records = ArrayWriter(generation, RECORDS, np.uint8)

    def extend(self, documents: Iterable[Document]) -> None:
        """Append the next documents, ideally some hundred at a time."""
        pieces: list[bytes] = []
        for document in documents:
            parts = record_of(document)
            pieces += parts
            self._starts.append(self._starts[-1] + sum(map(len, parts)))
            self._keys.append(id_hash(document.id) & ~_DOC_ID | len(self._keys))
        self._records.append(b"".join(pieces))

    def __exit__(self, *failure: object) -> None:
        """Write the start of each record and the doc id of each ID, and close."""
        self._records.__exit__(*failure)
        if failure[0] is None:
            starts, keys = np.array(self._starts, np.int64), np.array(self._keys, np.uint64)
            write_arrays(self._generation, {STARTS: starts, KEYS: np.sort(keys)})


def read_in_pieces(generation: Path) -> Iterator[DocumentReader]:
    """Yield the documents of a generation, some MiB at a time.

    They are read, not mapped, so that they do not count as memory of a build.
    """
    path, starts = generation / f"{RECORDS}.npy", open_array(generation, STARTS)
    with path.open("rb") as stream:
        (*_, begin), first = read_header(stream), 0
        while first < len(starts) - 1:
            last = int(np.searchsorted(starts, starts[first] + _PIECE, "right")) - 1
            piece = starts[first : max(last, first + 1) + 1]
            stream.seek(begin + int(piece[0]))
            content = np.frombuffer(stream.read(int(piece[-1] - piece[0])), np.uint8)
            yield DocumentReader((RecordsPart(content, piece - piece[0]),), path)
            first += len(piece) - 1


def write_live_documents(generation: Path, reader: DocumentReader, live: DocumentMask) -> None:
    """Write the records of live documents, which are renumbered, as `DocumentWriter` does.

    Cost: copying them, and 2 µs for each document of an ID that was written later.
    """
    parts = [(part.content, part.starts) for part in reader.parts]
    write_lists(generation, (RECORDS, STARTS), parts, live)
    numbers = np.cumsum(live, dtype=np.uint64) - np.uint64(1)
    of_build = (reader.keys & np.uint64(_DOC_ID)).astype(np.int64)
    hashes, doc_ids = [reader.keys & ~np.uint64(_DOC_ID)], [of_build]
    later = {id_: doc_id for id_ in reader.later if (doc_id := reader.find(id_)) is not None}
    later = {id_: doc_id for id_, doc_id in later.items() if doc_id >= len(reader.keys)}
    hashes.append(np.array([id_hash(id_) & ~_DOC_ID for id_ in later], np.uint64))
    doc_ids.append(np.array([*later.values()], np.int64))
    all_doc_ids = np.concatenate(doc_ids)
    keys = np.concatenate(hashes) | numbers[all_doc_ids]
    write_arrays(generation, {KEYS: np.sort(keys[live[all_doc_ids]])})


@dataclass(frozen=True, eq=False)
class DocumentReader:
    """Reads documents by doc id or ID; immutable, safe to share between threads.

    parts    their records, one part after the other
    path     file named in errors
    keys     of IDs: see the module
    later    doc ids of each ID that was written later, ascending, and perhaps of further documents
    live     (N,) whether a doc id has a document; None if all have

    All files are opened once, so a generation can be removed while a reader uses it. IndexDamaged
    if a record cannot be read, IndexError for an unknown doc id.
    """

    parts: tuple[RecordsPart, ...]
    path: Path
    keys: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    later: Mapping[str, Sequence[int]] = field(default_factory=dict)
    live: npt.NDArray[np.bool_] | None = None

    @classmethod
    def open(cls, generation: Path) -> DocumentReader:
        """Open the documents of a generation, memory-mapped; IndexDamaged."""
        content, starts, keys = (open_array(generation, name) for name in (RECORDS, STARTS, KEYS))
        return cls((RecordsPart(content, starts),), generation / f"{RECORDS}.npy", keys)

    @lazy_property
    def _bytes(self) -> _native.DocumentBytes:
        return _native.DocumentBytes([(part.content, part.starts) for part in self.parts])

    @lazy_property
    def native(self) -> _native.Records:
        """The records for compiled loops."""
        return _native.Records(self._bytes)

    def __len__(self) -> int:
        """Return the number of doc ids."""
        return len(self._bytes)

    @property
    def mean_size(self) -> int:
        """Return the mean size of a record in bytes, over all doc ids."""
        size = sum(int(part.starts[-1] - part.starts[0]) for part in self.parts)
        return size // max(len(self), 1)

    def size_of_longest(self, count: int) -> int:
        """Return the total bytes of the `count` longest documents, at most `MAX_LONGEST`.

        Cost: O(N) the first time, then of the documents written since.
        """
        return sum(self._longest[:count])

    @lazy_property
    def _longest(self) -> list[int]:
        sizes = np.sort(np.concatenate([part.longest for part in self.parts]))
        return list(map(int, sizes[::-1][:MAX_LONGEST]))

    def extended(
        self, part: RecordsPart, later: Mapping[str, Sequence[int]], live: npt.NDArray[np.bool_]
    ) -> DocumentReader:
        """Return a reader of these and later documents, whose records are in `part`."""
        return replace(self, parts=(*self.parts, part), later=later, live=live)

    def records(self, doc_ids: Sequence[int]) -> list[Record]:
        """Return documents in the order of the doc ids, without reading their texts."""
        return [self.record(*head) for head in self.heads(doc_ids)]

    def heads(self, doc_ids: Sequence[int]) -> list[tuple[str, str, str]]:
        """Return what `record` takes of documents: their metadata are JSON. Cost: 0.3 µs each."""
        try:
            return self.native.heads(doc_ids)
        except ValueError as error:
            raise self.damaged(error) from error

    def record(self, id: str, title: str, metadata: str) -> Record:  # noqa: A002 - as in `Record`
        """Return a document without its text. Cost: that of decoding its metadata."""
        try:
            return Record(id, title, loads(metadata) if metadata else {})
        except ValueError as error:
            raise self.damaged(error) from error

    def titles(self, doc_ids: Iterable[int]) -> list[str]:
        """Return titles in the order of the doc ids."""
        return [title for _, title, _ in self.heads([*map(int, doc_ids)])]

    def ids(self, doc_ids: Iterable[int]) -> list[str]:
        """Return IDs in the order of the doc ids."""
        return [id_ for id_, _, _ in self.heads([*map(int, doc_ids)])]

    def text(self, doc_id: int) -> str:
        """Return the text of a document."""
        try:
            return self.native.text(doc_id)
        except ValueError as error:
            raise self.damaged(error) from error

    def document(self, doc_id: int) -> Document:
        """Return the document of a doc id. Cost: 3 µs and the text."""
        ((id_, title, metadata),) = self.records([int(doc_id)])
        return Document(id=id_, title=title, text=self.text(int(doc_id)), metadata=metadata)

    def at(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents in the order of the doc ids."""
        return list(map(self.document, doc_ids))

    def live_doc_ids(self) -> Sequence[int]:
        """Return the doc ids of all live documents, in order."""
        if self.live is None:
            return range(len(self))
        doc_ids: list[int] = np.flatnonzero(self.live).tolist()
        return doc_ids

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents, in order of their doc ids."""
        return map(self.document, self.live_doc_ids())

    def get(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document of an ID; DocumentNotFound."""
        return self.document(*self.doc_ids([id]))

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of IDs, in their order; DocumentNotFound names the missing ones."""
        listed = list(ids)
        doc_ids = [doc_id for id_ in listed if (doc_id := self.find(id_)) is not None]
        if len(doc_ids) < len(listed):
            raise not_found([id_ for id_ in listed if self.find(id_) is None])
        return doc_ids

    def find(self, id: str) -> int | None:  # noqa: A002 - the field's own name
        """Return the doc id of an ID, or None. Cost: 5 µs."""
        live = self.live
        if live is None:
            return self._of_build(id)
        written = (doc_id for doc_id in reversed(self.later.get(id, ())) if doc_id < len(live))
        doc_id = next(written, None)
        if doc_id is None:
            doc_id = self._of_build(id)
        return doc_id if doc_id is not None and live[doc_id] else None

    def _of_build(self, id: str) -> int | None:  # noqa: A002 - the field's own name
        hash_ = id_hash(id) & ~_DOC_ID
        first, after = self.keys.searchsorted(np.array([hash_, hash_ | _DOC_ID], np.uint64))
        doc_ids = (int(key) & _DOC_ID for key in self.keys[first:after])
        return next((doc_id for doc_id in doc_ids if self.ids([doc_id]) == [id]), None)

    def existing(self, ids: Sequence[str]) -> Numbers:
        """Return the doc ids of those IDs that exist: (n,) int64."""
        doc_ids = (self.find(id_) for id_ in ids)
        return np.array([doc_id for doc_id in doc_ids if doc_id is not None], np.int64)

    def is_record(self, doc_id: int, record: bytes) -> bool:
        """Return whether a document is stored as this record: see `record_of`."""
        return self._bytes[doc_id] == record

    def equals(self, doc_id: int, document: Document) -> bool:
        """Return whether the document of a doc id is stored with this title, text and metadata.

        The order of metadata fields is ignored. Cost: some microseconds, and decoding the document.
        """
        stored = self.document(doc_id)
        return (stored.title, stored.text) == (document.title, document.text) and (
            _canonical(stored.metadata) == _canonical(document.metadata)
        )

    def damaged(self, error: object) -> IndexDamaged:
        """Return the error that the records cannot be read for that reason."""
        return unreadable(self.path, error, step_for(self.path))


_NAMED: Final = 10
"""IDs that a message names, at most."""


def not_found(ids: Sequence[str]) -> DocumentNotFound:
    """Return the error that documents with these IDs are not in the index."""
    ids = [*dict.fromkeys(ids)]
    if len(ids) == 1:
        return DocumentNotFound(f"no document {ids[0]!r} in the index; check the ID", field="id")
    named = ", ".join(map(repr, ids[:_NAMED]))
    further = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return DocumentNotFound(
        f"no documents {named}{further} in the index; check the IDs", field="id"
    )
