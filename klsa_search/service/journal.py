"""The journal: one line of JSON for each request, warning and error.

JSON has an escape for whatever could end a line or steer a terminal, and all beyond ASCII is
escaped, so that nobody can write a line of his own by what he asks for.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from klsa_search.service.request_id import request_id

_LONGEST = 1000
"""Characters of a path or query that are told."""


class Journal(logging.Handler):
    """Writes lines to a stream; what cannot be written, as on a full disk, is lost.

    As a handler it takes the warnings and errors of all that runs here.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream or sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write what was logged, with its traceback where it has one."""
        told = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            told["traceback"] = logging.Formatter().formatException(record.exc_info)
        self.write(record.levelname.lower(), told)

    def write(self, level: str, told: dict[str, Any]) -> None:
        """Write one line."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "level": level, **told})
        with suppress(OSError):
            self._stream.write(f"{line}\n")
            self._stream.flush()


class Requests:
    """ASGI middleware that writes a line for each request once it is answered.

    queries  whether to tell the query too: what people look for is theirs
    """

    def __init__(self, app: ASGIApp, journal: Journal, queries: bool) -> None:
        self._app = app
        self._journal = journal
        self._queries = queries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and tell of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = perf_counter(), 500  # what becomes of an exception

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            self._journal.write("info", self._told(scope, status, perf_counter() - begin))

    def _told(self, scope: Scope, status: int, seconds: float) -> dict[str, Any]:
        state = scope["state"]
        access = state.get("access")
        told = {
            "request": request_id(scope),
            "method": scope["method"],
            "path": scope["path"][:_LONGEST],
            "status": status,
            "ms": round(1000 * seconds, 2),
            "index": state.get("index"),
            "key": access.key if access is not None else None,
        }
        if self._queries:
            told["query"] = scope["query_string"].decode("latin-1")[:_LONGEST]
        return told
