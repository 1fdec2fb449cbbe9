"""ASGI middleware that tells of each request once it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
