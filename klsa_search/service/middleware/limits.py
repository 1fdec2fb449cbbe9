"""Rate limits of clients: requests per second.

A client is an API key or, without keys, an address; clients behind one proxy need keys to have
limits of their own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from time import monotonic

from starlette.types import Scope

from klsa_search.errors import RateExceeded

ALWAYS = frozenset({"/", "/health", "/health/live", "/health/ready", "/metrics"})
"""Paths that are answered under any load."""

MAX_CLIENTS = 10_000
"""Maximum number of token buckets; the least recently used one is dropped."""


class Rates:
    """A token bucket for each client; for use by one event loop.

    rate   requests per second
    clock  returns seconds
    burst  size of the bucket, at least 1; by default that of a second
    """

    def __init__(
        self, rate: float, clock: Callable[[], float] = monotonic, *, burst: float | None = None
    ) -> None:
        self._rate = rate
        self._size = max(1.0, rate if burst is None else burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.refused = 0

    def take(self, client: str) -> None:
        """Take a token for a request; RateExceeded if none is left."""
        if seconds := self.wait(client):
            self.refused += 1
            raise RateExceeded(
                f"more than {self._rate:g} requests per second; send fewer", after=ceil(seconds)
            )

    def wait(self, client: str) -> float:
        """Take a token and return 0, or return the seconds after which there is one."""
        now = self._clock()
        tokens, since = self._buckets.pop(client, (self._size, now))
        tokens = min(self._size, tokens + self._rate * (now - since))
        enough = tokens >= 1
        self._buckets[client] = (tokens - enough, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1 - tokens) / self._rate


def address_of(scope: Scope) -> str:
    """Return the address that a request came from, blank if it has none."""
    client = scope.get("client")
    return client[0] if client else ""
