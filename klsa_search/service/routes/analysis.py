"""Endpoint of text analysis."""

from __future__ import annotations

from pydantic import Field

from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.schemas.base import Answer, QueryText, RequestModel

router = router_for("search", tenants=True)


class AnalyzeBody(RequestModel):
    """The body of POST /indexes/{name}/analyze."""

    text: QueryText = Field(description="text to analyse")


class TokenAnswer(Answer):
    """One term and its place."""

    term: str
    position: int = Field(description="position from 0; removed words are counted")
    start: int = Field(description="offset of its first character in the text")
    end: int = Field(description="offset after its last character")


class AnalyzeAnswer(Answer):
    """The terms of a text, in order."""

    index: str
    generation: str
    tokens: list[TokenAnswer]


@router.post("/indexes/{name}/analyze", summary="Analyse a text")
async def analyze(name: str, body: AnalyzeBody, service: Service) -> AnalyzeAnswer:
    """Return the terms that a text is indexed under, with their positions."""

    def compute(index: Index) -> AnalyzeAnswer:
        return AnalyzeAnswer(
            index=index.name,
            generation=index.generation,
            tokens=[
                TokenAnswer.model_validate(token) for token in index.analyzer.tokens(body.text)
            ],
        )

    return await service.answer(name, compute, heavy=True)
