"""Endpoints of suggestions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends
from pydantic import Field

from klsa_search.core.parameters import MatchName
from klsa_search.search.costs import suggestions_cost
from klsa_search.search.index import Index
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.base import IndexAnswer, IndexName, QueryText, RequestModel
from klsa_search.service.schemas.search_requests import FilterText

router = router_for("search", tenants=True)

MAX_SUGGESTIONS = 20  # each reads five documents for the spelling of the term


class SuggestRequest(RequestModel):
    """The parameters of GET /indexes/{name}/suggest."""

    q: QueryText = Field(description="text typed so far")
    k: int = Field(10, ge=1, le=MAX_SUGGESTIONS, description="maximum number of suggestions")
    filter: FilterText | dict[str, Any] | None = Field(
        None, description="only documents that match it count; as JSON in a body"
    )
    match: MatchName = Field(
        "all", description="how the searches that follow match words: `documents` is their total"
    )


class SuggestAnyRequest(SuggestRequest):
    """The parameters of GET /suggest."""

    index: IndexName | None = None


class SuggestAnswer(IndexAnswer):
    """Suggestions."""

    q: str
    suggestions: tuple[Suggestion, ...]


@router.get("/suggest", summary="Suggest as you type")
async def suggest(
    params: Annotated[SuggestAnyRequest, Depends(SuggestAnyRequest.of_url)], service: Service
) -> SuggestAnswer:
    """Suggest words, phrases, titles and IDs that complete the typed text.

    A search for `query` with the same `filter` and `match` finds `documents` documents.
    """
    return await _suggest(params, params.index, service)


@router.post("/indexes/{name}/suggest", summary="Suggest from one index")
async def suggest_body(name: str, body: SuggestRequest, service: Service) -> SuggestAnswer:
    """Suggest as with GET /suggest, with the parameters as a JSON object."""
    return await _suggest(body, name, service)


@router.get("/indexes/{name}/suggest", summary="Suggest from one index")
async def suggest_of_index(
    name: str, params: Annotated[SuggestRequest, Depends(SuggestRequest.of_url)], service: Service
) -> SuggestAnswer:
    """Suggest as with GET /suggest, with the index in the path."""
    return await _suggest(params, name, service)


async def _suggest(
    params: SuggestRequest, name: str | None, service: IndexService
) -> SuggestAnswer:
    def compute(index: Index) -> SuggestAnswer:
        suggestions = index.suggest(params.q, params.k, filter=params.filter, match=params.match)
        return SuggestAnswer(q=params.q, suggestions=suggestions)

    def cost(index: Index) -> float:
        return suggestions_cost(index.query_counts(params.q, filter=params.filter), params.k)

    return await service.answer(name, compute, cost=cost)
