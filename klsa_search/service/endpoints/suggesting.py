"""The routes of suggestions. No arithmetic."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response
from pydantic import Field

from klsa_search.search.index import Index
from klsa_search.service.messages.answers import Answer, elapsed
from klsa_search.service.messages.querying import asked_of, described
from klsa_search.service.messages.requests import IndexName, QueryText, RequestModel
from klsa_search.service.serving import Desk, Served, desk_of, requires

router = APIRouter(dependencies=requires("search"))

MAX_SUGGESTIONS = 20  # to show how a term is written, five documents are read


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
    openapi_extra=described(SuggestAnyRequest),
)
async def suggest(request: Request) -> Response:
    """Suggest words, phrases and titles that complete the typed text."""
    asked = asked_of(request, SuggestAnyRequest)
    return await _suggest(asked, asked.index, desk_of(request))


@router.get(
    "/indexes/{name}/suggest",
    summary="Suggest from one index",
    response_model=SuggestAnswer,
    openapi_extra=described(SuggestRequest),
)
async def suggest_of_index(name: str, request: Request, desk: Served) -> Response:
    """Suggest as with GET /suggest, with the index in the path."""
    return await _suggest(asked_of(request, SuggestRequest), name, desk)


async def _suggest(asked: SuggestRequest, name: str | None, desk: Desk) -> Response:
    def question(index: Index) -> SuggestAnswer:
        begin = time.perf_counter()
        found = index.suggest(asked.q, asked.k)
        return SuggestAnswer(
            q=asked.q,
            index=index.name,
            generation=index.generation,
            time_ms=elapsed(begin),
            suggestions=[SuggestionAnswer.model_validate(each) for each in found],
        )

    return await desk.ask(name, question)
