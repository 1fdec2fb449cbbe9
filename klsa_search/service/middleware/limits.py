"""Limits of requests: body size, body rate, requests per second, load.

A stream of lines has no maximum size, as its reader limits what is in memory. A client is an API
key or, without keys, an address; clients behind one proxy need keys to have limits of their own.
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
from klsa_search.service.middleware.paths import path_of
from klsa_search.service.schemas.errors import error_response

LINES = "application/x-ndjson"
"""Content type of a stream of lines, each of them JSON."""

_DOCUMENTS = re.compile(r"/indexes/[^/]*/(documents(/[\s\S]*)?|sync)")
_RULES = re.compile(r"/indexes/[^/]*/(synonyms|rules(/[\s\S]*)?)")


def content_type(headers: Headers) -> str:
    """Return the content type of a request in lower case, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


class BodyLimit:
    """ASGI middleware that answers 413 to a body that is too large.

    limit   maximum bytes of a body
    writes  maximum bytes of a body with documents, synonyms or rules
    """

    def __init__(self, app: ASGIApp, limit: int, writes: int) -> None:
        self._app = app
        self._limit = limit
        self._writes = writes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and count the bytes of its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit, advice = self._limit, "shorten the query"
        if _RULES.fullmatch(path_of(scope)):
            limit, advice = self._writes, "send fewer, or shorter ones"
        elif _DOCUMENTS.fullmatch(path_of(scope)):
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
                # Raised where the route reads the body, so error handlers answer it.
                raise HTTPException(413, f"the body is larger than {limit:,} bytes; {advice}")
            return message

        await self._app(scope, counted, send)


RATE = 4096
"""Minimum bytes per second of a body while the service waits for it."""

WINDOW = 15.0
"""Seconds of waiting over which the rate is measured; a small body has to arrive within them."""


class BodyRate:
    """ASGI middleware that answers BodyTooSlow to a body that arrives too slowly.

    Only the time in which the service waits for the client counts, not that of its own writes.

    rate    minimum bytes per second, averaged over each window
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
        self._min_bytes = rate * window
        self._rate, self._window, self._clock = rate, window, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and measure the rate of its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        waited, received, complete = 0.0, 0, False

        async def measured() -> Message:
            nonlocal waited, received, complete
            if complete:  # the next message is the end of the connection
                return await receive()
            while True:
                begin = self._clock()
                try:
                    async with asyncio.timeout(self._window - waited):
                        message = await receive()
                except TimeoutError:
                    waited, received = 0.0, self._next_window(received)
                else:
                    break
            waited += self._clock() - begin
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if waited >= self._window and not complete:
                waited, received = 0.0, self._next_window(received)
            return message

        await self._app(scope, measured, send)

    def _next_window(self, received: int) -> int:
        """Return 0, the bytes of a new window; BodyTooSlow if the last one had too few."""
        if received < self._min_bytes:
            # Raised where the route reads the body, so error handlers answer it.
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
        if scope["type"] == "http" and path_of(scope) not in ALWAYS:
            try:
                self._admission.check()
            except ServiceBusy as busy:
                await error_response(busy)(scope, receive, send)
                return
        await self._app(scope, receive, send)


MAX_CLIENTS = 10_000
"""Maximum number of token buckets; the least recently used one is dropped."""


class Rates:
    """A token bucket for each client; for use by one event loop.

    rate   requests per second, and size of the bucket, at least 1
    clock  returns seconds
    """

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._size = max(1.0, rate)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.refused = 0

    def take(self, client: str) -> None:
        """Take a token for a request; RateExceeded if none is left."""
        now = self._clock()
        tokens, since = self._buckets.pop(client, (self._size, now))
        tokens = min(self._size, tokens + self._rate * (now - since))
        enough = tokens >= 1
        self._buckets[client] = (tokens - enough, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if not enough:
            self.refused += 1
            raise RateExceeded(
                f"more than {self._rate:g} requests per second; send fewer",
                after=ceil((1 - tokens) / self._rate),
            )


class RateLimit:
    """ASGI middleware for rate limits; inside of `ApiKeyAuth`, which sets the key."""

    def __init__(self, app: ASGIApp, rates: Rates) -> None:
        self._app = app
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and path_of(scope) not in ALWAYS:
            try:
                self._rates.take(_client(scope))
            except RateExceeded as refused:
                await error_response(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _client(scope: Scope) -> str:
    access = scope["state"].get("access")
    # Tenant tokens of one key are in the hands of many clients.
    if access is not None and access.key is not None and access.filters is None:
        return f"key {access.key}"
    return address_of(scope)


def address_of(scope: Scope) -> str:
    """Return the address that a request came from, blank if it has none."""
    client = scope.get("client")
    return client[0] if client else ""
