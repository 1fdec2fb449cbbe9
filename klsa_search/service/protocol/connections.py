"""Connections of a server: bounded in number and in how long they may dawdle.

uvicorn, up to 0.54 at least, ends a connection that stays idle between two requests, and no other:
who sends nothing, half a head or half a body, or does not take his answer, stays for ever, and
whoever opens connections enough ends the service for all. Its own `limit_concurrency` counts such
connections as load and answers 503 to everybody else. So each connection is asked here, once a
second, what it waits for; and where there are too many, who waits longest for his client goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from klsa_search.service.protocol.connection import LATE, Connection, Refusal, Waiting
from klsa_search.service.protocol.descriptors import FEWEST

IDLE = 60
"""Seconds that a connection is kept between two requests."""

MOMENT = 1.0
"""Seconds after an answer in which the next request is likely to be on its way."""

_SHARE = 32
"""Of the connections there may be, one in so many goes besides where there is no room."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What clients may use up.

    receiving  seconds to send a request, or another `PIECE` of its body
    sending    seconds in which nothing more of an answer is taken
    unsent     bytes of answers that are not taken, of all connections together
    """

    receiving: float = 15.0
    sending: float = 30.0
    unsent: int = 2**28


_FULL = Refusal("busy", "too many open connections; close some, and try again")
_LEAVING = Refusal("busy", "the service is stopping; try again later")


class Connections:
    """All connections of a server.

    most     how many there may be, given how many there are; asked again once a second
    bounds   what clients may use up
    at_work  how many requests may wait for their answers as it is; what comes then is refused
             before it is read
    """

    def __init__(
        self,
        most: Callable[[int], int],
        bounds: Bounds | None = None,
        *,
        at_work: Callable[[], int] | None = None,
    ) -> None:
        self._most = most
        self._at_work = at_work
        self._waiting = 0  # for the service
        self.refused = 0
        self._bounds = bounds or Bounds()
        self._open: set[Connection] = set()
        self._room = FEWEST
        self._measure()

    def protocol(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:
        """Make what handles one connection; called by uvicorn."""
        return Connection(self, config, server_state, app_state, _loop)

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def add(self, connection: Connection) -> None:
        """Take in a connection; where there is no room, one goes, and it may be this one."""
        self._open.add(connection)
        self._make_room()

    def discard(self, connection: Connection) -> None:
        """Forget a connection that was lost."""
        self._open.discard(connection)

    @property
    def waiting(self) -> int:
        """How many requests wait for their answers."""
        return self._waiting

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait for their answers that another would wait too long."""
        return self._at_work is not None and self._waiting >= self._at_work()

    def count(self, before: Waiting, now: Waiting) -> None:
        """Take note of what a connection waits for."""
        self._waiting += (now is Waiting.SERVICE) - (before is Waiting.SERVICE)

    def look(self) -> None:
        """End what has dawdled for too long, and what has become too much."""
        self._measure()
        self._make_room()
        for connection in list(self._open):
            waits, seconds = connection.note(), connection.loop.time() - connection.since
            late = waits is Waiting.REQUEST and seconds > self._bounds.receiving
            if late or (waits is Waiting.READER and seconds > self._bounds.sending):
                self._end(connection, LATE)
        while sum(each.unsent() for each in self._open) > self._bounds.unsent:
            self._end(max(self._open, key=Connection.unsent), LATE)

    def leave(self) -> None:
        """End what waits for a request, or for the rest of one: the service is being stopped."""
        for connection in list(self._open):
            if connection.note() is Waiting.REQUEST:
                self._end(connection, _LEAVING)

    def abandon(self) -> None:
        """End what waits for the client to take his answer."""
        for connection in list(self._open):
            if connection.note() is Waiting.READER:
                self._end(connection, _LEAVING)

    def _measure(self) -> None:
        """Find out how many there may be; where no descriptor is left to ask with, as before."""
        with suppress(OSError):
            self._room = self._most(len(self._open))

    def _make_room(self) -> None:
        excess = len(self._open) - self._room
        if excess > 0:
            # Some more than has to be: to look at all of them for each that comes takes too long.
            going = excess + self._room // _SHARE
            for each in nsmallest(going, self._open, key=self._rank):
                self._end(each, _FULL)

    def _rank(self, connection: Connection) -> tuple[bool, Waiting, float]:
        """Who goes first; last who was answered a moment ago: he asks again just when he goes, and
        would be told nothing.
        """
        waits = connection.note()
        moment = connection.loop.time() - connection.since < MOMENT
        return waits is Waiting.NOTHING and moment, waits, connection.since

    def _end(self, connection: Connection, refusal: Refusal) -> None:
        self._open.discard(connection)
        connection.end(refusal)
