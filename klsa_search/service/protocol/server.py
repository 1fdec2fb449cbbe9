"""The server: uvicorn with bounds on connections, and an end that comes in time."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from klsa_search.service.admission import Admission
from klsa_search.service.protocol.connection import MAX_HEAD
from klsa_search.service.protocol.connections import IDLE, Connections
from klsa_search.service.protocol.descriptors import accepted_at_once
from klsa_search.service.protocol.tls import Tls

LEAVING = 8.0
"""Seconds that requests at work are given once the service is to stop."""

WATCH_INTERVAL = 1.0
"""Seconds between two checks of the open connections."""

_LAST = 4
"""Seconds after that until uvicorn ends whatever there may be left."""

GRACE = LEAVING + _LAST + 3.0
"""Seconds after which a server that was to stop has ended, or hangs."""

_BACKLOG = 2048
"""Connections that the system keeps for us to accept."""

_log = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """Serves an application on sockets until SIGINT or SIGTERM; a second signal ends at once.

    At the first, requests that wait are refused, and those at work get so many seconds.
    `alone` says whether no other process accepts on the same sockets.
    """

    def __init__(
        self,
        app: FastAPI,
        admission: Admission,
        *others: Admission,
        connections: Connections,
        tls: Tls | None = None,
        alone: bool = True,
        leaving: float = LEAVING,
    ) -> None:
        self._admissions = (admission, *others)
        self._connections = connections
        self._leaving = leaving
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=self._connections.protocol,  # type: ignore[arg-type]  # it is only called
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                proxy_headers=False,
                backlog=accepted_at_once() if alone else 1,  # else one takes what is for all
                timeout_keep_alive=IDLE,
                timeout_graceful_shutdown=round(leaving) + _LAST,
                h11_max_incomplete_event_size=MAX_HEAD,
                ssl_certfile=tls.certificate if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and look after them from now on."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)  # asyncio takes the size of a batch for this too
        self._watcher = asyncio.create_task(self._watch())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse what waits, give what is at work its time, and end."""
        for admission in self._admissions:
            admission.refuse()
        self._connections.leave()
        asyncio.get_running_loop().call_later(self._leaving, self._give_up)
        await super().shutdown(sockets)
        self._watcher.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal: the first asks for the end, the second is it."""
        if self.should_exit:
            os._exit(128 + sig)
        super().handle_exit(sig, frame)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            try:
                self._connections.look()
            except Exception:  # noqa: BLE001 - else a slip here ends the watch, and nobody knows
                _log.exception("connections could not be checked; will retry")

    def _give_up(self) -> None:
        for admission in self._admissions:
            admission.abandon()
        self._connections.abandon()


def end(code: int) -> None:
    """End the process although threads are at work: compiled code cannot be interrupted.

    Nothing is lost by it: what is written to an index is on the disk as a whole, or not at all.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
