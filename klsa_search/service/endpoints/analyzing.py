"""The route that shows how an index reads a text."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response
from pydantic import Field

from klsa_search.search.index import Index
from klsa_search.service.messages.answers import Answer
from klsa_search.service.messages.requests import QueryText, RequestModel
from klsa_search.service.serving import Served, requires

router = APIRouter(dependencies=requires("search"))


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


@router.post(
    "/indexes/{name}/analyze",
    summary="Analyse a text",
    response_model=AnalyzeAnswer,
)
async def analyze(name: str, asked: Annotated[AnalyzeBody, Body()], desk: Served) -> Response:
    """Return the terms that a text is indexed under, with their positions."""

    def question(index: Index) -> AnalyzeAnswer:
        return AnalyzeAnswer(
            index=index.name,
            generation=index.generation,
            tokens=[TokenAnswer.model_validate(each) for each in index.analyzer.tokens(asked.text)],
        )

    return await desk.ask(name, question, heavy=True)
