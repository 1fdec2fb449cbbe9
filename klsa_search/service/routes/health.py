"""Endpoints of the service itself: links, health, readiness and metrics.

They are coroutines that answer at once, however busy the threads are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse

from klsa_search.core.service_reports import Job
from klsa_search.errors import StoreError
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.index_service import IndexService
from klsa_search.service.page_files import SearchPage, prefers_html
from klsa_search.service.schemas.errors import shown_message
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
from klsa_search.service.signing import Signer

open_router = router_for()
metrics_router = router_for("metrics")


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
    every = service.open_indexes.statuses()
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
        faults=[shown_message(fault, service.open_indexes.home) for fault in faults]
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
        503: {"model": Readiness, "description": "an index is damaged, or a follower has none"}
    },
)
async def ready(response: Response, service: Service) -> Readiness:
    """Answer 200 if all indexes can be searched and none is damaged, else 503.

    A service without indexes is ready to create one, unless it follows another. If the newest
    generation of an index cannot be opened, the previous one is served, and the index
    counts as ready; /health reports it.
    """
    statuses = service.open_indexes.statuses()
    failing = sum(status.index is None or status.damaged for status in statuses)
    ok = service.is_searchable(statuses) and not failing
    response.status_code = 200 if ok else 503
    return Readiness(
        ok=ok, served=sum(status.index is not None for status in statuses), failing=failing
    )
