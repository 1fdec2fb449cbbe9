"""Endpoints of searches, suggestions, explanations, values of facets, and exports of results."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any, Final, cast
from urllib.parse import quote
from weakref import finalize

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from klsa_search.cluster.calls import PartitionTally
from klsa_search.core.parameters import MatchName, Text
from klsa_search.errors import KlsaError, QueryError, RequestTimedOut
from klsa_search.search.costs import suggestions_cost
from klsa_search.search.facet_search import facet_search
from klsa_search.search.index import Index
from klsa_search.search.query.query import Query
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.service.admission import Admission
from klsa_search.service.dependencies import (
    Route,
    Service,
    get_and_post,
    reading,
    router_for,
    service_of,
)
from klsa_search.service.index_service import IndexService, restricted_by_token
from klsa_search.service.middleware.bodies import LINES
from klsa_search.service.middleware.clients import path_of
from klsa_search.service.schemas.base import (
    MAX_ANSWER,
    IndexAnswer,
    IndexName,
    QueryText,
    RequestModel,
    read_parameters,
    too_large,
)
from klsa_search.service.schemas.errors import answer_to
from klsa_search.service.schemas.search_answers import (
    ExplainAnswer,
    FacetAnswer,
    FederatedAnswer,
    MultiSearchAnswer,
    SearchAnswer,
    facet_as_json,
    merged,
    search_answer,
)
from klsa_search.service.schemas.search_requests import (
    MAX_VALUES,
    MAX_WINDOW,
    ExplainRequest,
    ExportRequest,
    FilterText,
    MultiSearchBody,
    SearchRequest,
)

router = router_for("search", tenants=True)

_JSON = "application/json"


@router.get("/search", summary="Search", response_model=SearchAnswer)
async def search(params: SearchRequest, service: Service) -> Response:
    """Rank the documents of an index by relevance to a query.

    An empty query and unknown words find nothing.
    """
    return await _search(params, params.index, service)


_SEARCH: Final = cast(Route, router.routes[-1])


class QuickSearch:
    """ASGI middleware that answers GET /search as its route does.

    To find a route takes as long as a tenth of a search.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a search, or pass another request on."""
        answer: ASGIApp = self._app
        if scope.get("method") == "GET" and path_of(scope) == "/search":
            scope["route"], request = _SEARCH, Request(scope, receive)
            try:
                await _SEARCH.check_scopes(request)
                answer = await search(read_parameters(request, SearchRequest), service_of(request))
            except Exception as error:  # noqa: BLE001 - bugs are raised again
                answer = await answer_to(request, error)
        await answer(scope, receive, send)


@router.post("/search", summary="Search", response_model=SearchAnswer)
async def search_body(body: SearchRequest, service: Service) -> Response:
    """Search as with GET /search, with the parameters as a JSON object."""
    return await _search(body, body.index, service)


@router.post("/indexes/{name}/search", summary="Search one index", response_model=SearchAnswer)
async def search_index(name: str, body: SearchRequest, service: Service) -> Response:
    """Search as with POST /search, with the index in the path."""
    if body.index is not None and body.index != name:
        raise QueryError(
            f"index = {body.index!r} differs from {name!r} in the path; leave it out of the body",
            field="index",
        )
    return await _search(body, name, service)


async def _search(params: SearchRequest, name: str | None, service: IndexService) -> Response:
    received = time.perf_counter()

    def compute(index: Index) -> bytes:
        begin = time.perf_counter()
        with PartitionTally(partial=params.partial) as tally:
            results = index.search(params.to_query())
        found_at = time.perf_counter()
        search_id = None
        if service.recorder is not None and params.analytics:
            search_id = service.recorder.record(
                index.name,
                params.q or "",
                results,
                found_at - begin,
                typing=params.analytics == "typing" or params.prefix == "last",
            )
        answer = search_answer(results, index, params, 1000 * (found_at - begin), tally, search_id)
        service.metrics.observe_search(
            results.ranker, received, begin, found_at, time.perf_counter()
        )
        return answer

    return await service.read(name, compute, cost=params.cost, quick=params.is_quick)


@router.post(
    "/multi-search",
    summary="Search several indexes",
    response_model=MultiSearchAnswer | FederatedAnswer,
)
async def multi_search(body: MultiSearchBody, service: Service) -> Response:
    """Run several searches, each as with POST /search, and answer all in order or none.

    With `federation`, their hits are merged by rank into one list. The timeouts of a single search
    apply to all together.
    """
    return await service.admission.run_all(_answers(body, service))


async def _answers(body: MultiSearchBody, service: IndexService) -> Response:
    answers, left = [], MAX_ANSWER
    for number, search in enumerate(body.queries):
        if body.federation is not None:
            search = search.model_copy(update={"k": body.federation.last})
        try:
            answer = await _search(search, search.index, service)
        except KlsaError as error:
            error.message = f"queries[{number}]: {error.message}"
            raise
        answers.append(answer.body)
        left -= len(answer.body) + 1
        if left < 0:
            raise too_large()
    if body.federation is not None:
        weights = [search.weight for search in body.queries]
        federated = merged(
            [from_json(bytes(answer)) for answer in answers], weights, body.federation
        )
        return Response(to_json(federated), media_type=_JSON)
    return Response(b'{"results":[' + b",".join(answers) + b"]}", media_type=_JSON)


@get_and_post(
    router, "/indexes/{name}/explain/{id:whole}", summary="Explain the score of a document"
)
@reading(cost=lambda index, params, **_: params.cost(index))
def explain(index: Index, id: str, params: ExplainRequest) -> ExplainAnswer:
    """Explain the score of a document, which a search need not find. Its parts sum to the score."""
    explanation = index.explain(params.q, id, vector=params.vector, **params.parameters)
    return ExplainAnswer(query=params.q, explanation=explanation)


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


def _facet_cost(index: Index, body: FacetSearchBody) -> float:
    field = index.fields.get(body.field)
    values = 0 if field is None else min(len(field), field.content or len(field))
    facets, most = (body.field,), max(values, 1)
    query = Query(body.q, 1, filter=body.filter, facets=facets, max_facet_values=most)
    return index.search_cost(query)


@router.post("/indexes/{name}/facet-search", summary="Search the values of a facet")
@reading(cost=_facet_cost)
def search_facet(index: Index, body: FacetSearchBody) -> FacetSearchAnswer:
    """Return the values of a metadata field that contain a text, ignoring case and accents.

    `count` is the number of documents with a value among those of the filter and of the query.
    """
    facet = facet_search(
        index, body.field, body.facet_query, body.k, query=body.q, filter=body.filter
    )
    return FacetSearchAnswer(field=body.field, facet_query=body.facet_query, **facet_as_json(facet))


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
async def suggest(params: SuggestAnyRequest, service: Service) -> SuggestAnswer:
    """Suggest words, phrases, titles and IDs that complete the typed text.

    A search for `query` with the same `filter` and `match` finds `documents` documents.
    """
    return await _suggest(params, params.index, service)


@get_and_post(router, "/indexes/{name}/suggest", summary="Suggest from one index")
async def suggest_of_index(name: str, params: SuggestRequest, service: Service) -> SuggestAnswer:
    """Suggest as with GET /suggest, with the index in the path."""
    return await _suggest(params, name, service)


async def _suggest(
    params: SuggestRequest, name: str | None, service: IndexService
) -> SuggestAnswer:
    def compute(index: Index) -> SuggestAnswer:
        suggestions = index.suggest(params.q, params.k, filter=params.filter, match=params.match)
        return SuggestAnswer(q=params.q, suggestions=suggestions)

    def cost(index: Index) -> float:
        query = Query(params.q, 1, filter=params.filter, spelling="off")
        return index.search_cost(query) + suggestions_cost(params.q, params.k)

    return await service.answer(name, compute, cost=cost)


TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": LINES}
"""Content types of files by their suffix."""

MAX_SECONDS: Final = 600.0
"""Seconds that a stream takes, at most: a client that reads slowly keeps the index open."""

_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "the rows; with format=jsonl as application/x-ndjson",
        "content": {"text/csv": {"schema": {"type": "string"}}},
    }
}


@get_and_post(
    router,
    "/indexes/{name}/export",
    summary="Export results",
    responses=_CONTENT,
    response_class=Response,
)
async def export(name: str, params: ExportRequest, service: Service) -> Response:
    """Return the hits of a search as rows of CSV or lines of JSON, up to 10,000, as a stream.

    CSV is for spreadsheets: UTF-8 with a byte order mark, and a text that would be a formula has a
    ' before it. If more documents match, give `limit`. The stream breaks off if reading fails.
    """
    # In threads for expensive requests. The index stays open until the stream ends, or breaks off
    # after `MAX_SECONDS`.
    target, token_filter = service.resolve_with_filter(name)
    leased = ExitStack()

    def begin() -> tuple[Iterator[bytes], bytes | None]:
        index = leased.enter_context(service.open_indexes.use(target))
        service.state["index"] = index.name
        if token_filter is not None:
            index = restricted_by_token(index, token_filter)
        rows = _rows(index, params)
        return rows, next(rows, None)

    try:
        rows, first = await service.heavy.run(begin)
    except BaseException:
        leased.close()
        raise
    content = _content(service.heavy, rows, first)
    finalize(content, leased.close)  # also if the client is gone before the first piece
    disposition = f"attachment; filename*=UTF-8''{quote(name)}.{params.format}"
    headers = {"Content-Disposition": disposition}
    return StreamingResponse(content, media_type=TYPES[params.format], headers=headers)


def _rows(index: Index, params: ExportRequest) -> Iterator[bytes]:
    query = params.query()
    if params.limit is None:
        total = index.search(query.model_copy(update={"k": 1})).total
        if total > MAX_WINDOW:
            raise QueryError(
                f"limit: {total:,} documents match, and at most {MAX_WINDOW:,} are exported; "
                "add a filter, or give a limit",
                field="limit",
            )
    rows: Iterator[bytes] = index.export(
        query, params.columns, format=params.format, limit=params.limit
    )
    return rows


async def _content(
    admission: Admission, pieces: Iterator[bytes], first: bytes | None
) -> AsyncIterator[bytes]:
    end = time.monotonic() + MAX_SECONDS
    piece = first
    while piece is not None:
        yield piece
        if time.monotonic() > end:
            raise RequestTimedOut(f"the client read for more than {MAX_SECONDS:.0f} s")
        piece = await admission.run(lambda: next(pieces, None))
