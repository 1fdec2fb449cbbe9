"""The service over an index directory, as its settings describe it: an ASGI application.

`klsa-serve` runs it. So does any other server, and it can be mounted into another application.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from klsa_search.core.child_processes import command_of
from klsa_search.core.installation import __version__
from klsa_search.embedding.options import embedders_of
from klsa_search.errors import SettingsError
from klsa_search.search.index import Index, open_index
from klsa_search.search.models import Models
from klsa_search.service import openapi
from klsa_search.service.admission import (
    HEAVY_WAITING,
    INLINE_SECONDS,
    MAX_QUEUE_DELAY,
    Admission,
    Writes,
)
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.background import Replication
from klsa_search.service.changes import ChangeNotices
from klsa_search.service.jobs import Jobs
from klsa_search.service.metrics import Metrics
from klsa_search.service.middleware.auth import Keys, SignIn, access_of
from klsa_search.service.middleware.clients import (
    ANY,
    Hosts,
    Rates,
    TrustedProxies,
    names_of_this_machine,
)
from klsa_search.service.middleware.guard import Guard
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.page_files import PREFIX, SearchPage
from klsa_search.service.request_log import RequestLog
from klsa_search.service.resources import Resources
from klsa_search.service.routes import (
    access,
    analytics,
    documents,
    evaluation,
    health,
    indexes,
    mining,
    rules,
    search,
    sources,
)
from klsa_search.service.schemas import errors
from klsa_search.service.served_index import IndexOpener
from klsa_search.service.server import log_no_cancellations
from klsa_search.service.settings import ServiceSettings, read_settings
from klsa_search.service.signing import Signer
from klsa_search.service.write_failures import WriteFailures
from klsa_search.storage.partitions import is_partitioned
from klsa_search.storage.repository import Work

ROUTERS: Final = (
    search.router,
    health.open_router,
    health.metrics_router,
    mining.tenant_router,
    mining.router,
    documents.reading_router,  # after other routes of documents, as IDs may contain slashes
    documents.router,
    sources.router,
    indexes.reading_router,
    indexes.writing_router,
    rules.reading_router,
    rules.router,
    evaluation.router,
    evaluation.writing_router,
    access.router,
    access.open_router,
    access.users_router,
    access.search_router,
    analytics.tenant_router,
    analytics.router,
)
"""All routes; each router declares the scopes they need: see `service.dependencies`."""

CHILD: Final = "klsa_search.cli.children"  # module of the processes that refit, back up and follow
_YOUNG_OBJECTS: Final = 20_000
"""New objects after which garbage is collected: every other request had one with the default, and
nearly all that a request makes is freed without.
"""

_SWITCH_INTERVAL: Final = 0.0001
"""Seconds after which a running thread releases the GIL to another. The event loop waits that long
at each of some ten steps of a request, for each thread: while two threads compute, 40 requests a
second are the limit with Python's default of 5 ms, and 400 with this.
"""


def create_app(
    settings: ServiceSettings | None = None,
    *,
    resources: Resources | None = None,
    loopback: bool = False,
) -> FastAPI:
    """Return the application that serves the indexes of `settings.home`.

    settings   by default those of the environment: see docs/reference/service-settings.md
    resources  what its requests share, by default opened now as the settings say
    loopback   whether no other machine can reach the service; only then, or if
               `settings.allow_no_keys` says so, are requests without a key answered
    Settings of a server, such as `port`, `workers` and `root_path`, are for `klsa-serve` alone.
    Refits, backups and analytics run while its lifespan does, which closes the indexes. Starlette
    does not run that of an application that is mounted into another: enter
    `app.router.lifespan_context(app)` in that of the other. Threads are started at once, so a
    server must not fork after this. The pages at / and /docs include their scripts and styles, so
    that they work offline. SettingsError; StoreError if the directory cannot be read. Cost:
    opening the indexes.

    >>> from klsa_search.service import ServiceSettings, create_app
    >>> app = create_app(ServiceSettings(home="index", allow_no_keys=True))
    >>> from fastapi.testclient import TestClient
    >>> with TestClient(app, base_url="http://localhost") as client:
    ...     answer = client.get("/search", params={"q": "coolant", "index": "reports"}).json()
    >>> answer["hits"][0]["id"]
    'leak'
    """
    settings = settings or read_settings({})
    shared = resources or open_resources(settings, loopback=loopback)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sys.setswitchinterval(_SWITCH_INTERVAL)
        log_no_cancellations()
        # A collection of the objects loaded so far would stop all threads for 0.1 to 0.3 s.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS)
        with shared.running():
            yield

    app = FastAPIOffline(
        title="klsa-search",
        version=__version__,
        summary="Search with Kernel Latent Semantic Analysis",
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={**errors.HANDLERS, Exception: errors.internal_error},
        # By default /docs sends the schema to a public validator.
        swagger_ui_parameters={"validatorUrl": None},
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    page = SearchPage(settings.title, logo=settings.logo, front_index=settings.front_index)
    metrics, signer = Metrics(shared), Signer(shared.open_indexes.home)
    app.state.resources, app.state.page = shared, page
    app.state.metrics = metrics
    app.state.write_failures = WriteFailures(metrics, shared.open_indexes.home)
    app.state.signer, app.state.sign_in = signer, SignIn(shared.keys)
    hosts = {settings.host, *settings.allowed_hosts, *names_of_this_machine()}
    app.add_middleware(search.QuickSearch)
    app.add_middleware(
        Guard,
        admission=shared.admission,
        authenticate=partial(access_of, shared.keys, signer),
        rates=shared.rates,
        hosts=None if ANY in hosts else Hosts(hosts),
        origins=settings.cors_origins,
        exposed=(evaluation.LEFT_OUT,),
        observers=[metrics.observe_request, RequestLog(settings.log_queries)],
    )
    if settings.trusted_proxies:
        proxies = [str(network) for network in settings.trusted_proxies]
        app.add_middleware(TrustedProxies, trusted_hosts=proxies)
    app.add_api_route(PREFIX + "{file:path}", page.file, include_in_schema=False)
    # An included router builds its routes again at the first request, which takes 50 ms.
    app.router.routes += [route for api_router in ROUTERS for route in api_router.routes]
    openapi.install(app)
    return app


def open_resources(
    settings: ServiceSettings, *, open_indexes: OpenIndexes | None = None, loopback: bool
) -> Resources:
    """Return what the requests of an application share, as its settings say.

    open_indexes  by default opened now
    Errors as of `create_app`.
    """
    keys = keys_of(settings, loopback=loopback)
    open_indexes = open_indexes or OpenIndexes(settings.home, opener=opener_of(settings))
    jobs = recorder = None
    if settings.writable is not False:
        embedders = [
            option for embedder in settings.embedders for option in ("--embedder", embedder)
        ]
        command = command_of(CHILD, "refit", "--home", str(settings.home), *embedders)
        jobs = Jobs(open_indexes, command, share=settings.refit_threshold or None)
    if settings.analytics:
        recorder = Recorder(
            settings.home,
            days=settings.analytics_days,
            min_searches=settings.analytics_min_searches,
        )
    return Resources(
        open_indexes=open_indexes,
        keys=keys,
        admission=Admission(
            running=settings.threads,
            request_timeout=settings.request_timeout,
            max_queue_delay=MAX_QUEUE_DELAY,
            inline_seconds=INLINE_SECONDS,
        ),
        heavy=Admission(
            running=settings.heavy_threads,
            waiting=HEAVY_WAITING,
            request_timeout=settings.request_timeout,
        ),
        rates=Rates(settings.rate_limit) if settings.rate_limit else None,
        writes=None if settings.writable is False else Writes(),
        jobs=jobs,
        replications=_replications(settings),
        recorder=recorder,
    )


def opener_of(settings: ServiceSettings) -> IndexOpener:
    """Return a function that opens an index; connect to the cluster, if any, for partitions.

    All indexes share the embedders and the reranker. SettingsError, MissingExtra, ClusterFailed.
    """
    models = Models.opened(embedders_of(settings.embedders), settings.reranker)
    opener = partial(open_index, embedders=models.embedders, reranker=models.reranker)
    if settings.cluster is None:
        return opener
    if settings.workers > 1:
        raise SettingsError(
            f"workers = {settings.workers}: with --cluster, one process calls the partitions; use "
            "more --replicas instead",
            field="workers",
        )
    from klsa_search.cluster.ray import RayCluster
    from klsa_search.cluster.remote import open_cluster_index

    cluster = RayCluster(
        settings.cluster, settings.replicas, settings.follow, settings.follow_every
    )

    def opened(path: Path) -> Index:
        if is_partitioned(path):
            return open_cluster_index(path, cluster, models)
        return opener(path)

    return opened


def keys_of(settings: ServiceSettings, *, loopback: bool) -> Keys:
    """Return the API keys, with the scopes of requests without a key.

    SettingsError if other machines could reach the service without a key.
    """
    may_write = settings.writable
    if may_write is None:  # by default not behind a proxy
        may_write = loopback and not (settings.allowed_hosts or settings.trusted_proxies)
    keyless = {"search", "metrics", *(["write"] if may_write else [])}
    changes = ChangeNotices(settings.home) if settings.keys is None else None
    keys = Keys(settings.keys_file, keyless, changes)
    if not (keys.needed or settings.allow_no_keys or loopback):
        raise SettingsError(
            f"refusing to serve `{settings.home}` without API keys, because other machines may "
            f"reach the service; create a key with `{settings.add_key_command}`, or let anyone "
            "search with allow_no_keys (--allow-no-keys)",
            field="host",
        )
    return keys


def _replications(settings: ServiceSettings) -> list[Replication]:
    """Return the backups of the service, and what it follows, if any."""
    home = ("--home", str(settings.home))
    every = str(settings.backup_every)
    works: list[tuple[Work, str | None, list[str]]] = [
        ("backup", settings.backup, ["--every", every, "--keep", str(settings.backup_keep)]),
        ("follow", settings.follow, ["--every", str(settings.follow_every)]),
    ]
    return [
        Replication(
            work, settings.home, command_of(CHILD, "replicate", work, location, *home, *options)
        )
        for work, location, options in works
        if location is not None
    ]
