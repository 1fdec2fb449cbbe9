"""The REST API of Anserini, version v1, so that its clients work here unchanged.

Paths, parameters, responses and errors follow its openapi.yaml (v1).
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from pydantic_core import from_json, to_json

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.deadlines import check_deadline
from klsa_search.search.costs import estimated_cost
from klsa_search.search.index import Index
from klsa_search.service.index_service import requires, service_of
from klsa_search.service.schemas.requests import (
    MAX_HITS,
    QueryText,
    RequestModel,
    documented_parameters,
    read_parameters,
)
from klsa_search.service.schemas.responses import MAX_ANSWER, Answer, too_large

PREFIX = "/v1/"
"""Prefix of the paths of this API, whose errors have their own format."""

router = APIRouter(dependencies=requires("search", tenants=True))


class V1Failure(Answer):
    """What went wrong, in one sentence."""

    error: str


_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": V1Failure, "description": description}
    for status, description in {
        400: "a parameter is missing, unknown or invalid, or the answer is too large",
        404: "unknown index or document",
        500: "internal error",
        503: "the index cannot be used, or the service is busy",
    }.items()
}


class V1Search(RequestModel):
    """The parameters of GET /v1/{index}/search."""

    query: QueryText = Field(description="query text")
    hits: int = Field(10, ge=1, le=MAX_HITS, description="maximum number of hits")
    parse: bool = Field(True, description="documents as JSON; as one text if false")


class V1Document(RequestModel):
    """The parameters of GET /v1/{index}/doc/{docid}."""

    parse: bool = Field(True, description="document as JSON; as one text if false")


class V1Query(Answer):
    """The query."""

    text: str


class V1Candidate(Answer):
    """One hit."""

    docid: str
    score: float
    rank: int = Field(description="rank from 1")
    doc: dict[str, Any] | str


class V1SearchAnswer(Answer):
    """The ranked hits."""

    api: str
    index: str
    query: V1Query
    candidates: list[V1Candidate]


class V1DocumentAnswer(Answer):
    """One document."""

    api: str
    index: str
    docid: str
    doc: dict[str, Any] | str


@router.get(
    "/v1/{name}/search",
    summary="Search (Anserini API)",
    response_model=V1SearchAnswer,
    responses=_FAILURES,
    openapi_extra=documented_parameters(V1Search),
)
async def v1_search(name: str, request: Request) -> Response:
    """Rank the documents of an index by relevance to a query without operators."""
    params = read_parameters(request, V1Search)

    def compute(index: Index) -> bytes:
        index = index.snapshot()
        doc_ids, scores = index.rank(params.query, params.hits, operators=False)
        answer = {"api": "v1", "index": name, "query": {"text": params.query}}
        head, candidates = to_json(answer), []
        left = MAX_ANSWER - len(head)
        for rank, (doc_id, score) in enumerate(
            zip(doc_ids.tolist(), scores.tolist(), strict=True), start=1
        ):
            check_deadline()
            (document,) = index.documents([doc_id])
            doc = _contents(document, params.parse)
            candidate = {"docid": document.id, "score": score, "rank": rank, "doc": doc}
            candidates.append(to_json(candidate, inf_nan_mode="null"))
            left -= len(candidates[-1]) + 1
            if left < 0:
                raise too_large()
        return head[:-1] + b',"candidates":[' + b",".join(candidates) + b"]}"

    return await service_of(request).read(
        name,
        compute,
        cost=lambda index: estimated_cost(
            index.query_counts(params.query, operators=False), params.hits
        ),
    )


@router.get(
    "/v1/{name}/doc/{docid:whole}",
    summary="Get a document (Anserini API)",
    response_model=V1DocumentAnswer,
    responses=_FAILURES,
    openapi_extra=documented_parameters(V1Document),
)
async def v1_document(name: str, docid: str, request: Request) -> Response:
    """Return one document."""
    params = read_parameters(request, V1Document)

    def compute(index: Index) -> bytes:
        doc = _contents(index.document(docid), params.parse)
        return _encode(api="v1", index=name, docid=docid, doc=doc)

    return await service_of(request).read(name, compute)


def as_v1_error(failure: JSONResponse) -> JSONResponse:
    """Convert an error response to the format of this API."""
    message = from_json(bytes(failure.body))["error"]["message"]
    status = 400 if failure.status_code == 422 else failure.status_code
    kept = {
        name: value
        for name, value in failure.headers.items()
        if name not in ("content-length", "content-type")
    }
    return JSONResponse({"error": message}, status, kept)


def _contents(document: Document, parse: bool) -> dict[str, Any] | str:
    """Return a document as in a source of JSON lines: an object, or its text."""
    metadata = without_vectors(document.metadata)
    contents = {
        "id": document.id,
        "title": document.title,
        "contents": document.text,
        **({"metadata": dict(metadata)} if metadata else {}),
    }
    return contents if parse else to_json(contents, inf_nan_mode="null").decode()


def _encode(**answer: Any) -> bytes:
    encoded = to_json(answer, inf_nan_mode="null")
    if len(encoded) > MAX_ANSWER:
        raise too_large()
    return encoded
