"""klsa-serve: open the indexes, listen and serve."""

from __future__ import annotations

import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import uvicorn

from klsa_search.cli.compile_child import MODULE
from klsa_search.cli.main import log_for_people, watch_compiling
from klsa_search.cli.output import echo
from klsa_search.cli.refit_child import MODULE as REFITTING
from klsa_search.cli.service_options import is_of_this_machine, listen
from klsa_search.cli.workers import Workers
from klsa_search.core.child_processes import command_of
from klsa_search.core.compiling import compile_in_child, missing_functions
from klsa_search.errors import SettingsError, StoreError
from klsa_search.search.engine.reverse_neighbours import ReverseNeighboursBuilder
from klsa_search.search.index import Index
from klsa_search.search.opening import open_index
from klsa_search.service.admission import AT_ONCE, QUEUED, Admission
from klsa_search.service.app import create_app
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.hosts import names_of_this_machine
from klsa_search.service.middleware.limits import Rates
from klsa_search.service.refits import RefitLedger, Refits
from klsa_search.service.request_log import Journal
from klsa_search.service.server import end_process, make_server, raise_descriptor_limit, tls_of
from klsa_search.service.settings import ServiceSettings
from klsa_search.storage.maintenance import indexes_in


def opening(
    cluster: str | None, shards: int, replicas: int, workers: int, tell: Callable[[str], None]
) -> Callable[[Path], Index]:
    """Join the cluster, if there is to be one, and return what opens an index.

    SettingsError, MissingExtra, ClusterFailed.
    """
    if cluster is None:
        return open_index
    if workers > 1:
        raise SettingsError(
            f"workers = {workers}: with --cluster, one process searches the shards; use more "
            "--shards or --replicas instead",
            field="workers",
        )
    from klsa_search.cluster.index import SpreadIndex
    from klsa_search.cluster.ray import RayFleet
    from klsa_search.storage.current import current_generation

    tell(
        f"Joining the cluster `{cluster}`: {shards} shards of each index, {replicas} replicas of "
        "each shard"
    )
    fleet = RayFleet(cluster, shards, replicas)
    return lambda path: SpreadIndex(current_generation(path), fleet)


Tell = Callable[[str], None]

_TURN = 0.0001
"""Seconds after which a thread at work gives way to another that waits to run Python. The event
loop waits so long at each of some ten steps of a request, and for each thread: with Python's own
5 ms it refuses 40 requests a second while two threads compute, and 400 with this.
"""


def serve_until_stopped(settings: ServiceSettings) -> None:
    """Serve every index of an index directory until SIGINT or SIGTERM.

    StoreError if there is none, KlsaError if the address is not available.
    """
    journal = _journal(settings)
    tell = _teller(journal)
    tls = tls_of(settings.tls_certificate, settings.tls_key)
    _tell_opening(settings.home, tell)
    compile_in_child(MODULE)
    opened = opening(settings.cluster, settings.shards, settings.replicas, settings.workers, tell)
    tell_once = _first_of(tell)
    report = partial(_tell_compiling, tell=tell_once)
    with watch_compiling(report), Catalog(settings.home, opened=opened) as catalog:
        served = _served(catalog, tell)
        with listen(settings.host, settings.port) as listener:
            keys = _keys(settings, listener)
            address = _address(listener, "https" if tls else "http")
            _announce(
                served,
                address,
                _writes(settings, listener, keys),
                keys,
                writable=_is_writable(settings, listener),
            )
            if missing_functions()[0]:
                tell_once(
                    "Compiling the query engine in the background (first run only, up to two "
                    "minutes). Searches work meanwhile, more slowly."
                )
            if settings.workers > 1:
                catalog.close()
                gc.freeze()  # or the end looks through all that was loaded, for seconds
                Workers(settings, listener, tell).run()
            else:
                _serve(settings, catalog, listener, journal)


def serve_at(
    settings: ServiceSettings, listener: socket.socket, *, worker: int, folder: Path
) -> None:
    """Serve on a socket, as one of several processes that share a folder, until SIGTERM."""
    journal = _journal(settings)
    compile_in_child(MODULE)
    with Catalog(settings.home) as catalog:
        _serve(settings, catalog, listener, journal, worker=worker, folder=folder)


def _serve(
    settings: ServiceSettings,
    catalog: Catalog,
    listener: socket.socket,
    journal: Journal | None,
    *,
    worker: int | None = None,
    folder: Path | None = None,
) -> None:
    raise_descriptor_limit()
    keys = _keys(settings, listener)
    writes = None if settings.writable is False else Writes()
    refits = None
    if writes is not None:
        ReverseNeighboursBuilder.ready()  # compiles in the background what the first write would wait for
        command = command_of(REFITTING, "--home", str(settings.home))
        refits = Refits(
            catalog, command, share=settings.refit_threshold or None, ledger=RefitLedger(folder)
        )
    admissions = [*_pools(settings), *([writes] if writes else [])]
    app = create_app(
        catalog,
        admission=admissions[0],
        heavy=admissions[1],
        rates=Rates(settings.rate_limit) if settings.rate_limit else None,
        writes=writes,
        refits=refits,
        keys=keys,
        origins=settings.cors_origins,
        allowed_hosts={settings.host, *settings.allowed_hosts, *names_of_this_machine()},
        journal=journal,
        log_queries=settings.log_queries,
        worker=worker,
        title=settings.title,
    )
    tls = tls_of(settings.tls_certificate, settings.tls_key)
    _run(make_server(app, tls=tls), catalog, admissions, refits, listener)


def _pools(settings: ServiceSettings) -> list[Admission]:
    """What runs light requests, and what runs heavy ones."""
    sizes = (
        (settings.threads, settings.queue_size, QUEUED, AT_ONCE),
        (settings.heavy_threads, settings.heavy_queue_size, None, 0.0),
    )
    return [
        Admission(
            running=running,
            waiting=waiting,
            queue_timeout=settings.queue_timeout,
            request_timeout=settings.request_timeout,
            queued=queued,
            at_once=at_once,
        )
        for running, waiting, queued, at_once in sizes
    ]


def _journal(settings: ServiceSettings) -> Journal | None:
    """Where lines of JSON go, and from now on all that is logged; None for sentences."""
    if settings.log_format != "json":
        log_for_people()  # a worker has yet to
        return None
    journal = Journal()
    logging.basicConfig(handlers=[journal], level=logging.WARNING, force=True)
    return journal


def _teller(journal: Journal | None) -> Tell:
    """Return what reports a sentence at start-up: to stderr, or to the journal."""
    if journal is None:
        return partial(echo, err=True)
    return lambda sentence: journal.write("info", {"message": sentence})


def _keys(settings: ServiceSettings, listener: socket.socket) -> Keys:
    """Return the API keys, and what is allowed without.

    SettingsError if other machines could reach the service without a key.
    """
    anybody = {"search", "metrics", *(["write"] if _is_writable(settings, listener) else [])}
    keys = Keys(settings.keys_file, anybody)
    if not (keys.needed or settings.allow_no_keys or is_of_this_machine(listener)):
        raise SettingsError(
            f"refusing to listen on `{settings.host}` without API keys, because other "
            "machines can reach it; create a key with `klsa-keys add NAME` (key file: "
            f"`{settings.keys_file}`), or let anyone search with --allow-no-keys",
            field="host",
        )
    return keys


def _is_writable(settings: ServiceSettings, listener: socket.socket) -> bool:
    """Return whether requests without a key may write: not behind a proxy, which serves others."""
    if settings.writable is None:
        return not settings.allowed_hosts and is_of_this_machine(listener)
    return settings.writable


def _writes(settings: ServiceSettings, listener: socket.socket, keys: Keys) -> str:
    if settings.writable is False:
        return "off (--writable allows them)"
    if keys.needed:
        return "allowed with an API key of scope write (--read-only turns them off)"
    if _is_writable(settings, listener):
        return "allowed without a key (--read-only turns them off)"
    return "off without a key (--writable allows them)"


def _tell_opening(home: Path, tell: Tell) -> None:
    count = len(indexes_in(home))
    if count:
        tell(f"Opening {count} index{'es' if count > 1 else ''} in {home}")


def _tell_compiling(folder: str | None, tell: Tell) -> None:
    if folder:  # most is compiled in the background
        tell(
            f"Compiling the query engine (once per machine, up to two minutes), cached in {folder}"
        )
    else:
        tell("Compiling the query engine (at every start, as no cache folder is writable)")


def _first_of(tell: Tell) -> Tell:
    """Report the first sentence only, which also covers what a write compiles here."""
    said: list[str] = []

    def first(sentence: str) -> None:
        if not said:
            said.append(sentence)
            tell(sentence)

    return first


def _served(catalog: Catalog, tell: Tell) -> list[str]:
    """Name the indexes that can be served, and warn of the others; StoreError if there is none."""
    statuses = catalog.statuses()
    for status in statuses:
        if status.failure is not None:
            tell(f"warning: index `{status.name}` cannot be served: {status.failure}")
    names = [status.name for status in statuses if status.index is not None]
    if statuses and not names:
        raise StoreError(f"no index in `{catalog.home}` can be served; repair one, as shown above")
    if not names:
        raise StoreError(
            f"no index in `{catalog.home}`; build one, as in `klsa-index build python-docs "
            f"--name python-docs --home {catalog.home}`"
        )
    return names


def _address(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    # A wildcard address cannot be called; the loopback address stands for it on this machine.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - it is replaced
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _announce(
    names: Sequence[str], address: str, writes: str, keys: Keys, *, writable: bool
) -> None:
    """Print where it serves, what to try, and who can do what."""
    shown = "python-docs" if "python-docs" in names else names[0]
    words = "give+up+on+a+coroutine+after+some+time" if shown == "python-docs" else "your+words"
    choice = f"&index={shown}" if len(names) > 1 else ""
    echo(f"Serving {', '.join(names)} at {address} (stop with Ctrl-C)")
    echo(f"API documentation: {address}/docs")
    key = "-H 'Authorization: Bearer KEY' " if keys.needed else ""
    echo(f"Try: curl {key}'{address}/search?q={words}&k=4{choice}'")
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


def _run(
    server: uvicorn.Server,
    catalog: Catalog,
    admissions: Sequence[Admission],
    refits: Refits | None,
    listener: socket.socket,
) -> None:
    """Serve until a signal."""
    sys.setswitchinterval(_TURN)

    def leave(*_: Any) -> NoReturn:
        if refits is not None:
            refits.close()
        catalog.close()
        if catalog.at_work or any(each.at_work for each in admissions):
            end_process(0)
        raise SystemExit(0)

    # The server repeats the signal when it is done; to be stopped is no failure.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, leave)
    # What is there by now stays. To look through it for garbage stops all threads for .1 to .3 s.
    gc.collect()
    gc.freeze()
    with refits or nullcontext():
        server.run(sockets=[listener])
