"""Endpoints of the relevance judgements of an index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Response
from pydantic import AfterValidator, Field

from klsa_search.collection.queries import qrels_text
from klsa_search.core.parameters import Text
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.requests import QueryText, RequestModel
from klsa_search.service.schemas.responses import MAX_ANSWER, Answer, too_large
from klsa_search.storage.judgements import MAX_GRADE, plain

LEFT_OUT: Final = "X-Left-Out"
"""Header with the number of judgements that a file has no place for."""

router = APIRouter()


def _plain(q: str) -> str:
    try:
        return plain(q)
    except QueryError as error:
        raise QueryError(error.message, field="q") from None  # as requests call it


_QUERY = Annotated[
    QueryText,
    Field(description="query text"),
    AfterValidator(_plain),
]


class JudgementBody(RequestModel):
    """The body of PUT /indexes/{name}/judgements."""

    q: _QUERY
    id: Text = Field(description="ID of a document of the index")
    grade: int = Field(
        ge=-MAX_GRADE, le=MAX_GRADE, description="grade: above 0 is relevant, 0 or below is not"
    )


class JudgementsRequest(RequestModel):
    """The parameters of GET /indexes/{name}/judgements."""

    q: _QUERY | None = Field(None, description="return only this query")


class WithdrawalRequest(RequestModel):
    """The parameters of DELETE /indexes/{name}/judgements."""

    q: _QUERY
    id: Text | None = Field(
        None, description="ID of a document; by default all documents of the query"
    )


class JudgedQueryAnswer(Answer):
    """One judged query."""

    number: int = Field(description="permanent number of the query, used in exported files")
    q: str
    grades: dict[str, int] = Field(description="grades by document ID; above 0 is relevant")
    deleted: list[str] = Field(description="IDs among these of deleted documents")


class JudgementsAnswer(Answer):
    """The judgements of an index."""

    index: str
    queries: list[JudgedQueryAnswer]

    @classmethod
    def of(cls, index: Index, q: str | None = None) -> JudgementsAnswer:
        """Return the judgements of an index, or of one query."""
        index = index.snapshot()
        return cls(
            index=index.name,
            queries=[
                JudgedQueryAnswer(
                    number=query.number,
                    q=query.text,
                    grades=dict(query.grades),
                    deleted=[id_ for id_ in query.grades if not _holds(index, id_)],
                )
                for query in index.judgements.queries(q)
            ],
        )


def _holds(index: Index, id_: str) -> bool:
    try:
        index.document(id_)
    except DocumentNotFound:
        return False
    return True


@router.get(
    "/indexes/{name}/judgements", dependencies=requires("search"), summary="List judgements"
)
async def judgements(
    name: str,
    params: Annotated[JudgementsRequest, Depends(JudgementsRequest.of_url)],
    service: Service,
) -> JudgementsAnswer:
    """List the judgements of an index by query, in the order queries were first judged."""
    return await service.answer(name, lambda index: JudgementsAnswer.of(index, params.q))


@router.get(
    "/indexes/{name}/judgements.qrels",
    dependencies=requires("search"),
    summary="Export judgements as TREC qrels",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def qrels(name: str, service: Service) -> Response:
    """Return lines of query, 0, document, grade; judgements.tsv has the texts of the query numbers.

    An ID with white space does not fit this format and is left out; the header X-Left-Out counts
    these.
    """
    left_out = 0

    def write(index: Index) -> str:
        nonlocal left_out
        judged = index.judgements.queries()
        text, without = qrels_text(one for query in judged for one in query.judgements())
        left_out = len(without)
        return text

    answer = await _as_text(service, name, write)
    if left_out:
        answer.headers[LEFT_OUT] = str(left_out)
    return answer


@router.get(
    "/indexes/{name}/judgements.tsv",
    dependencies=requires("search"),
    summary="Export judged queries",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def judged_queries(name: str, service: Service) -> Response:
    """Return lines of number, tab, query: the queries of judgements.qrels."""
    return await _as_text(
        service,
        name,
        lambda index: "".join(query.as_line() for query in index.judgements.queries()),
    )


@router.put(
    "/indexes/{name}/judgements", dependencies=requires("write"), summary="Judge a document"
)
async def judge(name: str, body: JudgementBody, service: Service) -> JudgementsAnswer:
    """Judge how relevant a document is to a query; replaces an earlier judgement.

    Rankings do not change. White space around and between the words of a query is normalised. The
    response has all judgements of the query.
    """

    def change(index: Index) -> JudgementsAnswer:
        index.judge(body.q, body.id, body.grade)
        return JudgementsAnswer.of(index, body.q)

    with service.writes.slot():
        return await service.write(name, change)


@router.delete(
    "/indexes/{name}/judgements", dependencies=requires("write"), summary="Delete judgements"
)
async def withdraw(
    name: str,
    params: Annotated[WithdrawalRequest, Depends(WithdrawalRequest.of_url)],
    service: Service,
) -> JudgementsAnswer:
    """Delete the judgement of a document, or all of a query; missing ones are ignored."""

    def change(index: Index) -> JudgementsAnswer:
        index.judgements.remove(params.q, params.id)
        return JudgementsAnswer.of(index, params.q)

    with service.writes.slot():
        return await service.write(name, change)


async def _as_text(service: IndexService, name: str, write: Callable[[Index], str]) -> Response:
    def compute(index: Index) -> bytes:
        text = write(index).encode()
        if len(text) > MAX_ANSWER:
            raise too_large()
        return text

    answer = await service.read(name, compute)
    return Response(answer.body, media_type="text/plain")
