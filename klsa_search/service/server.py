"""Configure uvicorn, close its connections in order, and set the limits of the process."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
from collections.abc import Awaitable, Callable
from time import monotonic
from types import FrameType
from typing import Final, NoReturn

import uvicorn
from fastapi import FastAPI

from klsa_search.service.tls import Tls

GRACE: Final = 8
"""Seconds that running requests have to finish when the service stops."""

STOP_TIMEOUT: Final = GRACE + 5
"""Seconds after the signal at which a server that still runs counts as hung."""

_KEEP_ALIVE: Final = 60
"""Seconds that an idle connection is kept open."""

_STOP_DRAIN: Final = 1.0
"""Seconds that connections have for their last request when the service stops."""

_DRAIN_INTERVAL: Final = 0.05
"""Seconds between two checks for open connections."""

_HANDSHAKE: Final = 1.0
"""Seconds for TLS handshakes under way, which are not yet connections of the server."""

_DESCRIPTORS: Final = 16_384
"""File descriptors of a process: one for each connection and each array of an open index."""


class Server(uvicorn.Server):
    """A server that lets its connections end in order before it closes them.

    uvicorn alone closes idle connections at once when it stops, and so may discard a request that
    is on its way. HTTP allows to announce the end: from the moment the server no longer accepts
    connections, each answer carries `Connection: close`. Connections that are still idle at the
    end of a drain period are closed.
    """

    _drain_end = 0.0  # in seconds of `monotonic`

    def retire(self) -> None:
        """Stop without hurry: no idle connection is closed before its keep-alive timeout."""
        self._drain_end = monotonic() + _KEEP_ALIVE
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop soon, as SIGINT and SIGTERM request, even if the server is being retired."""
        self._drain_end = monotonic() + _STOP_DRAIN
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, drain the others, then close them."""
        for server in self.servers:
            server.close()
        # Requests under way have this list too.
        self.server_state.default_headers.append((b"connection", b"close"))
        handshake_end = monotonic() + (_HANDSHAKE if self.config.is_ssl else _DRAIN_INTERVAL)
        while not self.force_exit and (
            monotonic() < handshake_end
            or (self.server_state.connections and monotonic() < self._drain_end)
        ):
            await asyncio.sleep(_DRAIN_INTERVAL)
        await super().shutdown(sockets)


def make_server(
    app: FastAPI,
    *,
    tls: Tls | None = None,
    grace: float = GRACE,
    on_tick: Callable[[], Awaitable[None]] | None = None,
) -> Server:
    """Return a server for an application.

    grace    seconds that running requests have when the server stops; after that their connections
             are closed without an answer
    on_tick  called when the server accepts connections, and about once a second from then on
    """
    config = uvicorn.Config(
        app,
        loop="asyncio",  # uvloop accepts one connection in an iteration: too slow under load
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=grace,  # type: ignore[arg-type]  # a float works too
        callback_notify=on_tick,
        timeout_notify=1,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )
    if tls is not None:
        config.load()
        assert config.ssl is not None
        tls.install(config.ssl)
    return Server(config)


def raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors to what the service can use, if the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def end_process(code: int) -> NoReturn:
    """End the process while threads run, as compiled code cannot be interrupted.

    No data is lost: writes to an index are atomic.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
