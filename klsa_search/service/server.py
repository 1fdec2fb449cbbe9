"""The server: uvicorn on one socket, until SIGINT or SIGTERM."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final, NoReturn

import uvicorn
from fastapi import FastAPI

from klsa_search.service.tls import Tls

GRACE: Final = 8
"""Seconds that requests have to finish once the service is being stopped."""

LONGEST_STOP: Final = GRACE + 5
"""Seconds after which a server that is being stopped has ended, or hangs."""

_KEEP_ALIVE: Final = 60
"""Seconds that a connection is kept between two requests."""

_DESCRIPTORS: Final = 16_384
"""File descriptors of a process: one for each connection and each array of an open index."""


def make_server(app: FastAPI, *, tls: Tls | None = None, grace: float = GRACE) -> uvicorn.Server:
    """Return a server for an application.

    grace  seconds that running requests have once the server is being stopped; the connections of
           those that take longer are closed without an answer
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="asyncio",  # uvloop accepts one connection a turn, and turns are long under load
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=grace,  # type: ignore[arg-type]  # a fraction is fine too
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
    )


def raise_descriptor_limit() -> None:
    """Allow this process as many file descriptors as it can use and may allow itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def end_process(code: int) -> NoReturn:
    """End the process although threads are running: compiled code cannot be interrupted.

    Nothing is lost: what is written to an index is on the disk as a whole, or not at all.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
