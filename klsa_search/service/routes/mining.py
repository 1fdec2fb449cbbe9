"""Endpoints of similar documents, related terms, maps and classification."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends

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

router = APIRouter()

_SPAN = 65_535
"""Largest coordinate of a map: two bytes."""


@router.get(
    "/indexes/{name}/documents/{id:whole}/similar",
    dependencies=requires("search", tenants=True),
    summary="Find similar documents",
)
async def similar_documents(
    name: str,
    id: str,
    params: Annotated[SimilarRequest, Depends(SimilarRequest.of_url)],
    service: Service,
) -> SimilarAnswer:
    """Return the documents most similar to one; scores are relative to its own."""

    def compute(index: Index) -> SimilarAnswer:
        hits = similar(index, id, params.k, kernel=params.kernel, gamma=params.gamma)
        return SimilarAnswer(
            id=id, kernel=params.kernel, hits=[HitAnswer.model_validate(hit) for hit in hits]
        )

    return await service.answer(name, compute, heavy=True)


@router.get(
    "/indexes/{name}/documents/{id:whole}/terms",
    dependencies=requires("search", tenants=True),
    summary="Get the strongest terms of a document",
)
async def terms_of_document(
    name: str,
    id: str,
    params: Annotated[StrongTermsRequest, Depends(StrongTermsRequest.of_url)],
    service: Service,
) -> StrongTermsAnswer:
    """Return the terms of a document that weigh most in BM25, strongest first."""

    def compute(index: Index) -> StrongTermsAnswer:
        return StrongTermsAnswer(id=id, terms=strongest_terms(index, id, params.k))

    return await service.answer(name, compute, heavy=True)


@router.get(
    "/indexes/{name}/terms/{term:whole}/related",
    dependencies=requires("search"),
    summary="Find related terms",
)
async def related_terms(
    name: str,
    term: str,
    params: Annotated[RelatedRequest, Depends(RelatedRequest.of_url)],
    service: Service,
) -> RelatedAnswer:
    """Return the terms most related to one or several words, as learned from the documents."""

    def compute(index: Index) -> RelatedAnswer:
        return RelatedAnswer(term=term, related=related(index, term, params.k))

    return await service.answer(name, compute, heavy=True)


@router.get(
    "/indexes/{name}/map", dependencies=requires("search"), summary="Get the map of documents"
)
async def map_of_documents(
    name: str,
    params: Annotated[MapRequest, Depends(MapRequest.of_url)],
    service: Service,
) -> MapAnswer:
    """Return a map of the documents in two dimensions, similar ones near each other, and their
    clusters. The first request computes it, which takes seconds for 20,000 documents.
    """
    return await service.answer(name, partial(_mapped, kernel=params.kernel), heavy=True)


@router.post(
    "/indexes/{name}/map", dependencies=requires("search"), summary="Get positions on the map"
)
async def map_of_some(name: str, body: MapBody, service: Service) -> MapAnswer:
    """Return the positions of given documents, also of those that the map of a large index leaves
    out. `clusters` is empty; `cluster` refers to the clusters of the map.
    """
    return await service.answer(
        name, partial(_mapped, kernel=body.kernel, ids=body.ids), heavy=True
    )


def _mapped(index: Index, *, kernel: str, ids: list[str] | None = None) -> MapAnswer:
    drawn = document_map(index, ids=ids, kernel=kernel)
    x, y = drawn.as_integers(_SPAN).T.tolist()
    return MapAnswer(
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
    "/indexes/{name}/classify", dependencies=requires("search"), summary="Classify by examples"
)
async def classify_documents(name: str, body: ClassifyBody, service: Service) -> ClassifyAnswer:
    """Label documents, texts or all other documents, given a few labelled documents."""

    def compute(index: Index) -> ClassifyAnswer:
        if body.texts is not None:
            classified = classify_texts(index, body.labels, body.texts)
        else:
            most = body.k if body.ids is None else None
            classified = classify(index, body.labels, body.ids, k=most, kernel=body.kernel)
        return ClassifyAnswer(classified=classified)

    return await service.answer(name, compute, heavy=True)
