"""The route that judges rankers by the caller's own queries and judgements."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any, Self

from fastapi import APIRouter, Body, Response
from pydantic import ConfigDict, Field, model_validator

from klsa_search.collection import Judgement, Query
from klsa_search.config import RankerName
from klsa_search.evaluation import Contrast, Judge, Measured, compare, rank_all
from klsa_search.search import Index
from klsa_search.service.answers import Answer
from klsa_search.service.failures import documented
from klsa_search.service.requests import MAX_QUERY, Asked, Text, misfit
from klsa_search.service.serving import Served

MAX_JUDGED = 500
"""Queries of a request: every document is ranked for each, by each ranker."""
MAX_JUDGEMENTS = 20_000

router = APIRouter()


class EvaluateBody(Asked):
    """The body of POST /indexes/{name}/evaluate."""

    model_config = ConfigDict(strict=True)

    queries: dict[Text, Annotated[Text, Field(max_length=MAX_QUERY)]] = Field(
        min_length=1, max_length=MAX_JUDGED, description="text of each query, by an id of its own"
    )
    judgements: dict[Text, dict[Text, int]] = Field(
        min_length=1,
        max_length=MAX_JUDGED,
        description="by id of the query, grades of documents: above 0 is relevant; at most 20,000",
    )
    rankers: list[RankerName] = Field(
        ["bm25", "klsa"],
        min_length=1,
        max_length=6,
        description="what is compared, with the first",
    )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if sum(map(len, self.judgements.values())) > MAX_JUDGEMENTS:
            raise misfit("judgements", f"judgements: there are more than {MAX_JUDGEMENTS:,}")
        for id_ in self.judgements:
            if id_ not in self.queries:
                raise misfit(
                    "judgements", f"judgements: there is no query {id_!r}: add it, or leave it out"
                )
        if len(set(self.rankers)) < len(self.rankers):
            raise misfit("rankers", "rankers: one is named twice; name each once")
        return self


class AgainstFirst(Answer):
    """A ranker against the first, query by query."""

    gain: float | None = Field(description="of the mean; null where the first has 0")
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
    answered: int = Field(description="judged queries for which it found anything")
    against_first: AgainstFirst | None = Field(description="null for the first; of MAP")
    queries: dict[str, dict[str, float]] = Field(description="measures of each query")


class EvaluateAnswer(Answer):
    """Rankers compared on the caller's own judgements."""

    index: str
    generation: str
    judged: int = Field(description="queries that have judgements")
    unknown: int = Field(description="judged documents that the index does not hold")
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
        index = index.pinned()
        judgements = [
            Judgement(query_id=query, document_id=document, grade=grade, gain=max(grade, 0))
            for query, grades in asked.judgements.items()
            for document, grade in grades.items()
        ]
        judge = Judge(judgements)
        queries = [Query(id=id_, text=asked.queries[id_]) for id_ in judge.query_ids]
        measured: dict[str, Measured] = {
            ranker: judge.measure(rank_all(index, queries, ranker=ranker))
            for ranker in asked.rankers
        }
        first = asked.rankers[0]
        compared = compare(measured, target=index.name, measure="map", baseline=first)
        held = set(index.ids())
        return EvaluateAnswer(
            index=index.name,
            generation=index.generation,
            judged=len(queries),
            unknown=len({one.document_id for one in judgements} - held),
            rankers=[
                EvaluatedRanker(
                    ranker=ranker,
                    measures=found.means(),
                    answered=found.answered,
                    against_first=_against(compared.systems[ranker].contrast),
                    queries={query: dict(values) for query, values in found.queries.items()},
                )
                for ranker, found in measured.items()
            ],
            time_ms=round(1000 * (time.perf_counter() - begin), 3),
        )

    return await desk.ask(name, question, heavy=True)


def _against(contrast: Contrast | None) -> AgainstFirst | None:
    if contrast is None:
        return None
    return AgainstFirst(
        gain=contrast.gain,
        p=contrast.randomisation_test.holm,
        wins=contrast.wins,
        losses=contrast.losses,
        ties=contrast.ties,
        worst=[asdict(one) for one in contrast.worst],
        best=[asdict(one) for one in contrast.best],
    )
