"""The FastAPI application over a catalog of open indexes: middleware and routes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.types import Lifespan

from klsa_search.service import openapi
from klsa_search.service.admission import HEAVY, HEAVY_WAITING, Admission
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import FILE as KEYS_FILE
from klsa_search.service.metrics import Metrics, Sources
from klsa_search.service.middleware.auth import Authentication, Keys
from klsa_search.service.middleware.guard import Guard
from klsa_search.service.middleware.hosts import ANY, Hosts
from klsa_search.service.middleware.limits import Rates
from klsa_search.service.middleware.proxies import TrustedProxies
from klsa_search.service.page_files import PREFIX, SearchPage
from klsa_search.service.replication import Replication
from klsa_search.service.request_log import RequestLog
from klsa_search.service.resources import Resources
from klsa_search.service.routes import (
    aliases,
    analytics,
    documents,
    evaluation,
    exports,
    fetch,
    indexes,
    judgements,
    mining,
    people,
    rules,
    session,
    suggest,
    sync,
    tenant_tokens,
)
from klsa_search.service.routes.jobs import router as jobs_router
from klsa_search.service.routes.search import QuickSearch, router
from klsa_search.service.schemas import errors
from klsa_search.service.sessions import Sessions
from klsa_search.service.sign_in import SignIn
from klsa_search.service.signing import Signer
from klsa_search.service.tenant_tokens import TenantTokens
from klsa_search.service.write_failures import WriteFailures

NAME = "klsa-search"

ROUTERS: Final = (
    router,
    mining.router,
    suggest.router,
    exports.router,
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
    people.router,
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
    trusted_proxies: Collection[str] = (),
    log_queries: bool = False,
    page: SearchPage | None = None,
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
    trusted_proxies  addresses of proxies whose X-Forwarded headers count
    log_queries    whether the log of requests has their queries
    keys           API keys; by default those of the index directory, or any request may search,
                   write and read metrics while there are none
    allowed_hosts  accepted host names; by default any
    page           the search page; by default with the title klsa-search
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
        exception_handlers={**errors.HANDLERS, Exception: errors.internal_error},
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
    signer = Signer(catalog.home)
    tokens = TenantTokens(signer)
    sessions = Sessions(signer)
    keys = keys or Keys(catalog.home / KEYS_FILE, {"search", "write", "metrics"})
    app.state.signer, app.state.tenant_tokens, app.state.sessions = signer, tokens, sessions
    app.state.keys, app.state.sign_in = keys, SignIn(keys)
    app.state.page = page = page or SearchPage(NAME)
    app.add_middleware(QuickSearch)
    app.add_middleware(
        Guard,
        admission=admission,
        authentication=Authentication(keys, sessions, tokens),
        rates=rates,
        hosts=None if allowed_hosts is None or ANY in allowed_hosts else Hosts(allowed_hosts),
        origins=origins,
        exposed=(judgements.LEFT_OUT,),
        observers=[metrics.observe_request, RequestLog(log_queries)],
    )
    if trusted_proxies:
        app.add_middleware(TrustedProxies, addresses=trusted_proxies)
    app.add_api_route(PREFIX + "{file:path}", page.file, include_in_schema=False)
    # An included router builds its routes again at the first request, which takes 50 ms.
    app.router.routes += [route for api_router in ROUTERS for route in api_router.routes]
    openapi.install(app)
    return app
