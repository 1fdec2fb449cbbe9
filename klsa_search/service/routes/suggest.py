"""Endpoints of suggestions, of facet search and of text analysis."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends
from pydantic import Field

from klsa_search.core.parameters import MatchName, QueryOptions, Text
from klsa_search.search.costs import estimated_cost, suggestions_cost
from klsa_search.search.facet_search import facet_search
from klsa_search.search.index import Index
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.base import Answer, IndexAnswer, IndexName, QueryText, RequestModel
from klsa_search.service.schemas.search_answers import FacetAnswer, facet_as_json
from klsa_search.service.schemas.search_requests import MAX_VALUES, FilterText

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


class FacetSearchBody(RequestModel):
    """The body of POST /indexes/{name}/facet-search."""

    field: Text = Field(description="metadata field")
    facet_query: QueryText = Field("", description="text typed so far; blank finds every value")
    q: QueryText = Field("", description="count in the matches of this search only")
    filter: FilterText | dict[str, Any] | None = Field(
        None, description="count in documents that match this filter only: see POST /search"
    )
    k: int = Field(10, ge=1, le=MAX_VALUES, description="maximum number of values")


class FacetSearchAnswer(FacetAnswer, IndexAnswer):
    """Values of a field that contain a text: those that begin with it, then others."""

    field: str
    facet_query: str


@router.post("/indexes/{name}/facet-search", summary="Search the values of a facet")
async def search_facet(name: str, body: FacetSearchBody, service: Service) -> FacetSearchAnswer:
    """Return the values of a metadata field that contain a text, ignoring case and accents.

    `count` is the number of documents with a value among those of the filter and of the query.
    """

    def compute(index: Index) -> FacetSearchAnswer:
        facet = facet_search(
            index, body.field, body.facet_query, body.k, query=body.q, filter=body.filter
        )
        return FacetSearchAnswer(
            field=body.field, facet_query=body.facet_query, **facet_as_json(facet)
        )

    def cost(index: Index) -> float:
        field = index.fields.get(body.field)
        values = 0 if field is None else min(len(field), field.content or len(field))
        counts = index.query_counts(body.q, filter=body.filter)
        facets = QueryOptions(facets=(body.field,), max_facet_values=max(values, 1))
        return estimated_cost(counts, 1, facets)

    return await service.answer(name, compute, cost=cost)


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
