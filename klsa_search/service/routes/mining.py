"""Endpoints of similar documents, related terms, maps and classification."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from klsa_search.mining.classification import classify, classify_texts
from klsa_search.mining.map import document_map
from klsa_search.mining.related_terms import related, strongest_terms
from klsa_search.mining.similar import similar
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.schemas.mining import (
    ClassifyAnswer,
    ClassifyBody,
    HitAnswer,
    MapAnswer,
    MapBody,
    MapClusterAnswer,
    MapRequest,
    RelatedAnswer,
    RelatedRequest,
    SimilarAnswer,
    SimilarRequest,
    StrongTermsAnswer,
    StrongTermsRequest,
)
from klsa_search.service.schemas.requests import documented_parameters, read_parameters
from klsa_search.service.schemas.responses import answered

router = APIRouter()

_SPAN = 65_535
"""Largest coordinate of a map: two bytes."""


@router.get(
    "/indexes/{name}/documents/{id:whole}/similar",
    dependencies=requires("search", tenants=True),
    summary="Find similar documents",
    response_model=SimilarAnswer,
    openapi_extra=documented_parameters(SimilarRequest),
)
async def similar_documents(name: str, id: str, request: Request, service: Service) -> Response:
    """Return the documents most similar to one; scores are relative to its own."""
    params = read_parameters(request, SimilarRequest)

    def compute(index: Index) -> SimilarAnswer:
        begin = time.perf_counter()
        hits = similar(index, id, params.k, kernel=params.kernel, gamma=params.gamma)
        return SimilarAnswer(
            id=id,
            **answered(index, begin),
            kernel=params.kernel,
            hits=[HitAnswer.model_validate(hit) for hit in hits],
        )

    return await service.read(name, compute, heavy=True)


@router.get(
    "/indexes/{name}/documents/{id:whole}/terms",
    dependencies=requires("search", tenants=True),
    summary="Get the strongest terms of a document",
    response_model=StrongTermsAnswer,
    openapi_extra=documented_parameters(StrongTermsRequest),
)
async def terms_of_document(name: str, id: str, request: Request, service: Service) -> Response:
    """Return the terms of a document that weigh most in BM25, strongest first."""
    params = read_parameters(request, StrongTermsRequest)

    def compute(index: Index) -> StrongTermsAnswer:
        begin = time.perf_counter()
        terms = strongest_terms(index, id, params.k)
        return StrongTermsAnswer(
            id=id,
            **answered(index, begin),
            terms=terms,
        )

    return await service.read(name, compute, heavy=True)


@router.get(
    "/indexes/{name}/terms/{term:whole}/related",
    dependencies=requires("search"),
    summary="Find related terms",
    response_model=RelatedAnswer,
    openapi_extra=documented_parameters(RelatedRequest),
)
async def related_terms(name: str, term: str, request: Request, service: Service) -> Response:
    """Return the terms most related to one or several words, as learned from the documents."""
    params = read_parameters(request, RelatedRequest)

    def compute(index: Index) -> RelatedAnswer:
        begin = time.perf_counter()
        related_terms = related(index, term, params.k)
        return RelatedAnswer(
            term=term,
            **answered(index, begin),
            related=related_terms,
        )

    return await service.read(name, compute, heavy=True)


@router.get(
    "/indexes/{name}/map",
    dependencies=requires("search"),
    summary="Get the map of documents",
    response_model=MapAnswer,
    openapi_extra=documented_parameters(MapRequest),
)
async def map_of_documents(name: str, request: Request, service: Service) -> Response:
    """Return a map of the documents in two dimensions, similar ones near each other, and their
    clusters. The first request computes it, which takes seconds for 20,000 documents.
    """
    params = read_parameters(request, MapRequest)
    return await service.read(name, partial(_mapped, kernel=params.kernel), heavy=True)


@router.post(
    "/indexes/{name}/map",
    dependencies=requires("search"),
    summary="Get positions on the map",
    response_model=MapAnswer,
)
async def map_of_some(name: str, body: Annotated[MapBody, Body()], service: Service) -> Response:
    """Return the positions of given documents, also of those that the map of a large index leaves
    out. `clusters` is empty; `cluster` refers to the clusters of the map.
    """
    return await service.read(name, partial(_mapped, kernel=body.kernel, ids=body.ids), heavy=True)


def _mapped(index: Index, *, kernel: str, ids: list[str] | None = None) -> MapAnswer:
    begin = time.perf_counter()
    index = index.snapshot()
    drawn = document_map(index, ids=ids, kernel=kernel)
    x, y = drawn.as_integers(_SPAN).T.tolist()
    return MapAnswer(
        **answered(index, begin),
        documents=drawn.documents,
        unplaced=drawn.unplaced,
        clusters=[
            MapClusterAnswer(
                words=list(one.words),
                size=one.size,
                x=round(_SPAN * one.x),
                y=round(_SPAN * one.y),
                tone=one.tone,
            )
            for one in drawn.clusters
        ],
        ids=index.ids(drawn.doc_ids),
        x=x,
        y=y,
        cluster=drawn.cluster.tolist(),
    )


@router.post(
    "/indexes/{name}/classify",
    dependencies=requires("search"),
    summary="Classify by examples",
    response_model=ClassifyAnswer,
)
async def classify_documents(
    name: str, body: Annotated[ClassifyBody, Body()], service: Service
) -> Response:
    """Label documents, texts or all other documents, given a few labelled documents."""

    def compute(index: Index) -> ClassifyAnswer:
        begin = time.perf_counter()
        if body.texts is not None:
            classified = classify_texts(index, body.labels, body.texts)
        else:
            most = body.k if body.ids is None else None
            classified = classify(index, body.labels, body.ids, k=most, kernel=body.kernel)
        return ClassifyAnswer(
            **answered(index, begin),
            classified=classified,
        )

    return await service.read(name, compute, heavy=True)
