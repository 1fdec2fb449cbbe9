"""The routes of suggestions. No arithmetic."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response

from klsa_search.search import Index
from klsa_search.service.messages.answers import SuggestAnswer, SuggestionAnswer
from klsa_search.service.messages.failures import documented
from klsa_search.service.messages.querying import asked_of, described
from klsa_search.service.messages.requests import SuggestAnyRequest, SuggestRequest
from klsa_search.service.serving import Desk, Served, desk_of

router = APIRouter()


@router.get(
    "/suggest",
    summary="Suggest as you type",
    response_model=SuggestAnswer,
    responses=documented(404, 422, 500, 503),
    openapi_extra=described(SuggestAnyRequest),
)
async def suggest(request: Request) -> Response:
    """Words, phrases and titles that what was typed so far may become."""
    asked = asked_of(request, SuggestAnyRequest)
    return await _suggest(asked, asked.index, desk_of(request))


@router.get(
    "/indexes/{name}/suggest",
    summary="Suggest from one index",
    response_model=SuggestAnswer,
    responses=documented(404, 422, 500, 503),
    openapi_extra=described(SuggestRequest),
)
async def suggest_of_index(name: str, request: Request, desk: Served) -> Response:
    """The same as GET /suggest, the index being named by the path."""
    return await _suggest(asked_of(request, SuggestRequest), name, desk)


async def _suggest(asked: SuggestRequest, name: str | None, desk: Desk) -> Response:
    def question(index: Index) -> SuggestAnswer:
        begin = time.perf_counter()
        found = index.suggest(asked.q, asked.k)
        return SuggestAnswer(
            q=asked.q,
            index=index.name,
            generation=index.generation,
            time_ms=round(1000 * (time.perf_counter() - begin), 3),
            suggestions=[SuggestionAnswer.model_validate(each) for each in found],
        )

    return await desk.ask(name, question)
