"""Endpoints that evaluate rankers, and of the judgements of an index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Literal, Self

from fastapi import Response
from pydantic import AfterValidator, Field, model_validator

from klsa_search.collection.model import Judgement, Topic
from klsa_search.collection.queries import qrels_text
from klsa_search.core.parameters import Ranker, Text
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.evaluation.comparison import Contrast
from klsa_search.evaluation.systems import compare_rankers, index_judgements
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, changing, reading, router_for
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.base import (
    MAX_ANSWER,
    Answer,
    IndexAnswer,
    QueryText,
    RequestModel,
    field_error,
    too_large,
)
from klsa_search.service.schemas.errors import documented
from klsa_search.storage.judgements import MAX_GRADE, plain

MAX_JUDGED = 500  # maximum queries of a request: each ranker scores all documents for each query
MAX_JUDGEMENTS = 20_000

_Queries = dict[Text, QueryText]
_Grade = Annotated[int, Field(ge=-MAX_GRADE, le=MAX_GRADE)]
_Grades = dict[Text, dict[Text, _Grade]]
Interval = tuple[float, float]

router = router_for("search")
writing_router = router_for("write")


class EvaluateBody(RequestModel):
    """The body of POST /indexes/{name}/evaluate."""

    queries: Annotated[_Queries, Field(min_length=1, max_length=MAX_JUDGED)] | None = Field(
        None, description="query texts by query ID; left out with `stored` judgements"
    )
    judgements: (
        Annotated[_Grades, Field(min_length=1, max_length=MAX_JUDGED)] | Literal["stored"]
    ) = Field(
        description="grades of documents by query ID: above 0 is relevant; at most "
        "20,000. Or `stored`: the queries and judgements of the index"
    )
    rankers: list[Ranker] = Field(
        ["bm25", "klsa"],
        min_length=1,
        max_length=10,
        description="rankers to compare with the first",
    )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if (self.judgements == "stored") != (self.queries is None):
            raise field_error(
                "queries",
                "queries: required with judgements in the request, and not allowed with `stored`",
            )
        if isinstance(self.judgements, dict):
            if sum(map(len, self.judgements.values())) > MAX_JUDGEMENTS:
                raise field_error(
                    "judgements", f"judgements: more than {MAX_JUDGEMENTS:,}; give fewer"
                )
            for id_ in self.judgements:
                if id_ not in (self.queries or ()):
                    raise field_error(
                        "judgements",
                        f"judgements: unknown query {id_!r}; add it to queries, or leave it out",
                    )
        if len(set(self.rankers)) < len(self.rankers):
            raise field_error("rankers", "rankers: a ranker is given twice; give each once")
        return self


class EvaluatedRanker(Answer):
    """Measures of one ranker."""

    ranker: str
    measures: dict[str, float] = Field(description="means over the judged queries")
    interval: Interval | None = Field(
        description="95% confidence interval of MAP; null for one query"
    )
    answered: int = Field(description="number of judged queries with results")
    against_first: Contrast | None = Field(
        description="comparison with the first by MAP; null for the first"
    )
    queries: dict[str, dict[str, float]] = Field(description="measures of each query")


class EvaluateAnswer(IndexAnswer):
    """Comparison of rankers."""

    judged: int = Field(description="number of judged queries")
    unknown: int = Field(
        description="number of judged documents that are not in the index; they count as "
        "missed, except for `stored` judgements, where they are ignored"
    )
    rankers: list[EvaluatedRanker]


@router.post("/indexes/{name}/evaluate", summary="Evaluate rankers", responses=documented(501))
@reading(heavy=True)
def evaluate(index: Index, body: EvaluateBody) -> EvaluateAnswer:
    """Compare rankers by given queries and judgements: MAP, nDCG@10, P@10 and recall@1000."""
    queries, judgements, unknown = _judged(index, body)
    measured, compared = compare_rankers(index, queries, judgements, body.rankers)
    return EvaluateAnswer(
        judged=len(compared.systems[body.rankers[0]].values),
        unknown=unknown,
        rankers=[
            EvaluatedRanker(
                ranker=ranker,
                measures=measures.means(),
                interval=compared.systems[ranker].interval,
                answered=measures.answered,
                against_first=compared.systems[ranker].contrast,
                queries={query: dict(values) for query, values in measures.queries.items()},
            )
            for ranker, measures in measured.items()
        ],
    )


def _judged(index: Index, body: EvaluateBody) -> tuple[list[Topic], list[Judgement], int]:
    """Return queries, judgements, and the number of judged documents not in the index."""
    if body.queries is None or not isinstance(body.judgements, dict):
        queries, judgements, gone = index_judgements(index)
        if len(queries) > MAX_JUDGED:
            raise QueryError(
                f"index `{index.name}` has {len(queries):,} judged queries, more "
                f"than {MAX_JUDGED} at a time; evaluate on its machine with "
                f"`klsa-eval judgements {index.name}`",
                field="judgements",
            )
        return queries, judgements, gone
    queries = [Topic(id=id_, text=text) for id_, text in body.queries.items()]
    judgements = [
        Judgement(query_id=query, document_id=document, grade=grade, gain=max(grade, 0))
        for query, grades in body.judgements.items()
        for document, grade in grades.items()
    ]
    return queries, judgements, len({one.document_id for one in judgements} - set(index.ids()))


LEFT_OUT: Final = "X-Left-Out"  # header with the number of judgements that a file has no place for


def _plain(q: str) -> str:
    try:
        return plain(q)
    except QueryError as error:
        raise QueryError(error.message, field="q") from None  # as requests call it


_QUERY = Annotated[QueryText, Field(description="query text"), AfterValidator(_plain)]


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


@router.get("/indexes/{name}/judgements", summary="List judgements")
@reading()
def judgements(index: Index, params: JudgementsRequest) -> JudgementsAnswer:
    """List the judgements of an index by query, in the order queries were first judged."""
    return JudgementsAnswer.of(index, params.q)


@router.get(
    "/indexes/{name}/judgements.qrels",
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


@writing_router.put("/indexes/{name}/judgements", summary="Judge a document")
@changing
def judge(index: Index, body: JudgementBody) -> JudgementsAnswer:
    """Judge how relevant a document is to a query; replaces an earlier judgement.

    Rankings do not change. White space around and between the words of a query is normalised. The
    response has all judgements of the query.
    """
    index.judge(body.q, body.id, body.grade)
    return JudgementsAnswer.of(index, body.q)


@writing_router.delete("/indexes/{name}/judgements", summary="Delete judgements")
@changing
def withdraw(index: Index, params: WithdrawalRequest) -> JudgementsAnswer:
    """Delete the judgement of a document, or all of a query; missing ones are ignored."""
    index.judgements.remove(params.q, params.id)
    return JudgementsAnswer.of(index, params.q)


async def _as_text(service: IndexService, name: str, write: Callable[[Index], str]) -> Response:
    def compute(index: Index) -> bytes:
        text = write(index).encode()
        if len(text) > MAX_ANSWER:
            raise too_large()
        return text

    answer = await service.read(name, compute)
    return Response(answer.body, media_type="text/plain")
