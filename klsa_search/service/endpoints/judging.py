"""The route that judges rankers by the caller's own queries and judgements."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Body, Response
from pydantic import ConfigDict, Field, model_validator

from klsa_search.collection import Judgement, Query
from klsa_search.config import RankerName
from klsa_search.errors import QueryError
from klsa_search.evaluation import Contrast, compare_rankers, own_judgements
from klsa_search.search import Index
from klsa_search.service.messages.answers import Answer, elapsed
from klsa_search.service.messages.failures import documented
from klsa_search.service.messages.requests import Asked, QueryText, Text, misfit
from klsa_search.service.serving import Served, requires

MAX_JUDGED = 500
"""Queries of a request: every document is ranked for each, by each ranker."""
MAX_JUDGEMENTS = 20_000

_Queries = dict[Text, QueryText]
_Grades = dict[Text, dict[Text, int]]
Interval = tuple[float, float]

router = APIRouter(dependencies=requires("search"))


class EvaluateBody(Asked):
    """The body of POST /indexes/{name}/evaluate."""

    model_config = ConfigDict(strict=True)

    queries: Annotated[_Queries, Field(min_length=1, max_length=MAX_JUDGED)] | None = Field(
        None, description="text of each query, by an id of its own; left out with `own` judgements"
    )
    judgements: Annotated[_Grades, Field(min_length=1, max_length=MAX_JUDGED)] | Literal["own"] = (
        Field(
            description="by id of the query, grades of documents: above 0 is relevant; at most "
            "20,000. Or own: those that the index has, with its queries"
        )
    )
    rankers: list[RankerName] = Field(
        ["bm25", "klsa"],
        min_length=1,
        max_length=6,
        description="what is compared, with the first",
    )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if (self.judgements == "own") != (self.queries is None):
            raise misfit("queries", "queries: give them with judgements of them, and only then")
        if isinstance(self.judgements, dict):
            if sum(map(len, self.judgements.values())) > MAX_JUDGEMENTS:
                raise misfit("judgements", f"judgements: there are more than {MAX_JUDGEMENTS:,}")
            for id_ in self.judgements:
                if id_ not in (self.queries or ()):
                    raise misfit(
                        "judgements",
                        f"judgements: there is no query {id_!r}: add it, or leave it out",
                    )
        if len(set(self.rankers)) < len(self.rankers):
            raise misfit("rankers", "rankers: one is named twice; name each once")
        return self


class AgainstFirst(Answer):
    """A ranker against the first, query by query."""

    gain: float | None = Field(description="of the mean; null where the first has 0")
    interval: Interval | None = Field(description="of the mean difference, as that of MAP")
    p: float = Field(description="of the paired randomisation test, corrected for several rankers")
    wins: int
    losses: int
    ties: int
    worst: list[dict[str, Any]] = Field(description="up to five queries that lose most")
    best: list[dict[str, Any]] = Field(description="up to five queries that gain most")


class EvaluatedRanker(Answer):
    """What one ranker reached."""

    ranker: str
    measures: dict[str, float] = Field(description="means over the judged queries")
    interval: Interval | None = Field(
        description="where MAP of all such queries lies with 95 % confidence; null for one query"
    )
    answered: int = Field(description="judged queries for which it found anything")
    against_first: AgainstFirst | None = Field(description="null for the first; of MAP")
    queries: dict[str, dict[str, float]] = Field(description="measures of each query")


class EvaluateAnswer(Answer):
    """Rankers compared on the caller's own judgements."""

    index: str
    generation: str
    judged: int = Field(description="queries that have judgements")
    unknown: int = Field(
        description="judged documents that the index does not hold: they count as missed, but for "
        "the index's own judgements, of which they are left out"
    )
    rankers: list[EvaluatedRanker]
    time_ms: float


@router.post(
    "/indexes/{name}/evaluate",
    summary="Judge rankers",
    response_model=EvaluateAnswer,
    responses=documented(400, 404, 413, 422, 500, 501, 503),
)
async def evaluate(name: str, asked: Annotated[EvaluateBody, Body()], desk: Served) -> Response:
    """Compare rankers by queries and judgements of one's own: MAP, nDCG@10, P@10, recall@1000."""

    def question(index: Index) -> EvaluateAnswer:
        begin = time.perf_counter()
        index = index.snapshot()
        queries, judgements, unknown = _judged(index, asked)
        measured, compared = compare_rankers(index, queries, judgements, asked.rankers)
        return EvaluateAnswer(
            index=index.name,
            generation=index.generation,
            judged=len(compared.systems[asked.rankers[0]].values),
            unknown=unknown,
            rankers=[
                EvaluatedRanker(
                    ranker=ranker,
                    measures=found.means(),
                    interval=compared.systems[ranker].interval,
                    answered=found.answered,
                    against_first=_against(compared.systems[ranker].contrast),
                    queries={query: dict(values) for query, values in found.queries.items()},
                )
                for ranker, found in measured.items()
            ],
            time_ms=elapsed(begin),
        )

    return await desk.ask(name, question, heavy=True)


def _judged(index: Index, asked: EvaluateBody) -> tuple[list[Query], list[Judgement], int]:
    """Queries, judgements, and how many documents they name that the index does not hold."""
    if asked.queries is None or not isinstance(asked.judgements, dict):
        queries, judgements, gone = own_judgements(index)
        if len(queries) > MAX_JUDGED:
            raise QueryError(
                f"{index.name} has {len(queries):,} judged queries, more than {MAX_JUDGED} at a "
                f"time: measure them on its machine (klsa-eval judgements {index.name})",
                field="judgements",
            )
        return queries, judgements, gone
    queries = [Query(id=id_, text=text) for id_, text in asked.queries.items()]
    judgements = [
        Judgement(query_id=query, document_id=document, grade=grade, gain=max(grade, 0))
        for query, grades in asked.judgements.items()
        for document, grade in grades.items()
    ]
    return queries, judgements, len({one.document_id for one in judgements} - set(index.ids()))


def _against(contrast: Contrast | None) -> AgainstFirst | None:
    if contrast is None:
        return None
    return AgainstFirst(
        gain=contrast.gain,
        interval=contrast.interval,
        p=contrast.randomisation_test.holm,
        wins=contrast.wins,
        losses=contrast.losses,
        ties=contrast.ties,
        worst=[asdict(one) for one in contrast.worst],
        best=[asdict(one) for one in contrast.best],
    )
