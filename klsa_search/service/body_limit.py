"""A request's body may only be so long; more of it is not even kept in memory."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """ASGI middleware that ends the reading of a body above `limit` bytes with 413."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting what is read of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        left = self._limit

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                # Raised where the route reads, so that it is answered like any other failure.
                raise HTTPException(413)
            return message

        await self._app(scope, counted, send)
