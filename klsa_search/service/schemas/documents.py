"""Bodies of writes, which are parsed here, and answers of documents.

A body is a JSON array, one object, or lines of JSON. Objects become documents as in
`collection.mappings`; NaN is null, and infinite numbers are refused.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from math import isfinite
from typing import IO, Any

from pydantic import Field

from klsa_search.collection.columns import ID_NAMES
from klsa_search.collection.json_files import DECODER, document_of, object_of
from klsa_search.collection.mappings import as_document
from klsa_search.collection.model import Document, document_as_json, text_fault
from klsa_search.core.parameters import Text
from klsa_search.errors import BadDocument, CollectionError, QueryError
from klsa_search.search.batches import BATCH_DOCUMENTS, Changes, WriteResult
from klsa_search.search.pages.excerpts import Excerpt, span_of
from klsa_search.service.schemas.base import Answer, IndexName, RequestModel, documented

MAX_BODY = 2**25  # maximum bytes of a body, or of one line: a document of 10 MiB with any escapes
MAX_IDS = 10_000

_BOM = b"\xef\xbb\xbf"
_BLANKS = frozenset(" \t\r\n")


class BadJson(QueryError):
    """A body that is not JSON."""

    code = "bad_json"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a stream, numbered from 1; `content` is None if it is too long."""

    number: int
    content: bytes | None

    @property
    def origin(self) -> str:
        """The line as messages name it."""
        return f"line {self.number}"

    def text(self) -> str:
        """Return the text, empty for a blank line; BadDocument if it is too long."""
        if self.content is None:
            raise BadDocument(f"{self.origin}: more than {MAX_BODY:,} bytes; split it")
        content = self.content.removeprefix(_BOM) if self.number == 1 else self.content
        return "" if content.isspace() else content.decode("utf-8", "surrogateescape")


async def lines_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[Line]:
    """Yield the lines of a stream, without empty ones; one line is in memory at a time."""
    number, pending, too_long = 1, bytearray(), False
    async for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for part in lines:
            if too_long or len(pending) + len(part) > MAX_BODY:
                yield Line(number, None)
            elif pending or part:
                yield Line(number, bytes(pending) + part)
            number, too_long = number + 1, False
            pending.clear()
        too_long = too_long or len(pending) + len(rest) > MAX_BODY
        if too_long:
            pending.clear()
        else:
            pending += rest
    if pending or too_long:
        yield Line(number, None if too_long else bytes(pending))


def document_of_line(line: Line) -> Document | None:
    """Return the document of a line, None for a blank line; BadDocument if it is invalid."""
    with _as_bad_document():
        text = line.text()
        return _checked(document_of(text, line.origin)) if text else None


def changes_of_line(line: Line) -> Changes | None:
    """Return the changes of a line, None for a blank line; BadDocument if it is invalid."""
    with _as_bad_document():
        text, origin = line.text(), line.origin
        return Changes.of_record(object_of(text, origin), origin) if text else None


@contextmanager
def _as_bad_document() -> Iterator[None]:
    """Raise errors of a record as BadDocument, with the next step of one who sends it."""
    try:
        yield
    except BadDocument:
        raise
    except CollectionError as error:
        raise BadDocument(f"{error.message}; correct it and send it again") from None


def documents_of_array(body: bytes) -> list[Document]:
    """Return the documents of an array of objects, or of one object: see `_objects`."""
    return [_document(record, origin) for record, origin in _objects(body)]


def changes_of_array(body: bytes) -> list[dict[str, Any]]:
    """Return the changes of an array of objects, or of one object: see `_objects`."""
    return [record for record, _ in _objects(body)]


def _objects(body: bytes) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects of an array, at most `BATCH_DOCUMENTS`, and the place of each.

    BadJson; BadDocument with the place of the first that is no object. The array is decoded one
    element at a time, so that other threads can run.
    """
    for number, record in enumerate(_elements(_text_of(body))):
        if number == BATCH_DOCUMENTS:
            raise QueryError(
                f"the body has more than {BATCH_DOCUMENTS:,} documents; send fewer at a "
                "time, or any number as lines (Content-Type: "
                "application/x-ndjson)"
            )
        origin = f"documents[{number}]"
        yield _checked_object(record, origin), origin


def document_of_object(body: bytes, id_: str) -> Document:
    """Return the document of an object, which may contain its ID. Errors as above."""
    record = _json(_text_of(body))
    if isinstance(record, dict):
        names = [str(record.pop(name)) for name in ID_NAMES if name in record]
        if names and names[0] != id_:
            raise QueryError(
                f"id {names[0][:60]!r} in the body differs from {id_[:60]!r} in "
                "the path; leave it out of the body",
                field="id",
            )
        record = {"id": id_, **record}
    return _document(record, "the body")


def changes_of_object(body: bytes) -> dict[str, Any]:
    """Return the changes of a JSON Merge Patch; BadJson, or QueryError if it is not an object."""
    changes = _json(_text_of(body))
    if not isinstance(changes, dict):
        raise QueryError("the body is not a JSON object; send one with the fields to change")
    return changes


def documents_of_lines(body: IO[bytes]) -> Iterator[Document]:
    """Yield the documents of a file of lines; BadDocument with the number of the first invalid one.

    Memory: one line.
    """
    body.seek(0)
    for number in count(1):
        content = body.readline(MAX_BODY + 2)
        if not content:
            return
        too_long = len(content.removesuffix(b"\n")) > MAX_BODY
        document = document_of_line(Line(number, None if too_long else content))
        if document is not None:
            yield document


def ids_of_array(body: bytes) -> list[str]:
    """Return an array of IDs, at most `MAX_IDS`; numbers become text, as IDs of documents do."""
    ids = _json(_text_of(body))
    if not isinstance(ids, list) or not all(
        type(id_) in (str, int) or (isinstance(id_, float) and isfinite(id_)) for id_ in ids
    ):
        raise QueryError('the body is not an array of IDs; send one, as in ["a", "b"]')
    if len(ids) > MAX_IDS:
        raise QueryError(f"the body has {len(ids):,} IDs; send at most {MAX_IDS:,} at a time")
    return [str(id_) for id_ in ids]


def _checked_object(record: Any, origin: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise BadDocument(f"{origin} is a {type(record).__name__}; send a JSON object")
    return record


def _document(record: Any, origin: str) -> Document:
    with _as_bad_document():
        return _checked(as_document(_checked_object(record, origin), origin))


def _checked(document: Document) -> Document:
    """Return a document; BadDocument if it cannot be stored."""
    document_as_json(document)
    return document


def _text_of(body: bytes) -> str:
    text = body.removeprefix(_BOM).decode("utf-8", "surrogateescape")
    fault = text_fault(text)
    if fault:
        raise BadJson(f"the body {fault}; correct it")
    return text


def _json(text: str) -> Any:
    with _as_bad_json():
        return DECODER.decode(text)


def _elements(text: str) -> Iterator[Any]:
    """Yield the elements of an array, decoded one at a time, or the single value."""
    at = _after_blanks(text, 0)
    if text[at : at + 1] != "[":
        yield _json(text)
        return
    at = _after_blanks(text, at + 1)
    after = ","
    if text[at : at + 1] == "]":
        at = _after_blanks(text, at + 1)
        after = "]"
    with _as_bad_json():
        while after == ",":
            value, at = DECODER.raw_decode(text, at)
            yield value
            at = _after_blanks(text, at)
            after = text[at : at + 1]
            if after not in ("]", ","):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _after_blanks(text, at + 1)
        if at < len(text):
            raise json.JSONDecodeError("Extra data", text, at)


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in _BLANKS:
        at += 1
    return at


@contextmanager
def _as_bad_json() -> Iterator[None]:
    try:
        yield
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos}"
    except ValueError as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    else:
        return
    raise BadJson(f"the body is not JSON ({reason}); correct it")


class ExcerptRequest(RequestModel):
    """The parameters of GET /indexes/{name}/documents/{id}."""

    span: Text | None = Field(
        None,
        description="first character, and the one after the last, as in 0-1822: return only this "
        "part of the text",
    )
    page: int | None = Field(
        None, ge=1, description="return only this page, from 1, of a document with pages"
    )
    vectors: bool = Field(
        False,
        description="return the vectors of the document too, in metadata as `_vectors`, in the "
        "form in which they are stored; writes take this form",
    )

    @property
    def range(self) -> tuple[int, int] | None:
        """Return the span as numbers; QueryError."""
        return None if self.span is None else span_of(self.span)


class DocumentRequest(ExcerptRequest):
    """The parameters of GET /documents/{id}."""

    index: IndexName | None = None


@documented
@dataclass(frozen=True, kw_only=True)
class DocumentAnswer(Excerpt):
    """One document, or a part of it: `document_id`, `span`, `page` and `heading` are of a part."""

    index: str
    generation: str
    document_id: str = ""
    span: tuple[int, int] = (0, 0)
    page: int | None = None
    heading: str = ""


@documented
@dataclass(frozen=True, kw_only=True)
class WriteAnswer(WriteResult):
    """Result of a write, which is durable and searchable when it is answered."""

    index: str
    time_ms: float


class SyncIdsAnswer(Answer):
    """IDs of the documents that a sync wrote."""

    added: list[str]
    changed: list[str]
    deleted: list[str]


class ProblemCounts(Answer):
    """Records that were left out, or values that count as missing."""

    count: int
    first: list[str] = Field(description="the first reasons, at most 100")
    kinds: dict[str, int] = Field(description="number of values by field, or of files by fault")


class SyncAnswer(Answer):
    """Result of a sync, which is durable and searchable when it is answered."""

    index: str
    generation: str
    added: int = Field(description="documents added")
    changed: int = Field(description="documents replaced, because they differed")
    deleted: int = Field(description="documents deleted, because the body does not have them")
    unchanged: int = Field(description="documents that were equal already; not written")
    batches: int = Field(description="batches in the log of writes; 0 if nothing was written")
    removed_fields: list[str] = Field(
        description="metadata fields that changed documents had, and no document of the body has"
    )
    dry_run: bool
    ids: SyncIdsAnswer | None = Field(None, description="with `ids`: the IDs")
    log_position: int = Field(description="position of the last row in the log of writes")
    warnings: ProblemCounts = Field(description="values of the wrong type, which count as missing")
    time_ms: float


class LineAnswer(Answer):
    """Result of one line of a stream; names without a value are left out."""

    line: int = Field(description="line number from 1, counting blank lines")
    ok: bool
    id: str | None = None
    generation: str | None = Field(None, description="generation that the document was written to")
    log_position: int | None = Field(None, description="position of its row in the log of writes")
    warnings: list[dict[str, str]] | None = Field(
        None, description="values of the document of the wrong type for their fields"
    )
    error: dict[str, str | None] | None = Field(None, description="error, as in an error response")
