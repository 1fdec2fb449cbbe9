"""Endpoints of suggestions and of text analysis."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response
from pydantic import Field

from klsa_search.search.index import Index
from klsa_search.service.index_service import IndexService, Service, requires, service_of
from klsa_search.service.schemas.requests import (
    IndexName,
    QueryText,
    RequestModel,
    documented_parameters,
    read_parameters,
)
from klsa_search.service.schemas.responses import Answer, elapsed

router = APIRouter(dependencies=requires("search"))

MAX_SUGGESTIONS = 20  # each reads five documents for the spelling of the term


class SuggestRequest(RequestModel):
    """The parameters of GET /indexes/{name}/suggest."""

    q: QueryText = Field(description="text typed so far")
    k: int = Field(10, ge=1, le=MAX_SUGGESTIONS, description="maximum number of suggestions")


class SuggestAnyRequest(SuggestRequest):
    """The parameters of GET /suggest."""

    index: IndexName | None = None


class SuggestionAnswer(Answer):
    """One suggestion."""

    kind: str = Field(description="word, phrase, title or correction")
    text: str = Field(description="word, phrase or title, as documents write it")
    query: str = Field(description="completed query to search for")
    documents: int | None = Field(
        description="number of documents that contain it; null for a phrase whose first words "
        "are too frequent to count it"
    )


class SuggestAnswer(Answer):
    """Suggestions."""

    q: str
    index: str
    generation: str
    time_ms: float
    suggestions: list[SuggestionAnswer]


@router.get(
    "/suggest",
    summary="Suggest as you type",
    response_model=SuggestAnswer,
    openapi_extra=documented_parameters(SuggestAnyRequest),
)
async def suggest(request: Request) -> Response:
    """Suggest words, phrases and titles that complete the typed text."""
    params = read_parameters(request, SuggestAnyRequest)
    return await _suggest(params, params.index, service_of(request))


@router.get(
    "/indexes/{name}/suggest",
    summary="Suggest from one index",
    response_model=SuggestAnswer,
    openapi_extra=documented_parameters(SuggestRequest),
)
async def suggest_of_index(name: str, request: Request, service: Service) -> Response:
    """Suggest as with GET /suggest, with the index in the path."""
    return await _suggest(read_parameters(request, SuggestRequest), name, service)


async def _suggest(params: SuggestRequest, name: str | None, service: IndexService) -> Response:
    def compute(index: Index) -> SuggestAnswer:
        begin = time.perf_counter()
        found = index.suggest(params.q, params.k)
        return SuggestAnswer(
            q=params.q,
            index=index.name,
            generation=index.generation,
            time_ms=elapsed(begin),
            suggestions=[SuggestionAnswer.model_validate(each) for each in found],
        )

    return await service.read(name, compute)


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
async def analyze(name: str, body: Annotated[AnalyzeBody, Body()], service: Service) -> Response:
    """Return the terms that a text is indexed under, with their positions."""

    def compute(index: Index) -> AnalyzeAnswer:
        return AnalyzeAnswer(
            index=index.name,
            generation=index.generation,
            tokens=[TokenAnswer.model_validate(each) for each in index.analyzer.tokens(body.text)],
        )

    return await service.read(name, compute, heavy=True)
