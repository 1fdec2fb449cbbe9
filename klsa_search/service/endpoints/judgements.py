"""The routes of an index's own judgements: what people said of its hits, and files of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response
from pydantic import AfterValidator, ConfigDict, Field

from klsa_search.collection.qrels import qrels_text
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.search import Index
from klsa_search.service.messages.answers import Answer
from klsa_search.service.messages.failures import documented
from klsa_search.service.messages.querying import asked_of, described
from klsa_search.service.messages.requests import Asked, QueryText, Text
from klsa_search.service.messages.size import MAX_ANSWER, too_large
from klsa_search.service.middleware.origins import LEFT_OUT
from klsa_search.service.serving import Desk, Served, requires
from klsa_search.store.judgements import MOST_GRADE, plain

router = APIRouter()

_FAILURES = (400, 403, 404, 413, 422, 429, 500, 503)


def _plain(q: str) -> str:
    try:
        return plain(q)
    except QueryError as error:
        raise QueryError(error.message, field="q") from None  # as requests call it


_QUERY = Annotated[
    QueryText,
    Field(description="a query, as it was asked"),
    AfterValidator(_plain),
]


class JudgementBody(Asked):
    """The body of PUT /indexes/{name}/judgements."""

    model_config = ConfigDict(strict=True)

    q: _QUERY
    id: Text = Field(description="of a document of the index")
    grade: int = Field(ge=-MOST_GRADE, le=MOST_GRADE, description="above 0 is relevant, 0 is not")


class JudgementsRequest(Asked):
    """The parameters of GET /indexes/{name}/judgements."""

    q: _QUERY | None = Field(None, description="this query alone")


class WithdrawalRequest(Asked):
    """The parameters of DELETE /indexes/{name}/judgements."""

    q: _QUERY
    id: Text | None = Field(None, description="of a document; without it, all of the query")


class JudgedQueryAnswer(Answer):
    """A query, and what was said of documents."""

    number: int = Field(description="what files of judgements call it; it keeps it")
    q: str
    grades: dict[str, int] = Field(description="by id of the document; above 0 is relevant")
    gone: list[str] = Field(description="of these, documents that are there no more")


class JudgementsAnswer(Answer):
    """Judgements of an index, as they are now."""

    index: str
    queries: list[JudgedQueryAnswer]

    @classmethod
    def of(cls, index: Index, q: str | None = None) -> JudgementsAnswer:
        """Tell those of an index, or of one query."""
        index = index.snapshot()
        return cls(
            index=index.name,
            queries=[
                JudgedQueryAnswer(
                    number=each.number,
                    q=each.text,
                    grades=dict(each.grades),
                    gone=[id_ for id_ in each.grades if not _holds(index, id_)],
                )
                for each in index.judgements.queries(q)
            ],
        )


def _holds(index: Index, id_: str) -> bool:
    try:
        index.doc_ids([id_])
    except DocumentNotFound:
        return False
    return True


@router.get(
    "/indexes/{name}/judgements",
    dependencies=requires("search"),
    summary="What was judged",
    response_model=JudgementsAnswer,
    responses=documented(404, 422, 500, 503),
    openapi_extra=described(JudgementsRequest),
)
async def judgements(name: str, request: Request, desk: Served) -> Response:
    """The judgements of an index by query, in the order queries were first judged."""
    asked = asked_of(request, JudgementsRequest)
    return await desk.ask(name, lambda index: JudgementsAnswer.of(index, asked.q))


@router.get(
    "/indexes/{name}/judgements.qrels",
    dependencies=requires("search"),
    summary="Judgements as TREC qrels",
    response_class=Response,
    responses={**documented(404, 422, 500, 503), 200: {"content": {"text/plain": {}}}},
)
async def qrels(name: str, desk: Served) -> Response:
    """Lines of query, 0, document, grade: the queries are numbers, which judgements.tsv tells.

    An id with white space has no place in such a line: the header X-Left-Out tells of how many.
    """
    left_out = 0

    def told(index: Index) -> str:
        nonlocal left_out
        judged = index.judgements.queries()
        text, without = qrels_text(one for each in judged for one in each.judgements())
        left_out = len(without)
        return text

    answer = await _as_text(desk, name, told)
    if left_out:
        answer.headers[LEFT_OUT] = str(left_out)
    return answer


@router.get(
    "/indexes/{name}/judgements.tsv",
    dependencies=requires("search"),
    summary="Judged queries as lines of number and text",
    response_class=Response,
    responses={**documented(404, 422, 500, 503), 200: {"content": {"text/plain": {}}}},
)
async def judged_queries(name: str, desk: Served) -> Response:
    """Lines of number, tab, query: what judgements.qrels is about."""
    return await _as_text(
        desk,
        name,
        lambda index: "".join(each.as_line() for each in index.judgements.queries()),
    )


@router.put(
    "/indexes/{name}/judgements",
    dependencies=requires("write"),
    summary="Judge a document",
    response_model=JudgementsAnswer,
    responses=documented(*_FAILURES),
)
async def judge(
    name: str, asked: Annotated[JudgementBody, Body()], desk: Served
) -> JudgementsAnswer:
    """Say how relevant a document is to a query, in the place of what was said before.

    It changes no ranking. White space of a query counts for nothing. What there is of the query is
    answered.
    """

    def change(index: Index) -> JudgementsAnswer:
        index.judge(asked.q, asked.id, asked.grade)
        return JudgementsAnswer.of(index, asked.q)

    with desk.writes.place():
        return await desk.write(name, change)


@router.delete(
    "/indexes/{name}/judgements",
    dependencies=requires("write"),
    summary="Take a judgement back",
    response_model=JudgementsAnswer,
    responses=documented(*_FAILURES),
    openapi_extra=described(WithdrawalRequest),
)
async def withdraw(name: str, request: Request, desk: Served) -> JudgementsAnswer:
    """Take back what was said of a document, or of all, for a query; where nothing was, nothing."""
    asked = asked_of(request, WithdrawalRequest)

    def change(index: Index) -> JudgementsAnswer:
        index.judgements.remove(asked.q, asked.id)
        return JudgementsAnswer.of(index, asked.q)

    with desk.writes.place():
        return await desk.write(name, change)


async def _as_text(desk: Desk, name: str, told: Callable[[Index], str]) -> Response:
    def question(index: Index) -> bytes:
        text = told(index).encode()
        if len(text) > MAX_ANSWER:
            raise too_large()
        return text

    answer = await desk.ask(name, question)
    return Response(answer.body, media_type="text/plain")
