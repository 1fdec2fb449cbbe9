"""Endpoints of documents: get one, a passage or a page of it; add, replace, patch and delete them.

Writes need a JSON content type, PUT, PATCH or DELETE: browsers send none of these for a page of
another site without a CORS preflight.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from fastapi import Request, Response
from pydantic_core import to_json

from klsa_search.collection.vectors import VECTORS
from klsa_search.search.batches import (
    BATCH_DOCUMENTS,
    WriteResult,
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
from klsa_search.service.routes.document_lines import (
    StatusesOf,
    add_lines,
    patch_lines,
    write_lines,
)
from klsa_search.service.schemas.base import elapsed, encoded
from klsa_search.service.schemas.documents import (
    MAX_BODY,
    DocumentAnswer,
    DocumentRequest,
    ExcerptRequest,
    WriteAnswer,
    changes_of_array,
    changes_of_object,
    document_of_object,
    documents_of_array,
    ids_of_array,
)

router = router_for(
    "write",
    body=BodyLimit(
        MAX_BODY,
        f"send fewer documents at a time, or any number as lines ({LINES})",
        takes_lines=True,
    ),
)

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
    return await _write(
        name,
        request,
        service,
        lambda index, body: index.write(documents_of_array(body)),
        of_lines=add_lines,
    )


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
    return await _write(
        name,
        request,
        service,
        lambda index, body: index.patch_many(changes_of_array(body)),
        of_lines=patch_lines,
    )


@router.post(
    "/indexes/{name}/documents/delete-batch",
    summary="Delete documents",
    response_model=WriteAnswer,
    openapi_extra=body_of(_JSON, {"type": "array", "items": {"type": "string"}}),
)
async def delete_documents(name: str, request: Request, service: Service) -> Response:
    """Delete documents by ID in one step; `unknown` of the answer lists IDs without document."""
    return await _write(
        name, request, service, lambda index, body: index.write((), ids_of_array(body))
    )


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
    return await _write(
        name, request, service, lambda index, body: index.write([document_of_object(body, id)])
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
    return await _write(
        name,
        request,
        service,
        lambda index, body: index.patch(id, changes_of_object(body)),
        types=(_JSON, _PATCH),
    )


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


async def _write(
    name: str,
    request: Request,
    service: IndexService,
    change: Callable[[Index, bytes], WriteResult],
    *,
    types: Sequence[str] = (_JSON,),
    of_lines: StatusesOf | None = None,
) -> Response:
    """Change an index by the body of a request, of one of these types, or by its lines."""
    with service.writes.slot(size_of(request)):
        service.resolve("write", name)  # the key is valid for the index, before the body is read
        if of_lines is not None:
            if content_type(request.headers) == LINES:
                return await write_lines(name, request, service, of_lines)
            types = (*types, LINES)
        refuse_other_types(request, *types)
        body = await request.body()
        return await _change(service, name, lambda index: change(index, body))


async def _change(
    service: IndexService, name: str, change: Callable[[Index], WriteResult]
) -> Response:
    def work(index: Index) -> bytes:
        begin = time.perf_counter()
        written = asdict(change(index))
        return to_json(WriteAnswer(index=index.name, time_ms=elapsed(begin), **written))

    return Response(await service.write(name, work), media_type=_JSON)


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
