"""Rates: so many requests a second from one key, whatever the others ask.

Where no key is needed it is the address that asks; behind a proxy, which has one
address, keys tell clients apart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from klsa_search.errors import RateExceeded
from klsa_search.service.messages.failures import explained
from klsa_search.service.middleware.load_shedder import ALWAYS

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
