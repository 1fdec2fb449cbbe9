"""The FastAPI application over a catalog of open indexes: middleware and routes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Lifespan

from klsa_search.service import openapi
from klsa_search.service.admission import HEAVY, HEAVY_WAITING, Admission
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog
from klsa_search.service.index_service import Resources
from klsa_search.service.jobs import Jobs
from klsa_search.service.metrics import Metrics, Sources
from klsa_search.service.middleware.auth import API_KEY_HEADER, ApiKeyAuth, Keys
from klsa_search.service.middleware.hosts import ANY, AllowedHosts
from klsa_search.service.middleware.limits import BodyLimit, BodyRate, LoadShedder, RateLimit, Rates
from klsa_search.service.middleware.request_id import HEADER, Head, RequestId, Timed
from klsa_search.service.page_files import SearchPage
from klsa_search.service.replication import Replication
from klsa_search.service.request_log import JsonLog, RequestLog
from klsa_search.service.routes import (
    aliases,
    analytics,
    documents,
    evaluation,
    fetch,
    indexes,
    judgements,
    mining,
    rules,
    session,
    suggest,
    sync,
    tenant_tokens,
)
from klsa_search.service.routes.jobs import router as jobs_router
from klsa_search.service.routes.search import router
from klsa_search.service.schemas import errors
from klsa_search.service.schemas.writes import MAX_BODY as MAX_WRITE_BODY
from klsa_search.service.sessions import Sessions
from klsa_search.service.signing import Signer
from klsa_search.service.tenant_tokens import TenantTokens
from klsa_search.service.write_failures import WriteFailures

NAME = "klsa-search"

MAX_BODY = 2**20
"""Maximum bytes of the body of a request; the longest query, all escapes, has a tenth of it."""

PREFLIGHT_AGE: Final = 86_400
"""Seconds that a browser keeps the answer to a CORS preflight."""

ROUTERS: Final = (
    router,
    mining.router,
    suggest.router,
    fetch.router,  # after other routes of documents, as IDs may contain slashes
    documents.router,
    sync.router,
    indexes.router,
    rules.router,
    jobs_router,
    aliases.router,
    evaluation.router,
    judgements.router,
    session.router,
    tenant_tokens.router,
    analytics.router,
)
"""All routes; each declares the scopes it needs: see `service.dependencies.requires`."""


def catalog_app(
    catalog: Catalog,
    *,
    admission: Admission | None = None,
    heavy: Admission | None = None,
    rates: Rates | None = None,
    writes: Writes | None = None,
    jobs: Jobs | None = None,
    replications: Sequence[Replication] = (),
    recorder: Recorder | None = None,
    keys: Keys | None = None,
    origins: Collection[str] = (),
    allowed_hosts: Collection[str] | None = None,
    log: JsonLog | None = None,
    log_queries: bool = False,
    title: str = NAME,
    lifespan: Lifespan[FastAPI] | None = None,
) -> FastAPI:
    """Return the application that serves a catalog; the caller closes the catalog.

    admission      limits of running and waiting requests; by default those for this machine
    heavy          the same for expensive requests
    rates          rate limit of each client; by default none
    writes         accepts writes; by default the service is read-only
    jobs           refits indexes, automatically or on request; by default none
    replications   backups of the indexes, and following of others; by default none
    recorder       records searches and clicks; by default analytics are off
    origins        origins of pages that may send cross-origin requests; by default none
    log            log of requests, with their queries if `log_queries`; by default none
    keys           API keys; by default every request may do everything
    allowed_hosts  accepted host names; by default any
    title          title of the search page
    lifespan       what runs while the application does; by default nothing
    The pages at / and /docs include their scripts and styles, so that they work offline.
    """
    app = FastAPIOffline(
        title=NAME,
        version=version(NAME),
        summary="Search with Kernel Latent Semantic Analysis",
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        # By default /docs sends the schema to a public validator.
        swagger_ui_parameters={"validatorUrl": None},
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    admission = admission or Admission()
    heavy = heavy or Admission(running=HEAVY, waiting=HEAVY_WAITING)
    pools = {
        "search": admission,
        "heavy": heavy,
        **({"write": writes} if writes is not None else {}),
    }
    sources = Sources(
        pools=pools,
        jobs=jobs,
        rates=rates,
        recorder=recorder,
        watches=[
            replication.watch
            for replication in (catalog, jobs, *replications, recorder)
            if replication is not None
        ],
        replications=replications,
    )
    metrics = Metrics(sources)
    app.state.resources = Resources(
        catalog,
        admission,
        heavy,
        metrics,
        WriteFailures(metrics),
        writes=writes,
        jobs=jobs,
        replications=replications,
        recorder=recorder,
    )
    app.add_middleware(BodyLimit, limit=MAX_BODY, writes=MAX_WRITE_BODY)
    app.add_middleware(BodyRate)
    if rates is not None:
        app.add_middleware(RateLimit, rates=rates)
    app.state.needs_keys = keys is not None
    signer = Signer(catalog.home)
    app.state.signer = signer
    app.state.tenant_tokens = TenantTokens(signer)
    app.state.sessions = None if keys is None else Sessions(signer)
    if keys is not None:
        app.add_middleware(
            ApiKeyAuth,
            keys=keys,
            sessions=app.state.sessions,
            tokens=app.state.tenant_tokens,
            rates=rates,
        )
    app.add_middleware(SearchPage, title=title)
    app.add_middleware(Head)
    app.add_middleware(LoadShedder, admission=admission)
    if allowed_hosts is not None and ANY not in allowed_hosts:
        app.add_middleware(AllowedHosts, names=allowed_hosts)
    if origins:  # outside all that may refuse, so that pages can read why
        app.add_middleware(
            CORSMiddleware,
            allow_origins=tuple(origins),
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=("Authorization", API_KEY_HEADER, "Content-Type", HEADER),
            expose_headers=(HEADER, "Retry-After", "WWW-Authenticate", judgements.LEFT_OUT),
            max_age=PREFLIGHT_AGE,
        )
    logs = [RequestLog(log, log_queries)] if log is not None else []
    app.add_middleware(Timed, observers=[metrics.observe_request, *logs])
    app.add_middleware(RequestId)
    for api_router in ROUTERS:
        app.include_router(api_router)
    routes = [route for api_router in ROUTERS for route in api_router.routes]
    errors.install(app, routes)
    openapi.install(app)
    return app
