"""Documents and which can be stored, queries, judgements, and the protocol of a collection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, runtime_checkable

from klsa_search.errors import BadDocument, CollectionError

MAX_DEPTH: Final = 100
"""Limit of nesting in metadata; JSON libraries handle some hundreds of levels."""

MAX_ID_BYTES: Final = 512  # size limit of an ID
MAX_DOCUMENT_BYTES: Final = 10 * 2**20  # size limit of a document as JSON
_CONTAINERS: Final = (Mapping, list, tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document as in its source; `id` is any string, unique in the collection.

    >>> Document(id="oil", title="Oil", text="Change it.", metadata={"year": 2024}).title
    'Oil'
    """

    id: str
    title: str = ""
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""  # "file:line" of its beginning, for messages


def id_hash(id_: str) -> int:
    """Return 64 bits that depend on the ID of a document alone. Cost: 1 µs."""
    return int.from_bytes(blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A query of a test collection, with the ID that judgements and runs have."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Relevance of one document to one query.

    `grade` is read as by trec_eval: above 0 is relevant. `gain` is the gain in nDCG: max(grade, 0),
    unless lower grades of the collection are better (cran).
    """

    query_id: str
    document_id: str
    grade: int
    gain: int


@dataclass(slots=True)
class Problems:
    """Number of records and files that were skipped, and the first reasons.

    kinds  number of unreadable files by suffix and fault, as in ".pdf: is damaged"; the first
           reason of each kind is kept
    keep   number of reasons to keep

    >>> open_collection("reports.jsonl", on_error="skip").problems
    Problems(count=0, reasons=[], kinds={})
    """

    count: int = 0
    reasons: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)
    keep: int = field(default=5, repr=False, compare=False)

    def add(self, reason: str, *, kind: str | None = None) -> None:
        """Count one more; keep the first reasons, and the first of each kind."""
        self.count += 1
        if kind is not None:
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if len(self.reasons) < self.keep or (kind is not None and self.kinds[kind] == 1):
            self.reasons.append(reason)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON."""
        return {"count": self.count, "first": self.reasons, "kinds": self.kinds}


@dataclass(slots=True)
class Unread:
    """Files of a folder that are not read as documents; hidden files are not counted.

    kinds  number of files by kind: a suffix, "without suffix", "linked" (and not followed), or
           "special" (neither a file nor a folder, nor a link to one)
    first  first file of each kind, as a path below the folder

    >>> unread = Unread()
    >>> unread.add(".pdf", "2023/report.pdf")
    >>> unread.count, unread.kinds
    (1, {'.pdf': 1})
    """

    kinds: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return the number of all files."""
        return sum(self.kinds.values())

    def add(self, kind: str, path: str) -> None:
        """Count one more."""
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.first.setdefault(kind, path)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON."""
        return {"count": self.count, "kinds": self.kinds, "first": self.first}


@runtime_checkable
class Collection(Protocol):
    """An opened source; documents are read on demand.

    >>> isinstance(open_collection("reports.jsonl"), Collection)
    True
    """

    @property
    def name(self) -> str:
        """Return the name of the collection, folder or file."""

    @property
    def format(self) -> str:
        """Return the name of the format."""

    @property
    def problems(self) -> Problems:
        """Return what `documents` has skipped so far."""

    def documents(self) -> Iterator[Document]:
        """Stream the documents in source order, each id once; CollectionError on bad input."""

    def queries(self) -> list[Topic]:
        """Return the queries in source order; empty if the source has none."""

    def judgements(self) -> list[Judgement]:
        """Return the relevance judgements; empty if the source has none."""


Row = Document | Mapping[str, Any] | str | tuple[Any, ...]
"""A document in Python: a mapping, a text, or a tuple of ID, perhaps title, and text."""

Source = str | Path | BinaryIO | Collection | Iterable[Row] | Mapping[str, Any]
"""What documents are read from: a path or name, a stream, a collection, or Python objects."""


def batches(
    documents: Iterable[Document], *, size: int, characters: int
) -> Iterator[list[Document]]:
    """Divide documents into batches of at most `size`, fewer if they are long.

    characters  of titles and texts after which a batch ends
    """
    batch: list[Document] = []
    read = 0
    for document in documents:
        batch.append(document)
        read += len(document.title) + len(document.text)
        if len(batch) == size or read >= characters:
            yield batch
            batch, read = [], 0
    if batch:
        yield batch


class TruncatedFile(CollectionError):
    """The rest of one file cannot be read; the records before it are valid.

    With on_error="skip" it is counted, and reading continues with the next file. Any other
    CollectionError stops reading in both modes, because it concerns the whole source.
    """


def text_fault(text: str) -> str | None:
    """Return why a text cannot be stored (a NUL, or bytes that are not UTF-8); None if it can.

    Lines are decoded with `surrogateescape`, so an invalid byte is a lone surrogate.
    """
    if "\0" in text:
        return "contains a NUL byte"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        if 0xDC80 <= code <= 0xDCFF:
            return f"is not UTF-8: byte 0x{code - 0xDC00:02x} at character {error.start + 1}"
        return f"contains U+{code:04X}, half of a character"
    return None


def document_fault(document: Document) -> str | None:
    """Return why a document cannot be stored; None if it can."""
    for name in ("id", "title", "text"):
        value = getattr(document, name)
        # A Document made in Python may have values of any type.
        if not isinstance(value, str):
            return f"the {name} is of type {type(value).__name__}, not str"
        reason = text_fault(value)
        if reason:
            return f"the {name} {reason}"
    if not document.id.strip():
        return "the id is blank"
    return _metadata_fault(document.metadata)


def checked_id(id_: str) -> str:
    """Return an ID that can be stored; BadDocument for any other."""
    fault = text_fault(id_) if isinstance(id_, str) else f"is of type {type(id_).__name__}, not str"
    if fault is None and len(id_.encode()) > MAX_ID_BYTES:
        fault = f"has {len(id_.encode()):,} bytes, {MAX_ID_BYTES} are allowed"
    if fault:
        raise BadDocument(f"the id {str(id_)[:60]!r} {fault}; choose another", field="id")
    return id_


def document_as_json(document: Document) -> str:
    """Return a document as JSON, without its ID and without empty parts; BadDocument."""
    fault = document_fault(document)
    if fault:
        where = document.origin or f"document {str(document.id)[:60]!r}"
        raise BadDocument(f"{where}: {fault}; correct it and write again")
    checked_id(document.id)
    parts = {"title": document.title, "text": document.text, "metadata": dict(document.metadata)}
    written = json.dumps(
        {name: part for name, part in parts.items() if part}, ensure_ascii=False, allow_nan=False
    )
    size = len(written.encode())
    if size > MAX_DOCUMENT_BYTES:
        raise BadDocument(
            f"document {document.id[:60]!r} has {size:,} bytes as JSON, more than "
            f"the limit of {MAX_DOCUMENT_BYTES:,}; split it",
            field="text",
        )
    return written


def document_of(id_: str, written: str) -> Document:
    """Return the document of an ID and the output of `document_as_json`."""
    return Document(id=id_, **json.loads(written))


def _metadata_fault(metadata: object) -> str | None:
    """Return why metadata cannot be stored as a JSON object; None if it can."""
    if not isinstance(metadata, Mapping):
        return f"the metadata is of type {type(metadata).__name__}, not a mapping"
    if not metadata:
        return None
    try:
        written = _json(dict(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        return _field_fault(metadata) or f"the metadata is not JSON ({error})"
    # Each level opens a bracket: counting them is quicker than descending.
    if written.count("{") + written.count("[") > MAX_DEPTH and _is_deeper(metadata, MAX_DEPTH):
        return f"the metadata is nested more than {MAX_DEPTH} levels deep; flatten it"
    reason = text_fault(written)
    return f"the metadata {reason}" if reason else None


_json: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False).encode


def _field_fault(metadata: Mapping[Any, Any]) -> str | None:
    """Return the fault of the first field that is not JSON; None if only sorting failed."""
    for name, value in metadata.items():
        try:
            _json({name: value})
        except (TypeError, RecursionError) as error:
            return f"the field {name!r} is not JSON ({error})"
        except ValueError as error:
            if "circular" in str(error).lower():
                return f"the field {name!r} is not JSON ({error})"
            return (
                f"the field {name!r} contains NaN or an infinite number, which is "
                "not valid JSON; use null (None in Python)"
            )
    return None


def _is_deeper(metadata: Mapping[Any, Any], levels: int) -> bool:
    level: list[Any] = [metadata]
    for _ in range(levels):
        values = (item.values() if isinstance(item, Mapping) else item for item in level)
        level = [value for item in values for value in item if isinstance(value, _CONTAINERS)]
        if not level:
            return False
    return True
