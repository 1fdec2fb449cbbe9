"""klsa-serve: the service over all indexes of a home, on one address."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
import uvicorn
from fastapi import FastAPI

from klsa_search.cli.frame import debug_option, run
from klsa_search.cli.options import home_option
from klsa_search.errors import KlsaError, StoreError
from klsa_search.service import Catalog, create_app

_PATIENCE = 10
"""Seconds that requests under way are given at the end."""

_REFUSALS = {
    errno.EADDRINUSE: "it is in use: stop what uses it, or choose another with --port",
    errno.EADDRNOTAVAIL: "this machine has no such address: choose another with --host",
    errno.EACCES: "it is for the system alone: choose one above 1023 with --port",
}


@click.command()
@home_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.version_option(package_name="klsa-search")
@debug_option
def serve(home: Path, host: str, port: int) -> None:
    """Serve every index of a home over HTTP, until it is stopped (Ctrl-C or SIGTERM).

    Indexes that are built, rebuilt or deleted meanwhile are taken up within a second.
    """
    with Catalog(home) as catalog:
        statuses = catalog.statuses()
        for status in statuses:
            if status.failure is not None:
                click.echo(f"warning: {status.name} is not served: {status.failure}", err=True)
        names = [status.name for status in statuses if status.index is not None]
        if not names:
            raise StoreError(
                f"there is no index to serve in {home}: build one with "
                f"klsa-index build python-docs --name python-docs --home {home}"
            )
        with _listen(host, port) as listener:
            _announce(names, listener)
            _run(create_app(catalog), listener)


def _listen(host: str, port: int) -> socket.socket:
    """Take the address, so that it is ours before it is announced."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except socket.gaierror as failure:
        raise click.BadParameter(
            f"{host!r} cannot be found ({failure.strerror}): give a name or an address of this "
            "machine",
            param_hint="--host",
        ) from None
    except OSError as failure:
        fact = _REFUSALS.get(failure.errno or 0, f"{failure.strerror}: choose another")
        raise KlsaError(f"cannot listen on port {port} of {host}: {fact}") from failure


def _announce(names: Sequence[str], listener: socket.socket) -> None:
    """Say where it serves and what to try."""
    host, port = listener.getsockname()[:2]
    # From outside nobody can call a wildcard; on this machine the loopback stands for it.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    choice = f"&index={names[0]}" if len(names) > 1 else ""
    click.echo(f"Serving {', '.join(names)} at {address} (Ctrl-C stops it)")
    click.echo(f"Read    {address}/docs")
    click.echo(f"Try     curl '{address}/search?q=compare+floats+in+a+test&k=3{choice}'")


def _run(app: FastAPI, listener: socket.socket) -> None:
    """Serve until a signal; requests under way are finished first."""
    # uvicorn repeats the signal when it is done; to be stopped is no failure.
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=_PATIENCE
    )
    uvicorn.Server(config).run(sockets=[listener])


def _leave(*_: Any) -> NoReturn:
    raise SystemExit(0)


def main() -> None:
    """Run klsa-serve."""
    run(serve)
