"""Limits of requests: body size, body rate, requests per second, load.

A stream of lines may be as long as it likes: who reads it bounds what is in memory.

Where no key is needed it is the address that asks; behind a proxy, which has one
address, keys tell clients apart.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from time import monotonic

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from klsa_search.errors import BodyTooSlow, RateExceeded, ServiceBusy
from klsa_search.service.admission import Admission
from klsa_search.service.schemas.errors import explained

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


ALWAYS = frozenset({"/", "/health", "/health/live", "/health/ready", "/metrics"})
"""Paths that are answered under any load."""


class LoadShedder:
    """ASGI middleware that answers 503 while the queue is full."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["path"] not in ALWAYS:
            try:
                self._admission.check()
            except ServiceBusy as busy:
                await explained(busy)(scope, receive, send)
                return
        await self._app(scope, receive, send)


MOST = 10_000
"""Clients that are remembered; of more, the one that asked least lately is taken for a new one."""


class Rates:
    """A bucket of tokens for each client; to be used by one event loop.

    rate   requests a second; as many, one at least, may come at once
    clock  seconds
    """

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._size = max(1.0, rate)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.refused = 0

    def take(self, client: str) -> None:
        """Take a token for a request; RateExceeded where none is left."""
        now = self._clock()
        tokens, since = self._buckets.pop(client, (self._size, now))
        tokens = min(self._size, tokens + self._rate * (now - since))
        enough = tokens >= 1
        self._buckets[client] = (tokens - enough, now)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        if not enough:
            self.refused += 1
            raise RateExceeded(
                f"more than {self._rate:g} requests per second; send fewer",
                after=ceil((1 - tokens) / self._rate),
            )


class RateLimit:
    """ASGI middleware that refuses what comes too often; inside of `Gate`, which knows the key."""

    def __init__(self, app: ASGIApp, rates: Rates) -> None:
        self._app = app
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["path"] not in ALWAYS:
            try:
                self._rates.take(_client(scope))
            except RateExceeded as refused:
                await explained(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _client(scope: Scope) -> str:
    access = scope["state"].get("access")
    if access is not None and access.key is not None:
        return f"key {access.key}"
    client = scope.get("client")
    return client[0] if client else ""
