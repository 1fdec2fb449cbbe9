"""Endpoints of search, explanations, health and metrics.

They are coroutines: calls of an index run in threads, and the other endpoints answer at once,
however busy the threads are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Annotated, Final

from fastapi import Depends, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from klsa_search.cluster.calls import PartitionTally
from klsa_search.core.service_reports import Job
from klsa_search.errors import KlsaError, QueryError, StoreError
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Requires, Service, router_for, service_of
from klsa_search.service.index_service import IndexService
from klsa_search.service.middleware.clients import path_of
from klsa_search.service.page_files import SearchPage, prefers_html
from klsa_search.service.schemas.base import MAX_ANSWER, read_parameters, too_large
from klsa_search.service.schemas.errors import answer_to, shown_message
from klsa_search.service.schemas.index_answers import (
    Alive,
    Health,
    IndexSummary,
    Links,
    Readiness,
    ReplicationAnswer,
    Welcome,
    replication_answers,
)
from klsa_search.service.schemas.search_answers import (
    ExplainAnswer,
    FederatedAnswer,
    MultiSearchAnswer,
    SearchAnswer,
    merged,
    search_answer,
)
from klsa_search.service.schemas.search_requests import (
    ExplainRequest,
    MultiSearchBody,
    SearchRequest,
)
from klsa_search.service.signing import Signer

may_search: Final = Requires("search", tenants=True)

router = router_for("search", tenants=True)
open_router = router_for()
metrics_router = router_for("metrics")

_JSON = "application/json"


@open_router.get("/", summary="Get name, version and links", response_model=Welcome)
async def welcome(request: Request, response: Response) -> Welcome | Response:
    """Return name and version of the service, and links to the main endpoints.

    A browser gets the search page.
    """
    if prefers_html(request.headers.get("accept", "")):
        page: SearchPage = request.app.state.page
        return page.start(request)
    response.headers["Vary"] = "Accept"
    links = Links(search="/search?q=", indexes="/indexes", health="/health", docs="/docs")
    return Welcome(name=request.app.title, version=request.app.version, links=links)


@router.get("/search", summary="Search", response_model=SearchAnswer)
async def search(
    params: Annotated[SearchRequest, Depends(SearchRequest.of_url)], service: Service
) -> Response:
    """Rank the documents of an index by relevance to a query.

    An empty query and unknown words find nothing.
    """
    return await _search(params, params.index, service)


_SEARCH: Final = router.routes[-1]


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
                await may_search(request)
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
            results = index.search(params.search())
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


@router.get("/indexes/{name}/explain/{id:whole}", summary="Explain the score of a document")
async def explain(
    name: str,
    id: str,
    params: Annotated[ExplainRequest, Depends(ExplainRequest.of_url)],
    service: Service,
) -> ExplainAnswer:
    """Explain the score of a document, which a search need not find. Its parts sum to the score."""
    return await _explain(name, id, params, service)


@router.post("/indexes/{name}/explain/{id:whole}", summary="Explain the score of a document")
async def explain_body(
    name: str,
    id: str,
    body: ExplainRequest,
    service: Service,
) -> ExplainAnswer:
    """Explain a score as GET does, with the parameters as a JSON object."""
    return await _explain(name, id, body, service)


async def _explain(
    name: str, id_: str, params: ExplainRequest, service: IndexService
) -> ExplainAnswer:
    def compute(index: Index) -> ExplainAnswer:
        explanation = index.explain(
            params.q,
            id_,
            vector=params.vector,
            **params.parameters,
        )
        return ExplainAnswer(query=params.q, explanation=explanation)

    return await service.answer(name, compute, cost=params.cost)


@open_router.get(
    "/health",
    summary="Get the health of the service",
    responses={503: {"model": Health, "description": "none of the indexes can be searched"}},
)
async def health(request: Request, response: Response, service: Service) -> Health:
    """Answer 200 if an index can be searched or there is none yet, else 503 with the same body.

    A follower answers 503 until it has copied an index.

    If API keys are needed, a request without one gets no names, paths and reasons.
    """
    every = service.catalog.statuses()
    ok = service.is_searchable(every)
    statuses = service.statuses()
    names = {status.name for status in statuses}
    response.status_code = 200 if ok else 503
    signer: Signer = request.app.state.signer
    # All at once, as each way to a thread and back takes as long as what the event loop does.
    replications, refits, failing, faults = await asyncio.to_thread(_reports, service, signer)
    faults += service.write_failures.reasons(failing, service.access)
    degraded = bool(faults or failing) or any(status.failure is not None for status in every)
    return Health(
        ok=ok,
        degraded=degraded,
        version=request.app.version,
        indexes=[IndexSummary.of(status) for status in statuses],
        checksums={
            status.name: status.checksums for status in statuses if status.checksums is not None
        },
        refits={name: refits[name] for name in sorted(names & refits.keys())},
        **replications,
        faults=[shown_message(fault, service.catalog.home) for fault in faults]
        if service.access.scopes
        else [],
    )


def _reports(
    service: IndexService, signer: Signer
) -> tuple[dict[str, ReplicationAnswer], Mapping[str, Job], Collection[str], list[str]]:
    """Return backups and following, last refits, indexes whose writes fail, and faults."""
    replications, faults = replication_answers(service.replications)
    if fault := signer.fault():
        faults.append(fault)
    refits: Mapping[str, Job] = {}
    if service.jobs is not None:
        try:
            jobs = service.jobs.history().jobs
            refits = {job.index: job for job in jobs if job.kind == "refit"}  # the newest
        except StoreError as failure:
            faults.append(failure.message)
    return replications, refits, service.write_failures.failing(), faults


@metrics_router.get(
    "/metrics", summary="Get metrics for Prometheus", response_class=PlainTextResponse
)
async def metrics(request: Request, service: Service) -> Response:
    """Return metrics since the start, in the text format of Prometheus or in OpenMetrics."""

    def work() -> tuple[bytes, str]:
        service.write_failures.failing()  # looks at the index directory again
        accept = request.headers.get("accept", "")
        return service.metrics.exposition(service.statuses(), accept)

    content, kind = await asyncio.to_thread(work)  # no thread of a pool may be free
    return Response(content, headers={"Content-Type": kind})


@open_router.get("/health/live", summary="Check liveness")
async def live() -> Alive:
    """Answer 200 while the service runs, whether or not it has indexes."""
    return Alive(ok=True)


@open_router.get(
    "/health/ready",
    summary="Check readiness",
    responses={
        503: {
            "model": Readiness,
            "description": "an index is damaged, or a follower has none",
        }
    },
)
async def ready(response: Response, service: Service) -> Readiness:
    """Answer 200 if all indexes can be searched and none is damaged, else 503.

    A service without indexes is ready to create one, unless it follows another. If the newest
    generation of an index cannot be opened, the previous one is served, and the index
    counts as ready; /health reports it.
    """
    statuses = service.catalog.statuses()
    failing = sum(status.index is None or status.damaged for status in statuses)
    ok = service.is_searchable(statuses) and not failing
    response.status_code = 200 if ok else 503
    return Readiness(
        ok=ok,
        served=sum(status.index is not None for status in statuses),
        failing=failing,
    )
