"""klsa-serve: open the indexes, listen and serve."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from klsa_search.cli.main import explain, log_as_text, trust_tokenizers
from klsa_search.cli.options import embedders_of
from klsa_search.cli.output import echo
from klsa_search.cli.refit_child import MODULE as REFITTING
from klsa_search.cli.replication_child import MODULE as REPLICATING
from klsa_search.cli.service_options import is_loopback, listen
from klsa_search.core.child_processes import command_of, stop_with_parent
from klsa_search.errors import KlsaError, SettingsError, StoreError
from klsa_search.search.index import Index
from klsa_search.search.models import Models
from klsa_search.search.opening import open_index
from klsa_search.service.admission import INLINE_SECONDS, MAX_QUEUE_DELAY, Admission
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.app import create_app
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog
from klsa_search.service.jobs import Jobs
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.hosts import names_of_this_machine
from klsa_search.service.middleware.limits import Rates
from klsa_search.service.opening import IndexOpener
from klsa_search.service.replication import Replication
from klsa_search.service.request_log import JsonLog
from klsa_search.service.server import (
    configured,
    end_process,
    log_no_cancellations,
    raise_descriptor_limit,
)
from klsa_search.service.settings import ServiceSettings, read_settings
from klsa_search.service.tls import check_certificate
from klsa_search.storage.maintenance import indexes_in
from klsa_search.storage.partitions import is_partitioned

Report = Callable[[str], None]
"""Reports a sentence at start-up."""

_SWITCH_INTERVAL = 0.0001
"""Seconds after which a running thread releases the GIL to another. The event loop waits that long
at each of some ten steps of a request, for each thread: while two threads compute, 40 requests a
second are the limit with Python's default of 5 ms, and 400 with this.
"""


def opener_of(settings: ServiceSettings, report: Report) -> IndexOpener:
    """Return a function that opens an index; connect to the cluster, if any, for partitions.

    SettingsError, MissingExtra, ClusterFailed.
    """
    models = _models(settings)
    opener = _opener_with(models)
    if settings.cluster is None:
        return opener
    if settings.workers > 1:
        raise SettingsError(
            f"workers = {settings.workers}: with --cluster, one process calls the partitions; use "
            "more --replicas instead",
            field="workers",
        )
    from klsa_search.cluster.index import ClusterIndex
    from klsa_search.cluster.ray import RayCluster

    report(f"Joining the cluster `{settings.cluster}`")
    follow, every = settings.follow, settings.follow_every
    cluster = RayCluster(settings.cluster, settings.replicas, follow, every)

    def opened(path: Path) -> Index:
        if is_partitioned(path):
            return ClusterIndex.open(path, cluster, models=models)
        return opener(path)

    return opened


def _opener_with(models: Models) -> IndexOpener:
    """Return a function that opens an index with models, which all indexes share."""
    return partial(open_index, embedders=models.embedders, reranker=models.reranker)


def _models(settings: ServiceSettings) -> Models:
    """Open the models of the service; SettingsError, MissingExtra."""
    return Models.opened(embedders_of(settings.embedders), settings.reranker)


def serve_until_stopped(
    settings: ServiceSettings, options: Mapping[str, Any], config: Path | None
) -> None:
    """Serve every index of an index directory until SIGINT or SIGTERM.

    options  given on the command line: workers read them with the environment and the file `config`
    StoreError if all indexes are damaged, KlsaError if the address is not available.
    """
    log = _json_log(settings)
    report = _reporter(log)
    check_certificate(settings.tls_certificate, settings.tls_key)
    if settings.follow is not None:
        settings.home.mkdir(parents=True, exist_ok=True)
    _report_opening(settings.home, report)
    with Catalog(settings.home, opener=opener_of(settings, report)) as catalog:
        served = _served(catalog, report)
        with listen(settings.host, settings.port) as listener:
            loopback = is_loopback(listener)
            keys = _keys(settings, loopback=loopback)
            address = _address(listener, "https" if settings.tls_certificate else "http")
            _announce(
                served,
                settings,
                address,
                _writes(settings, keys, loopback=loopback),
                keys,
                writable=_is_writable(settings, loopback=loopback),
            )
            raise_descriptor_limit()
            if settings.workers > 1:
                catalog.close()
                gc.freeze()  # else the collection at exit takes seconds
                _serve_with_workers(
                    settings, partial(worker_app, options, config, loopback=loopback), listener
                )
            else:
                _serve(settings, catalog, listener, log, loopback=loopback)


_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the folder below it is private
"""Folder in memory for the metrics of workers: a full disk kills a process that maps its files."""


def _serve_with_workers(
    settings: ServiceSettings, create: Callable[[], FastAPI], listener: socket.socket
) -> None:
    """Run worker processes until SIGINT or SIGTERM; SIGHUP restarts one after another."""
    memory = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="klsa-workers-", dir=memory) as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # the metrics of all workers
        os.environ["PYTHONSAFEPATH"] = "1"  # uvicorn starts them without -P
        supervisor = Multiprocess(configured(create, settings), [listener])
        if sys.stdin is not None and sys.stdin.isatty():
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the terminal was closed
        supervisor.run()


def worker_app(options: Mapping[str, Any], config: Path | None, *, loopback: bool) -> FastAPI:
    """Return the application of a worker process, with the settings as they are now.

    loopback  whether no other machine can reach the service
    SystemExit, after a message, if the settings are invalid or the directory cannot be read.
    """
    stop_with_parent()
    trust_tokenizers()
    try:
        settings = read_settings(options, config)
        check_certificate(settings.tls_certificate, settings.tls_key)
        log = _json_log(settings)
        catalog = Catalog(settings.home, opener=_opener_with(_models(settings)))
        return _app(settings, catalog, _pools(settings), log, loopback=loopback)
    except (KlsaError, OSError) as failure:
        echo(f"error: {explain(failure)}", err=True)
        raise SystemExit(STARTUP_FAILURE) from None


def _serve(
    settings: ServiceSettings,
    catalog: Catalog,
    listener: socket.socket,
    log: JsonLog | None,
    *,
    loopback: bool,
) -> None:
    """Serve in this process until a signal."""
    pools = _pools(settings)
    app = _app(settings, catalog, pools, log, loopback=loopback)

    def stop(*_: Any) -> NoReturn:
        if catalog.is_busy or any(each.is_busy for each in pools):
            end_process(0)
        raise SystemExit(0)

    # The server raises the signal again when it has stopped; the exit code is then 0.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, stop)
    uvicorn.Server(configured(app, settings)).run(sockets=[listener])
    stop()


def _app(
    settings: ServiceSettings,
    catalog: Catalog,
    pools: Sequence[Admission],
    log: JsonLog | None,
    *,
    loopback: bool,
) -> FastAPI:
    """Return the application of a process, which closes the catalog in the end."""
    writes = None if settings.writable is False else Writes()
    jobs = None
    if writes is not None:
        embedders = [option for each in settings.embedders for option in ("--embedder", each)]
        command = command_of(REFITTING, "--home", str(settings.home), *embedders)
        jobs = Jobs(catalog, command, share=settings.refit_threshold or None)
    replications = _replications(settings)
    recorder = None
    if settings.analytics:
        recorder = Recorder(
            settings.home,
            days=settings.analytics_days,
            min_searches=settings.analytics_min_searches,
        )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sys.setswitchinterval(_SWITCH_INTERVAL)
        log_no_cancellations()
        # A collection of the objects loaded so far would stop all threads for 0.1 to 0.3 s.
        gc.collect()
        gc.freeze()
        with ExitStack() as started:
            started.callback(catalog.close)
            for each in (*replications, jobs, recorder):
                if each is not None:
                    started.enter_context(each)
            yield

    return create_app(
        catalog,
        admission=pools[0],
        heavy=pools[1],
        rates=Rates(settings.rate_limit) if settings.rate_limit else None,
        writes=writes,
        jobs=jobs,
        replications=replications,
        recorder=recorder,
        keys=_keys(settings, loopback=loopback),
        origins=settings.cors_origins,
        allowed_hosts={settings.host, *settings.allowed_hosts, *names_of_this_machine()},
        log=log,
        log_queries=settings.log_queries,
        title=settings.title,
        lifespan=lifespan,
    )


def _replications(settings: ServiceSettings) -> list[Replication]:
    """Return the backups of the service, and what it follows, if any."""
    found = []
    home = ("--home", str(settings.home))
    if settings.backup is not None:
        options = ["--every", str(settings.backup_every), "--keep", str(settings.backup_keep)]
        command = command_of(REPLICATING, "backup", settings.backup, *home, *options)
        found.append(Replication("backup", settings.home, command))
    if settings.follow is not None:
        options = ["--every", str(settings.follow_every)]
        command = command_of(REPLICATING, "follow", settings.follow, *home, *options)
        found.append(Replication("follow", settings.home, command))
    return found


def _pools(settings: ServiceSettings) -> list[Admission]:
    """Return the admission of light requests, and that of expensive ones."""
    sizes = (
        (settings.threads, settings.queue_size, MAX_QUEUE_DELAY, INLINE_SECONDS),
        (settings.heavy_threads, settings.heavy_queue_size, None, 0.0),
    )
    return [
        Admission(
            running=running,
            waiting=waiting,
            queue_timeout=settings.queue_timeout,
            request_timeout=settings.request_timeout,
            max_queue_delay=max_queue_delay,
            inline_seconds=inline_seconds,
        )
        for running, waiting, max_queue_delay, inline_seconds in sizes
    ]


def _json_log(settings: ServiceSettings) -> JsonLog | None:
    """Configure logging, and return the JSON log; None for a log of plain text."""
    if settings.log_format != "json":
        log_as_text()  # not yet done in a worker
        return None
    log = JsonLog()
    logging.basicConfig(handlers=[log], level=logging.WARNING, force=True)
    return log


def _reporter(log: JsonLog | None) -> Report:
    """Return a function that writes a sentence to stderr, or to the JSON log."""
    if log is None:
        return partial(echo, err=True)
    return lambda sentence: log.write("info", {"message": sentence})


def _keys(settings: ServiceSettings, *, loopback: bool) -> Keys:
    """Return the API keys, with the scopes of requests without a key.

    SettingsError if other machines could reach the service without a key.
    """
    keyless = {
        "search",
        "metrics",
        *(["write"] if _is_writable(settings, loopback=loopback) else []),
    }
    keys = Keys(settings.keys_file, keyless)
    if not (keys.needed or settings.allow_no_keys or loopback):
        raise SettingsError(
            f"refusing to listen on `{settings.host}` without API keys, because other "
            "machines can reach it; create a key with `klsa-keys add NAME` (key file: "
            f"`{settings.keys_file}`), or let anyone search with --allow-no-keys",
            field="host",
        )
    return keys


def _is_writable(settings: ServiceSettings, *, loopback: bool) -> bool:
    """Return whether requests without a key may write; by default not behind a proxy."""
    if settings.writable is None:
        return not settings.allowed_hosts and loopback
    return settings.writable


def _writes(settings: ServiceSettings, keys: Keys, *, loopback: bool) -> str:
    if settings.follow is not None:
        return f"off (this service follows {settings.follow})"
    if settings.writable is False:
        return "off (--writable allows them)"
    if keys.needed:
        return "allowed with an API key of scope write (--read-only turns them off)"
    if _is_writable(settings, loopback=loopback):
        return "allowed without a key (--read-only turns them off)"
    return "off without a key (--writable allows them)"


def _report_opening(home: Path, report: Report) -> None:
    count = len(indexes_in(home))
    if count:
        report(f"Opening {count} index{'es' if count > 1 else ''} in {home}")


def _served(catalog: Catalog, report: Report) -> list[str]:
    """Return the names of the served indexes, and warn of others; StoreError if all are damaged."""
    statuses = catalog.statuses()
    for status in statuses:
        if status.failure is not None:
            report(f"warning: index `{status.name}` cannot be served: {status.failure}")
    names = [status.name for status in statuses if status.index is not None]
    if statuses and not names:
        raise StoreError(f"no index in `{catalog.home}` can be served; repair one, as shown above")
    return names


def _address(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    # Clients cannot connect to a wildcard address; on this machine loopback is the same.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - it is replaced
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _announce(
    names: Sequence[str],
    settings: ServiceSettings,
    address: str,
    writes: str,
    keys: Keys,
    *,
    writable: bool,
) -> None:
    """Print the address, an example request, and what is allowed with and without keys."""
    key = "-H 'Authorization: Bearer KEY' " if keys.needed else ""
    echo(f"Serving {', '.join(names) or 'no index yet'} at {address} (stop with Ctrl-C)")
    echo(f"API documentation: {address}/docs")
    if names:
        shown = "python-docs" if "python-docs" in names else names[0]
        words = "give+up+on+a+coroutine+after+some+time" if shown == "python-docs" else "your+words"
        choice = f"&index={shown}" if len(names) > 1 else ""
        echo(f"Try: curl {key}'{address}/search?q={words}&k=4{choice}'")
    elif settings.follow is not None:
        echo(f"Indexes are copied from {settings.follow} when it has a backup")
    else:
        echo(f"Build an index: klsa-index build SOURCE --name NAME --home {settings.home}")
        if settings.writable is not False:
            body = '{"name": "NAME"}'
            echo(f"or: curl {key}-H 'Content-Type: application/json' {address}/indexes -d '{body}'")
    echo(f"Writes: {writes}")
    echo(f"Authentication: {_authentication(keys, writable=writable)}")


def _authentication(keys: Keys, *, writable: bool) -> str:
    if keys.needed:
        return "on (API keys required)"
    allowed = "search and write" if writable else "search"
    return (
        f"off (no API keys): anyone who can reach this port can {allowed}; `klsa-keys add NAME` "
        "turns it on"
    )
