"""Connections: HTTP/1.1 as uvicorn speaks it, bounded in number and in how long they may dawdle.

uvicorn, up to 0.54 at least, ends a connection that stays idle between two requests, and no other:
who sends nothing, half a head or half a body, or does not take his answer, stays for ever, and
whoever opens connections enough ends the service for all. Its own `limit_concurrency` counts such
connections as load and answers 503 to everybody else. So each connection is asked here, once a
second, what it waits for; and where there are too many, who waits longest for his client goes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from heapq import nsmallest
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from klsa_search.service.messages.failures import failure_answer
from klsa_search.service.middleware.door import ALWAYS
from klsa_search.service.middleware.request_id import RAW_HEADER, request_id
from klsa_search.service.protocol.descriptors import FEWEST
from klsa_search.service.protocol.plain import PATHS, Plain, PlainCycle, plain, written
from klsa_search.service.protocol.together import Together

IDLE = 60
"""Seconds that a connection is kept between two requests."""

MOMENT = 1.0
"""Seconds after an answer in which the next request is likely to be on its way."""

MAX_HEAD = 128 * 1024
"""Bytes of a request's head; the longest query takes 120,000, percent-encoded."""

_SHARE = 32
"""Of the connections there may be, one in so many goes besides where there is no room."""

PIECE = 2**16
"""Bytes of a body that give its sender as much time again: a stream of documents may take long."""


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


class Waiting(IntEnum):
    """What a connection waits for; where there are too many, the lowest goes first."""

    NOTHING = 0  # for the next request, if there is one
    REQUEST = 1  # for the rest of a request, or the first one
    READER = 2  # for the client to take its answer
    SERVICE = 3


@dataclass(frozen=True)
class _Refusal:
    """An answer that is made here, for there is no request, or not all of one."""

    status: int
    code: str
    message: str


_LATE = _Refusal(408, "request_timeout", "the rest of the request did not come in time: send it")
_FULL = _Refusal(503, "busy", "too many connections are open: close some, and try again")
_BUSY = failure_answer(
    "busy",
    "the service is busy (as many requests as it takes are under way): try again in a moment",
)
_BUSY_HEAD = (
    (b"content-type", b"application/json"),
    (b"content-length", str(len(_BUSY)).encode()),
    (b"retry-after", b"1"),
)
_LEAVING = _Refusal(503, "busy", "the service is being stopped: try again later")


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
                self._end(connection, _LATE)
        while sum(each.unsent() for each in self._open) > self._bounds.unsent:
            self._end(max(self._open, key=Connection.unsent), _LATE)

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

    def _end(self, connection: Connection, refusal: _Refusal) -> None:
        self._open.discard(connection)
        connection.end(refusal)


class Connection(H11Protocol):
    """One connection, which knows what it waits for and since when."""

    def __init__(
        self,
        others: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        super().__init__(config, server_state, app_state, loop)
        self._others = others
        self._waits = Waiting.REQUEST
        self._unsent = 0
        self._lost = False
        self._came = 0  # bytes since the time was counted anew
        self._ahead = b""  # what came while a plain request was answered
        self.since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take in a new connection."""
        super().connection_made(Together(transport, self.loop))  # type: ignore[arg-type]
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._others.discard(self)
        self._others.count(self._waits, Waiting.NOTHING)
        self._lost = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in some bytes; what they complete is on its way to the application after it."""
        if self._ahead or (isinstance(self.cycle, PlainCycle) and not self.cycle.response_complete):
            self._ahead += data
            self.flow.pause_reading()
            return
        asked = plain(data) if self._is_between() else None
        if asked is not None and self._others.is_full and asked.path not in ALWAYS:
            self._turn_away(asked)
            return
        if asked is not None and asked.path in PATHS:
            self._take(asked)
        else:
            super().data_received(data)
        self.note()
        self._came += len(data)
        if self._came >= PIECE and self._in_body():
            self._came, self.since = 0, self.loop.time()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._came = 0
        self.note()
        if self._ahead:
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Take in what came while a plain request was answered."""
        ahead, self._ahead = self._ahead, b""
        if not self.transport.is_closing():
            self.data_received(ahead)

    def note(self) -> Waiting:
        """Tell what the connection waits for, and remember since when."""
        waits, unsent = self._what(), self.unsent()
        if waits is not self._waits or unsent != self._unsent:
            if not self._lost:
                self._others.count(self._waits, waits)
            self._waits, self._unsent, self.since = waits, unsent, self.loop.time()
        return waits

    def unsent(self) -> int:
        """Bytes of answers that the client has not taken."""
        return self.transport.get_write_buffer_size()

    def end(self, refusal: _Refusal) -> None:
        """End it; where a request has begun and has no answer yet, that is the refusal."""
        waits = self.note()
        if waits is Waiting.READER:
            self.transport.abort()
        elif waits is Waiting.NOTHING:
            self.timeout_keep_alive_handler()
        elif refusal is _LATE and self.cycle is None and not self._begun():
            self.transport.close()
        else:
            self._refuse(refusal)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the shape of all failures; uvicorn's is plain text."""
        fault = sys.exception()  # whatever was found wrong; it may hold what was sent
        reason = str(fault)[:100] if fault else msg
        if getattr(fault, "error_status_hint", 0) == 431:
            reason = f"its head has more than {MAX_HEAD} bytes"
        message = f"the request is no HTTP/1.1 ({reason}): mend it"
        self._refuse(_Refusal(400, "bad_request", message))

    def _take(self, asked: Plain) -> None:
        """Have a plain request answered, as uvicorn has those that h11 read."""
        self._unset_keepalive_if_required()
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "method": "GET",
            "root_path": self.root_path,
            "path": asked.path,
            "raw_path": asked.path.encode("ascii"),
            "query_string": asked.query,
            "headers": asked.headers,
            "state": self.app_state.copy(),
        }
        self.cycle = PlainCycle(
            scope=self.scope,
            conn=self.conn,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            on_response=self.on_response_complete,
        )
        task = self.loop.create_task(self.cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _turn_away(self, asked: Plain) -> None:
        """Refuse a plain request.

        Costs a twentieth of an answer by way of h11 and the application, which is not enough where
        five times as much is asked as can be answered.
        """
        self._unset_keepalive_if_required()
        name = (RAW_HEADER, request_id({"headers": asked.headers}).encode("ascii"))
        head = [*self.server_state.default_headers, *_BUSY_HEAD, name]
        self.transport.write(written(503, head, _BUSY))
        self._others.refused += 1
        self.since = self.loop.time()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _what(self) -> Waiting:
        if self.unsent():
            return Waiting.READER
        if self.cycle is not None and not self.cycle.response_complete:
            # Paused: so much of the body is here that the service has to take some first.
            awaited = self.cycle.more_body and not self.flow.read_paused
            return Waiting.REQUEST if awaited else Waiting.SERVICE
        # Answered, and yet the rest of a body that nobody wanted is to come.
        unwanted = self.conn.their_state is h11.SEND_BODY
        begun = self.cycle is None or unwanted or self._begun()
        return Waiting.REQUEST if begun else Waiting.NOTHING

    def _is_between(self) -> bool:
        """Whether a request may begin here, the first one too."""
        idle = self.conn.our_state is h11.IDLE and self.conn.their_state is h11.IDLE
        return idle and not self._begun()

    def _in_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body

    def _begun(self) -> bool:
        """Whether a part of a head is here."""
        return bool(self.conn.trailing_data[0])

    def _refuse(self, refusal: _Refusal) -> None:
        """Answer without the application, unless an answer was begun, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = failure_answer(refusal.code, refusal.message)
            headers = [
                *self.server_state.default_headers,
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
                *([(b"retry-after", b"1")] if refusal.status == 503 else []),
            ]
            reason = STATUS_PHRASES[refusal.status]
            start = h11.Response(status_code=refusal.status, headers=headers, reason=reason)
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        if self.cycle is not None:  # which may be waiting for the rest of a body
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        if self.unsent():  # nobody reads it
            self.transport.abort()
