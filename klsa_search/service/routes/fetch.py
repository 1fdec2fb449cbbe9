"""Endpoints that return one document, passage or page by its ID."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.document_answers import DocumentAnswer
from klsa_search.service.schemas.requests import DocumentRequest, ExcerptRequest
from klsa_search.service.schemas.responses import encoded

router = APIRouter(dependencies=requires("search", tenants=True))


@router.get(
    "/documents/{id:whole}", summary="Get a document or passage", response_model=DocumentAnswer
)
async def document(
    id: str, params: Annotated[DocumentRequest, Depends(DocumentRequest.of_url)], service: Service
) -> Response:
    """Return a document, a passage by its ID, or a page or span of a document.

    Percent-encode reserved characters of its ID (? # %) in the path: the passage `manual#0-1822` is
    /documents/manual%230-1822. A document with exactly this ID wins.
    """
    return await _fetch(params.index, id, params, service)


@router.get(
    "/indexes/{name}/documents/{id:whole}",
    summary="Get a document or passage of one index",
    response_model=DocumentAnswer,
)
async def index_document(
    name: str,
    id: str,
    params: Annotated[ExcerptRequest, Depends(ExcerptRequest.of_url)],
    service: Service,
) -> Response:
    """Return a document, passage or page as GET /documents/{id}, with the index in the path."""
    return await _fetch(name, id, params, service)


async def _fetch(
    name: str | None, id_: str, params: ExcerptRequest, service: IndexService
) -> Response:
    def compute(index: Index) -> bytes:
        excerpt = index.excerpt(id_, span=params.range, page=params.page)
        if params.vectors:
            excerpt = replace(excerpt, metadata=index.document(excerpt.document_id).metadata)
        return encoded(DocumentAnswer.of(excerpt, index), exclude_unset=True)

    return await service.read(name, compute)
