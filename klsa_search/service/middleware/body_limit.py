"""A request's body may only be so long; more of it is not even kept in memory.

A stream of lines may be as long as it likes: who reads it bounds what is in memory.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINES = "application/x-ndjson"
"""Content type of a stream of lines, each of them JSON."""

_WRITES = re.compile(r"/indexes/[^/]*/documents(/[\s\S]*)?")


def content_type(headers: Headers) -> str:
    """Content type of a request, without its parameters, in lower case."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


class BodyLimit:
    """ASGI middleware that ends the reading of a body that is too long with 413.

    limit   bytes of it
    writes  bytes of one that has documents
    """

    def __init__(self, app: ASGIApp, limit: int, writes: int) -> None:
        self._app = app
        self._limit = limit
        self._writes = writes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting what is read of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit, advice = self._limit, "shorten the query"
        if _WRITES.fullmatch(scope["path"]):
            if content_type(Headers(scope=scope)) == LINES:
                await self._app(scope, receive, send)
                return
            limit = self._writes
            advice = f"send fewer documents at a time, or any number as lines ({LINES})"
        left = limit

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                # Raised where the route reads, so that it is answered like any other failure.
                raise HTTPException(413, f"the body is larger than {limit:,} bytes; {advice}")
            return message

        await self._app(scope, counted, send)
