"""The rate of a request's body: a client that sends too slowly does not hold its place for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from klsa_search.errors import BodyTooSlow

RATE = 4096
"""Bytes a second that a client sends at least while the service waits for them."""

WINDOW = 15.0
"""Seconds of waiting over which the rate is measured, and within which a small body has to come."""


class BodyRate:
    """ASGI middleware that ends the reading of a body that comes too slowly with BodyTooSlow.

    Only the time in which the service waits for the client counts: not that in which it writes what
    it has read.

    rate    bytes a second, on average over each window
    window  seconds
    clock   returns seconds
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        rate: float = RATE,
        window: float = WINDOW,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._app = app
        self._least = rate * window
        self._rate, self._window, self._clock = rate, window, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, measuring how fast its body comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        waited, came, is_whole = 0.0, 0, False

        async def measured() -> Message:
            nonlocal waited, came, is_whole
            if is_whole:  # what is waited for now is the end of the connection
                return await receive()
            while True:
                begun = self._clock()
                try:
                    async with asyncio.timeout(self._window - waited):
                        message = await receive()
                except TimeoutError:
                    waited, came = 0.0, self._next_window(came)
                else:
                    break
            waited += self._clock() - begun
            came += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if waited >= self._window and not is_whole:
                waited, came = 0.0, self._next_window(came)
            return message

        await self._app(scope, measured, send)

    def _next_window(self, came: int) -> int:
        """Return 0, the bytes of a new window; BodyTooSlow where too few came in the last."""
        if came < self._least:
            # Raised where the route reads, so that it is answered like any other failure.
            raise BodyTooSlow(
                f"the body arrived too slowly: less than {self._rate:g} bytes a "
                f"second over {self._window:g} s; send it faster, or in smaller "
                "requests"
            )
        return 0
