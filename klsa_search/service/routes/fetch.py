"""Endpoints that return one document, passage or page by its ID."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.document_answers import DocumentAnswer
from klsa_search.service.schemas.requests import (
    DocumentRequest,
    ExcerptRequest,
    documented_parameters,
    read_parameters,
)
from klsa_search.service.schemas.responses import encoded

router = APIRouter(dependencies=requires("search", tenants=True))


@router.get(
    "/documents/{id:whole}",
    summary="Get a document or passage",
    response_model=DocumentAnswer,
    openapi_extra=documented_parameters(DocumentRequest),
)
async def document(id: str, request: Request, service: Service) -> Response:
    """Return a document, a passage by its ID, or a page or span of a document.

    Percent-encode reserved characters of its ID (? # %) in the path: the passage `manual#0-1822` is
    /documents/manual%230-1822. A document with exactly this ID wins.
    """
    params = read_parameters(request, DocumentRequest)
    return await _fetch(params.index, id, params, service)


@router.get(
    "/indexes/{name}/documents/{id:whole}",
    summary="Get a document or passage of one index",
    response_model=DocumentAnswer,
    openapi_extra=documented_parameters(ExcerptRequest),
)
async def index_document(name: str, id: str, request: Request, service: Service) -> Response:
    """Return a document, passage or page as GET /documents/{id}, with the index in the path."""
    return await _fetch(name, id, read_parameters(request, ExcerptRequest), service)


async def _fetch(
    name: str | None, id_: str, params: ExcerptRequest, service: IndexService
) -> Response:
    def compute(index: Index) -> bytes:
        index = index.snapshot()
        excerpt = index.excerpt(id_, span=params.range, page=params.page)
        if params.vectors:
            excerpt = replace(excerpt, metadata=index.document(excerpt.document_id).metadata)
        return encoded(DocumentAnswer.of(excerpt, index), exclude_unset=True)

    return await service.read(name, compute)
