"""klsa-serve: open the indexes, listen and serve."""

from __future__ import annotations

import errno
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import click
import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from klsa_search.cli.main import explain, log_as_text, trust_tokenizers
from klsa_search.cli.output import echo
from klsa_search.core.child_processes import stop_with_parent
from klsa_search.errors import KlsaError, StoreError
from klsa_search.service.application import create_app, keys_of, open_resources, opener_of
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.request_log import CHANGES, REQUESTS, JsonLog
from klsa_search.service.server import (
    check_certificate,
    configured,
    end_process,
    raise_descriptor_limit,
)
from klsa_search.service.settings import ServiceSettings, read_settings
from klsa_search.storage.maintenance import indexes_in

Report = Callable[[str], None]  # reports a sentence at start-up


def serve_until_stopped(
    settings: ServiceSettings, options: Mapping[str, Any], config: Path | None
) -> None:
    """Serve every index of an index directory until SIGINT or SIGTERM.

    options  given on the command line: workers read them with the environment and the file `config`
    StoreError if all indexes are damaged, KlsaError if the address is not available.
    """
    report = configure_logging(settings)
    check_certificate(settings.tls_certificate, settings.tls_key)
    if settings.follow is not None:
        settings.home.mkdir(parents=True, exist_ok=True)
    if settings.cluster is not None:
        report(f"Joining the cluster `{settings.cluster}`")
    if count := len(indexes_in(settings.home)):
        report(f"Opening {count} index{'es' if count > 1 else ''} in {settings.home}")
    with OpenIndexes(settings.home, opener=opener_of(settings)) as open_indexes:
        served = _served(open_indexes, report)
        with listen(settings.host, settings.port) as listener:
            loopback = is_loopback(listener)
            keys = keys_of(settings, loopback=loopback)
            address = _address(listener, "https" if settings.tls_certificate else "http")
            _announce(served, settings, address, keys)
            raise_descriptor_limit()
            if settings.workers > 1:
                open_indexes.close()
                gc.freeze()  # else the collection at exit takes seconds
                _serve_with_workers(
                    settings, partial(worker_app, options, config, loopback=loopback), listener
                )
            else:
                _serve(settings, open_indexes, listener, loopback=loopback)


_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the folder below it is private
"""Folder in memory for the metrics of workers: a full disk kills a process that maps its files."""


def _serve_with_workers(
    settings: ServiceSettings, create: Callable[[], FastAPI], listener: socket.socket
) -> None:
    """Run worker processes until SIGINT or SIGTERM; SIGHUP restarts one after another.

    SystemExit with 1 if a worker could not start, after its message.
    """
    memory = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="klsa-workers-", dir=memory) as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # the metrics of all workers
        os.environ["PYTHONSAFEPATH"] = "1"  # uvicorn starts them without -P
        supervisor = _Workers(configured(create, settings), [listener])
        if sys.stdin is not None and sys.stdin.isatty():
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the terminal was closed
        supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise SystemExit(1)  # so that the system restarts the service, or reports its end


class _Workers(Multiprocess):
    """Workers of which one that ends at its start is noticed at once."""

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended; stop if one of them could not start."""
        for process in self.processes:
            # Else its pipe stays open, and an answer is awaited for the time that opening may take.
            process.child_conn.close()
        super().keep_subprocess_alive()


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
        configure_logging(settings)
        return create_app(settings, loopback=loopback)
    except (KlsaError, OSError) as failure:
        echo(f"error: {explain(failure)}", err=True)
        raise SystemExit(STARTUP_FAILURE) from None


def _serve(
    settings: ServiceSettings, open_indexes: OpenIndexes, listener: socket.socket, *, loopback: bool
) -> None:
    """Serve in this process until a signal."""
    resources = open_resources(settings, open_indexes=open_indexes, loopback=loopback)

    def stop(*_: Any) -> NoReturn:
        if open_indexes.is_busy or resources.admission.is_busy or resources.heavy.is_busy:
            end_process(0)
        raise SystemExit(0)

    # The server raises the signal again when it has stopped; the exit code is then 0.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, stop)
    uvicorn.Server(configured(create_app(settings, resources=resources), settings)).run(
        sockets=[listener]
    )
    stop()


def configure_logging(settings: ServiceSettings) -> Report:
    """Configure logging, and return a function that writes a sentence to stderr, or as JSON."""
    if settings.log_format != "json":
        log_as_text()  # not yet done in a worker
        return partial(echo, err=True)
    logging.basicConfig(handlers=[JsonLog()], level=logging.WARNING, force=True)
    log = logging.getLogger("klsa_search.serving")
    for logger in (log, REQUESTS, CHANGES):
        logger.setLevel(logging.INFO)
    return partial(log.info, "%s")


def _writes(settings: ServiceSettings, keys: Keys) -> str:
    if settings.follow is not None:
        return f"off (this service follows {settings.follow})"
    if settings.writable is False:
        return "off (--writable allows them)"
    if keys.needed:
        return "allowed with an API key of scope write (--read-only turns them off)"
    if "write" in keys.keyless.scopes:
        return "allowed without a key (--read-only turns them off)"
    return "off without a key (--writable allows them)"


_REFUSALS = {
    errno.EADDRINUSE: "address in use; stop the other process, or choose another port with --port",
    errno.EADDRNOTAVAIL: "not an address of this machine; choose another with --host",
    errno.EACCES: "permission denied; choose a port above 1023 with --port",
}


_USER_TIMEOUT = 30
"""Seconds after which a connection is closed if the client reads nothing of a response."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the address; KlsaError if that is not possible."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        created = socket.create_server(address[:2], family=family, backlog=2048)
        # create_server leaves the protocol 0, and asyncio sets TCP_NODELAY for TCP only. Without
        # it a response on a kept connection waits 45 ms for the client.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, created.detach())
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # inherited by connections
            timeout = 1000 * _USER_TIMEOUT
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout)
        return listener
    except socket.gaierror as failure:
        raise click.BadParameter(
            f"unknown host {host!r} ({failure.strerror}); give a name or an address of this "
            "machine",
            param_hint="--host",
        ) from None
    except OSError as failure:
        fact = _REFUSALS.get(
            failure.errno or 0, f"{failure.strerror}; choose another address with --host or --port"
        )
        raise KlsaError(f"cannot listen on `{host}` port {port}: {fact}") from failure


def is_loopback(listener: socket.socket) -> bool:
    """Return whether no other machine can reach the address."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def _served(open_indexes: OpenIndexes, report: Report) -> list[str]:
    """Return the names of the served indexes, and warn of others; StoreError if all are damaged."""
    statuses = open_indexes.statuses()
    for status in statuses:
        if status.failure is not None:
            report(f"warning: index `{status.name}` cannot be served: {status.failure}")
    names = [status.name for status in statuses if status.index is not None]
    if statuses and not names:
        raise StoreError(
            f"no index in `{open_indexes.home}` can be served; repair one, as shown above"
        )
    return names


def _address(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    # Clients cannot connect to a wildcard address; on this machine loopback is the same.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - it is replaced
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _announce(names: Sequence[str], settings: ServiceSettings, address: str, keys: Keys) -> None:
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
    echo(f"Writes: {_writes(settings, keys)}")
    allowed = "search and write" if "write" in keys.keyless.scopes else "search"
    off = (
        f"off (no API keys): anyone who can reach this port can {allowed}; "
        f"`{settings.add_key_command}` turns it on"
    )
    echo(f"Authentication: {'on (API keys required)' if keys.needed else off}")
