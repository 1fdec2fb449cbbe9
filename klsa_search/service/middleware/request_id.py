"""Request IDs, timing, and HEAD requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import getrandbits
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Head:
    """ASGI middleware that answers HEAD as GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # A copy, as the server has to see the method HEAD.
        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, without_body)
        finally:
            scope["route"] = as_get.get("route")


RequestObserver = Callable[[Scope, int, float], None]
"""Called after each response with the scope of the request, the status and the seconds it took."""


class Timed:
    """ASGI middleware that times requests for observers; an exception counts as status 500."""

    def __init__(self, app: ASGIApp, observers: Sequence[RequestObserver]) -> None:
        self._app = app
        self._observers = observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, then call the observers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            seconds = perf_counter() - begin
            for observe in self._observers:
                observe(scope, status, seconds)


HEADER = "X-Request-ID"
RAW_HEADER = HEADER.lower().encode()

# Short and printable, so that an echoed ID can forge neither a header nor a log line.
_PLAIN = re.compile(r"[\x21-\x7e]{1,128}")


class RequestId:
    """ASGI middleware that gives each request an ID."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add its ID to the headers of the response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identity = request_id(scope)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (RAW_HEADER, identity.encode("ascii")),
                ]
            await send(message)

        await self._app(scope, receive, send_with_id)


def request_id(scope: Scope) -> str:
    """Return the ID of a request: that of its header if printable and short, else a new one."""
    state: dict[str, str] = scope.setdefault("state", {})
    if "request_id" not in state:
        header = next(
            (value for name, value in scope["headers"] if name == RAW_HEADER), b""
        ).decode("latin-1")
        state["request_id"] = header if _PLAIN.fullmatch(header) else _new()
    return state["request_id"]


def _new() -> str:
    """Return a random ID; `uuid` makes a system call and is slower."""
    return f"{getrandbits(128):032x}"
