"""Endpoint that evaluates rankers with queries and judgements."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from fastapi import APIRouter
from pydantic import Field, model_validator

from klsa_search.collection.model import Judgement, Topic
from klsa_search.core.parameters import Ranker, Text
from klsa_search.errors import QueryError
from klsa_search.evaluation.comparison import Contrast
from klsa_search.evaluation.systems import compare_rankers, index_judgements
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.schemas.errors import documented
from klsa_search.service.schemas.requests import QueryText, RequestModel, field_error
from klsa_search.service.schemas.responses import Answer, IndexAnswer

MAX_JUDGED = 500
"""Maximum queries of a request: each ranker scores all documents for each query."""
MAX_JUDGEMENTS = 20_000

_Queries = dict[Text, QueryText]
_Grades = dict[Text, dict[Text, int]]
Interval = tuple[float, float]

router = APIRouter(dependencies=requires("search"))


class EvaluateBody(RequestModel):
    """The body of POST /indexes/{name}/evaluate."""

    queries: Annotated[_Queries, Field(min_length=1, max_length=MAX_JUDGED)] | None = Field(
        None, description="query texts by query ID; left out with `own` judgements"
    )
    judgements: Annotated[_Grades, Field(min_length=1, max_length=MAX_JUDGED)] | Literal["own"] = (
        Field(
            description="grades of documents by query ID: above 0 is relevant; at most "
            "20,000. Or `own`: the queries and judgements of the index"
        )
    )
    rankers: list[Ranker] = Field(
        ["bm25", "klsa"],
        min_length=1,
        max_length=10,
        description="rankers to compare with the first",
    )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if (self.judgements == "own") != (self.queries is None):
            raise field_error(
                "queries",
                "queries: required with judgements of their own, and not allowed with `own`",
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
        "missed, except for `own` judgements, where they are ignored"
    )
    rankers: list[EvaluatedRanker]


@router.post("/indexes/{name}/evaluate", summary="Evaluate rankers", responses=documented(501))
async def evaluate(name: str, body: EvaluateBody, service: Service) -> EvaluateAnswer:
    """Compare rankers by given queries and judgements: MAP, nDCG@10, P@10 and recall@1000."""

    def compute(index: Index) -> EvaluateAnswer:
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

    return await service.answer(name, compute, heavy=True)


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
