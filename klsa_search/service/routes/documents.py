"""Endpoints of documents: get one, a passage or a page of it; add, replace, patch and delete them.

Writes need a JSON content type, PUT, PATCH or DELETE: browsers send none of these for a page of
another site without a CORS preflight.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeVar

from fastapi import Request, Response
from pydantic_core import to_json

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import VECTORS, checked_vectors, with_dimensions
from klsa_search.errors import BadDocument, DocumentNotFound, KlsaError, QueryError
from klsa_search.search.batches import (
    BATCH_DOCUMENTS,
    Changes,
    WriteResult,
    declared_of,
    patched_documents,
)
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.index_service import IndexService
from klsa_search.service.middleware.bodies import (
    LINES,
    BodyLimit,
    content_type,
    refuse_other_types,
)
from klsa_search.service.schemas.base import elapsed, encoded
from klsa_search.service.schemas.documents import (
    MAX_BODY,
    DocumentAnswer,
    DocumentRequest,
    ExcerptRequest,
    Line,
    LineAnswer,
    WriteAnswer,
    changes_of_array,
    changes_of_line,
    changes_of_object,
    document_of_line,
    document_of_object,
    documents_of_array,
    ids_of_array,
    lines_of,
)
from klsa_search.service.schemas.errors import Failure, shown_message
from klsa_search.storage.columns.declared import FieldWarning

T = TypeVar("T")

router = router_for(
    "write",
    body=BodyLimit(
        MAX_BODY,
        f"send fewer documents at a time, or any number as lines ({LINES})",
        takes_lines=True,
    ),
)

MAX_LINES = 100_000  # maximum lines of a stream; the status of each is in memory until the response
_BATCH_BYTES = 2**23  # bytes of lines after which a batch is written
_JSON = "application/json"
_PATCH = "application/merge-patch+json"
_NUMBERS: Final = {"type": "array", "items": {"type": "number"}}
BODIES: Final = {
    "NewDocument": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "title": {"type": "string"},
            "text": {"type": "string"},
            "metadata": {"type": "object", "additionalProperties": True},
            "_vectors": {
                "type": "object",
                "description": "a vector, or several, for each space: {space: [numbers]}",
                "additionalProperties": {"anyOf": [_NUMBERS, {"type": "array", "items": _NUMBERS}]},
            },
        },
        "additionalProperties": True,
        "description": "all other names are metadata; at most 10 MiB as JSON, 512 bytes of id",
    },
    "DocumentChanges": {
        "type": "object",
        "additionalProperties": True,
        "description": "new values of title, text and metadata fields; null removes a field",
    },
    "IdentifiedChanges": {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": True,
        "description": "the ID of a document, and changes like `DocumentChanges`",
    },
}
"""Shared schemas of bodies that are parsed here, not by a model."""
_DOCUMENT: Final = {"$ref": "#/components/schemas/NewDocument"}
_IDENTIFIED_CHANGES: Final = {"$ref": "#/components/schemas/IdentifiedChanges"}
_CHANGES: Final = {"$ref": "#/components/schemas/DocumentChanges"}
LINES_BODY: Final = {
    "type": "string",
    "format": "binary",
    "description": "documents as lines of JSON, each like `NewDocument`",
}
"""Schema of a stream of documents."""


def body_of(kind: str, schema: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    """Return the OpenAPI description of a body of one content type.

    Some generators of clients write code that fails for a choice of types; `description` has the
    others.
    """
    about = {"description": description} if description else {}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema}}, **about}}


@router.post(
    "/indexes/{name}/documents",
    summary="Add or replace documents",
    response_model=WriteAnswer,
    openapi_extra=body_of(
        _JSON,
        {"type": "array", "items": _DOCUMENT, "maxItems": BATCH_DOCUMENTS},
        f"or any number of documents as lines of JSON: {LINES}",
    ),
)
async def add_documents(name: str, request: Request, service: Service) -> Response:
    """Add documents; each replaces the document with the same ID. Durable and searchable on return.

    A JSON array (or one object) is stored completely or not at all. A stream of lines is stored in
    batches of 1,000; the response has one status per line, and an invalid line is skipped. If
    writing stops early, as on a full disk, the last status is that of the first line not stored.
    """
    with service.writes.slot(size_of(request)):
        if content_type(request.headers) == LINES:
            return await _write_lines(name, request, service, _added)
        refuse_other_types(request, _JSON, LINES)
        body = await request.body()
        return await _change(service, name, lambda index: index.write(documents_of_array(body)))


@router.patch(
    "/indexes/{name}/documents",
    summary="Change fields of documents",
    response_model=WriteAnswer,
    openapi_extra=body_of(
        _JSON,
        {"type": "array", "items": _IDENTIFIED_CHANGES, "maxItems": BATCH_DOCUMENTS},
        f"or changes of any number of documents as lines of JSON: {LINES}",
    ),
)
async def patch_documents(name: str, request: Request, service: Service) -> Response:
    """Merge changes into many documents; each item has the ID of its document.

    Items are merged as by the PATCH of one document. A JSON array is stored completely or not at
    all: an error names the IDs that the index does not have. A stream of lines is stored in batches
    of 1,000; the response has one status per line, and an invalid line is skipped.
    """
    with service.writes.slot(size_of(request)):
        if content_type(request.headers) == LINES:
            return await _write_lines(name, request, service, _patched)
        refuse_other_types(request, _JSON, LINES)
        body = await request.body()
        return await _change(service, name, lambda index: index.patch_many(changes_of_array(body)))


@router.post(
    "/indexes/{name}/documents/delete-batch",
    summary="Delete documents",
    response_model=WriteAnswer,
    openapi_extra=body_of(_JSON, {"type": "array", "items": {"type": "string"}}),
)
async def delete_documents(name: str, request: Request, service: Service) -> Response:
    """Delete documents by ID in one step; `unknown` of the answer lists IDs without document."""
    with service.writes.slot(size_of(request)):
        refuse_other_types(request, _JSON)
        body = await request.body()
        return await _change(service, name, lambda index: index.write((), ids_of_array(body)))


@router.put(
    "/indexes/{name}/documents/{id:whole}",
    summary="Add or replace a document",
    response_model=WriteAnswer,
    openapi_extra=body_of(_JSON, _DOCUMENT),
)
async def put_document(name: str, id: str, request: Request, service: Service) -> Response:
    """Add or replace one document. The body may leave the ID out.

    The body is the whole document: fields that it leaves out are removed. To change single fields,
    use PATCH.
    """
    with service.writes.slot(size_of(request)):
        refuse_other_types(request, _JSON)
        body = await request.body()
        return await _change(
            service, name, lambda index: index.write([document_of_object(body, id)])
        )


@router.patch(
    "/indexes/{name}/documents/{id:whole}",
    summary="Change fields of a document",
    response_model=WriteAnswer,
    openapi_extra=body_of(_JSON, _CHANGES, f"also as {_PATCH}"),
)
async def patch_document(name: str, id: str, request: Request, service: Service) -> Response:
    """Merge the body into one document, as JSON Merge Patch (RFC 7396) does.

    Fields of the body replace those of the document, objects are merged, and `null` removes a
    field; all other fields stay. Concurrent patches do not lose changes. A patch that changes
    nothing is not written.
    """
    with service.writes.slot(size_of(request)):
        refuse_other_types(request, _JSON, _PATCH)
        body = await request.body()
        return await _change(service, name, lambda index: index.patch(id, changes_of_object(body)))


@router.delete(
    "/indexes/{name}/documents/{id:whole}", summary="Delete a document", response_model=WriteAnswer
)
async def delete_document(name: str, id: str, service: Service) -> Response:
    """Delete one document; an unknown ID is not an error."""
    with service.writes.slot():
        return await _change(service, name, lambda index: index.write((), [id]))


def size_of(request: Request) -> int | None:
    """Return the declared bytes of the body; None for lines, a chunked or a compressed body."""
    length = request.headers.get("content-length")
    is_compressed = "content-encoding" in request.headers
    if length is None or is_compressed or content_type(request.headers) == LINES:
        return None
    return int(length)


async def _change(
    service: IndexService, name: str, change: Callable[[Index], WriteResult]
) -> Response:
    def work(index: Index) -> bytes:
        begin = time.perf_counter()
        written = asdict(change(index))
        return to_json(WriteAnswer(index=index.name, time_ms=elapsed(begin), **written))

    return Response(await service.write(name, work), media_type=_JSON)


async def _write_lines(
    name: str,
    request: Request,
    service: IndexService,
    statuses: Callable[[Index, Sequence[Line]], Iterator[bytes]],
) -> Response:
    """Write a stream in batches; the response starts when all was read, as most clients expect.

    If a batch cannot be written, the last status is that of its first line.
    """
    # Of an alias, which may be moved between batches.
    name = service.resolve("write", name) or name
    written: list[bytes] = []
    batch: list[Line] = []
    size, count, last = 0, 0, 0

    async def write() -> None:
        written.append(await service.write(name, lambda index: b"".join(statuses(index, batch))))
        batch.clear()

    try:
        async for line in lines_of(request.stream()):
            count, last = count + 1, line.number
            if count > MAX_LINES:
                if batch:
                    await write()
                batch.append(line)
                raise QueryError(f"more than {MAX_LINES:,} lines; send the rest in another request")
            batch.append(line)
            size += len(line.content or b"")
            if len(batch) == BATCH_DOCUMENTS or size > _BATCH_BYTES:
                await write()
                size = 0
        if batch or not written:
            await write()
    except KlsaError as error:
        if not written:
            raise
        error.message = shown_message(error.message, service.open_indexes.home)
        written.append(_status(batch[0].number if batch else last + 1, None, error))
    return Response(b"".join(written), media_type=LINES)


def _added(index: Index, lines: Sequence[Line]) -> Iterator[bytes]:
    """Write the valid documents of some lines, and yield the status of each line."""
    declared = declared_of(index.settings, index.fields)
    dimensions = {space.name: space.dimension for space in index.vector_spaces}

    def document_of(line: Line) -> Document | None:
        document = document_of_line(line)
        if document is not None:
            if fault := declared.fault(document.metadata):
                raise BadDocument(f"line {line.number}: document {document.id!r}: {fault}")
            document = with_dimensions(checked_vectors(document), dimensions)
        return document

    valid, refused = _valid(lines, document_of)
    written = index.write(list(valid.values()))
    first = written.log_position - len(valid) + 1
    positions = dict(zip(valid, itertools.count(first), strict=False))
    return _statuses(lines, valid, refused, written, positions)


def _patched(index: Index, lines: Sequence[Line]) -> Iterator[bytes]:
    """Merge the valid changes of some lines into documents, and yield the status of each line."""

    def changes_of(line: Line) -> Changes | None:
        changes = changes_of_line(line)
        if changes is not None:
            (document,) = patched_documents([changes], present, declared, index.manifest.vectors)
            patched[document.id] = document
        return changes

    def present(id_: str) -> Document:
        """Return a document with the changes of earlier lines."""
        return patched.get(id_) or index.document(id_)

    patched: dict[str, Document] = {}

    declared = declared_of(index.settings, index.fields)
    valid, refused = _valid(lines, changes_of)
    written = index.patch_many([changes.fields for changes in valid.values()])
    positions = dict.fromkeys(valid, written.log_position)
    return _statuses(lines, valid, refused, written, positions)


def _valid(
    lines: Sequence[Line], item_of: Callable[[Line], T | None]
) -> tuple[dict[int, T], dict[int, KlsaError]]:
    """Return the items of lines, without blank ones, and why others are refused, by number."""
    valid: dict[int, T] = {}
    refused: dict[int, KlsaError] = {}
    for line in lines:
        try:
            item = item_of(line)
        except (BadDocument, DocumentNotFound) as error:
            refused[line.number] = error
        else:
            if item is not None:
                valid[line.number] = item
    return valid, refused


def _statuses(
    lines: Sequence[Line],
    valid: Mapping[int, Document | Changes],
    refused: Mapping[int, KlsaError],
    written: WriteResult,
    positions: Mapping[int, int],
) -> Iterator[bytes]:
    """Yield the status of each line.

    valid, refused, positions  by number of the line; positions of what was written in the log
    """
    warnings: dict[str, list[FieldWarning]] = {}
    for warning in written.warnings:
        warnings.setdefault(warning.id, []).append(warning)
    for number in (line.number for line in lines):
        if number in refused:
            yield _status(number, None, refused[number])
        elif number in valid:
            id_ = valid[number].id
            yield _status(
                number, id_, None, written.generation, positions[number], warnings.get(id_)
            )


def _status(
    number: int,
    id_: str | None,
    error: KlsaError | None,
    generation: str | None = None,
    position: int | None = None,
    warnings: Sequence[FieldWarning] | None = None,
) -> bytes:
    failure = error and Failure(code=error.code, message=error.message, field=error.field)
    status = LineAnswer(
        line=number,
        ok=error is None,
        id=id_,
        generation=generation,
        log_position=position,
        warnings=[asdict(warning) for warning in warnings] if warnings else None,
        error=failure.model_dump(exclude_defaults=True) if failure else None,
    )
    return to_json(status, exclude_none=True) + b"\n"


reading_router = router_for("search", tenants=True)


@reading_router.get(
    "/documents/{id:whole}", summary="Get a document or passage", response_model=DocumentAnswer
)
async def document(id: str, params: DocumentRequest, service: Service) -> Response:
    """Return a document, a passage by its ID, or a page or span of a document.

    Percent-encode reserved characters of its ID (? # %) in the path: the passage `manual#0-1822` is
    /documents/manual%230-1822. A document with exactly this ID wins.
    """
    return await _fetch(params.index, id, params, service)


@reading_router.get(
    "/indexes/{name}/documents/{id:whole}",
    summary="Get a document or passage of one index",
    response_model=DocumentAnswer,
)
async def index_document(name: str, id: str, params: ExcerptRequest, service: Service) -> Response:
    """Return a document, passage or page as GET /documents/{id}, with the index in the path."""
    return await _fetch(name, id, params, service)


async def _fetch(
    name: str | None, id_: str, params: ExcerptRequest, service: IndexService
) -> Response:
    def compute(index: Index) -> bytes:
        excerpt = index.excerpt(id_, span=params.range, page=params.page)
        if params.vectors:
            stored = index.document(excerpt.document_id).metadata
            vectors = {VECTORS: stored[VECTORS]} if VECTORS in stored else {}
            excerpt = replace(excerpt, metadata={**excerpt.metadata, **vectors})
        answer = {
            "id": excerpt.id,
            "index": index.name,
            "generation": index.generation,
            "title": excerpt.title,
            "text": excerpt.text,
            "metadata": excerpt.metadata,
        }
        if excerpt.is_part:
            names = ["document_id", "span", "heading", *(["page"] if excerpt.page else [])]
            answer |= {name: getattr(excerpt, name) for name in names}
        return encoded(answer)

    return await service.read(name, compute)
