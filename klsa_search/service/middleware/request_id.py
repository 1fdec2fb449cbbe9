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

        # A copy: the server has to know that it was HEAD.
        asked = {**scope, "method": "GET"}
        try:
            await self._app(asked, receive, without_body)
        finally:
            scope["route"] = asked.get("route")


Tell = Callable[[Scope, int, float], None]
"""Takes the scope of a request, the status it was answered with, and the seconds it took."""


class Timed:
    """Times each request and tells of it; an exception that leaves it counts as a 500."""

    def __init__(self, app: ASGIApp, tells: Sequence[Tell]) -> None:
        self._app = app
        self._tells = tells

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and tell of it."""
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
            for tell in self._tells:
                tell(scope, status, seconds)


HEADER = "X-Request-ID"
RAW_HEADER = HEADER.lower().encode()

# What may be echoed: short and printable, so that it can forge neither a header nor a log line.
_PLAIN = re.compile(r"[\x21-\x7e]{1,128}")


class RequestId:
    """ASGI middleware that names requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and put its name into the head of the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = request_id(scope)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (RAW_HEADER, name.encode("ascii")),
                ]
            await send(message)

        await self._app(scope, receive, named)


def request_id(scope: Scope) -> str:
    """Name of the request: the one it came with if that is plain, else a new one; then the same."""
    state: dict[str, str] = scope.setdefault("state", {})
    if "request_id" not in state:
        given = next((value for name, value in scope["headers"] if name == RAW_HEADER), b"").decode(
            "latin-1"
        )
        state["request_id"] = given if _PLAIN.fullmatch(given) else _new()
    return state["request_id"]


def _new() -> str:
    """A name that no other request has; not by `uuid`, which asks the system and waits for it."""
    return f"{getrandbits(128):032x}"
