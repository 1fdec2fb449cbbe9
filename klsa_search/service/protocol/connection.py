"""One connection: HTTP/1.1 as uvicorn speaks it, which knows what it waits for.

A plain request is read and answered without h11 (`plain`), and refused so where the service is at
work enough. Which connections have to go, `connections` decides.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from klsa_search.service.messages.codes import ERROR_CODES
from klsa_search.service.messages.failures import failure_answer
from klsa_search.service.middleware.door import ALWAYS
from klsa_search.service.middleware.request_id import RAW_HEADER, request_id
from klsa_search.service.protocol.plain import PATHS, Plain, PlainCycle, plain, written
from klsa_search.service.protocol.together import Together

MAX_HEAD = 128 * 1024
"""Bytes of a request's head; the longest query takes 120,000, percent-encoded."""

PIECE = 2**16
"""Bytes of a body that give its sender as much time again: a stream of documents may take long."""


class Waiting(IntEnum):
    """What a connection waits for; where there are too many, the lowest goes first."""

    NOTHING = 0  # for the next request, if there is one
    REQUEST = 1  # for the rest of a request, or the first one
    READER = 2  # for the client to take its answer
    SERVICE = 3


@dataclass(frozen=True)
class Refusal:
    """An answer that is made here, for there is no request, or not all of one."""

    code: str
    message: str

    @property
    def status(self) -> int:
        """Return the HTTP status of the code."""
        return ERROR_CODES[self.code].status


LATE = Refusal("request_timeout", "the rest of the request did not arrive in time; send it again")
_BUSY = failure_answer(
    "busy",
    "the service is busy: too many requests are running; try again in a moment",
)
_BUSY_HEAD = (
    (b"content-type", b"application/json"),
    (b"content-length", str(len(_BUSY)).encode()),
    (b"retry-after", b"1"),
)


class Others(Protocol):
    """All connections of a server, as one of them sees them: see `Connections`."""

    refused: int

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait for their answers that another would wait too long."""

    def add(self, connection: Connection) -> None:
        """Take in a connection."""

    def discard(self, connection: Connection) -> None:
        """Forget a connection that was lost."""

    def count(self, before: Waiting, now: Waiting) -> None:
        """Take note of what a connection waits for."""


class Connection(H11Protocol):
    """One connection, which knows what it waits for and since when."""

    def __init__(
        self,
        others: Others,
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

    def end(self, refusal: Refusal) -> None:
        """End it; where a request has begun and has no answer yet, that is the refusal."""
        waits = self.note()
        if waits is Waiting.READER:
            self.transport.abort()
        elif waits is Waiting.NOTHING:
            self.timeout_keep_alive_handler()
        elif refusal is LATE and self.cycle is None and not self._begun():
            self.transport.close()
        else:
            self._refuse(refusal)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the shape of all failures; uvicorn's is plain text."""
        fault = sys.exception()  # whatever was found wrong; it may hold what was sent
        reason = str(fault)[:100] if fault else msg
        if getattr(fault, "error_status_hint", 0) == 431:
            reason = f"its head has more than {MAX_HEAD} bytes"
        message = f"the request is not valid HTTP/1.1 ({reason}); correct it"
        self._refuse(Refusal("bad_request", message))

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

    def _refuse(self, refusal: Refusal) -> None:
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
