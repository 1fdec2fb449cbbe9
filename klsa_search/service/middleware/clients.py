"""The client of a request: the name it calls, the proxies in between, its address and rate.

The Host header is checked against DNS rebinding: a site can resolve its name to the address of this
machine after its page was loaded; its scripts could then read all answers. Their requests have the
name of that site as host.

A client is an API key or, without keys, an address; clients behind one proxy need keys to have
rate limits of their own.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections import OrderedDict
from collections.abc import Callable, Collection
from functools import lru_cache
from math import ceil
from time import monotonic
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from klsa_search.errors import RateExceeded

ANY = "*"  # stands for all names
_HOST = re.compile(r"(?P<name>\[[^\]]*\]|[^:]*)(:\d*)?")


class Hosts:
    """The names that a service is reached by.

    IP addresses, localhost and its subdomains are always allowed, as no other site can own them;
    Starlette's TrustedHostMiddleware has no such rule.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(_plain(name) for name in names)
        self.allow = lru_cache(maxsize=256)(self._allow)

    def _allow(self, host: str) -> bool:
        """Return whether requests with this Host header are answered."""
        name = name_in(host)
        return name is not None and (name in self._names or _is_local(name))


def name_in(host: str) -> str | None:
    """Return the name of a Host header in lower case, without port and brackets, or None."""
    match = _HOST.fullmatch(host)
    return None if match is None or not match["name"] else _plain(match["name"])


def names_of_this_machine() -> set[str]:
    """Return the host names of this machine; the full one may need a DNS query."""
    return {socket.gethostname(), socket.getfqdn()}


def _plain(name: str) -> str:
    return name.strip("[]").lower().removesuffix(".")


def _is_local(name: str) -> bool:
    """Return whether a name is an IP address or localhost, which no other site can own."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)  # accepts a zone in IPv6 addresses
    except ValueError:
        return False
    return True


PREFIX: Final = re.compile(r"(/[\w.~%@:+-]+)*", re.ASCII)
"""Path prefix under which a proxy serves, without a slash at its end. A proxy may pass on that of a
client, and /docs has it in its script.
"""


class TrustedProxies(ProxyHeadersMiddleware):
    """ASGI middleware that reads `X-Forwarded-Prefix` of trusted proxies, too."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, with the prefix as its root path."""
        client = (scope.get("client") or ("",))[0]  # a socket may have no addresses
        if scope["type"] == "http" and client in self.trusted_hosts:
            prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
            if prefix and PREFIX.fullmatch(prefix):
                scope["root_path"] = prefix
                scope["path"] = prefix + path_of(scope)  # as servers do with theirs
        await super().__call__(scope, receive, send)


def path_of(scope: Scope) -> str:
    """Return the path of a request without the prefix of a mount or of `root_path`.

    A proxy may have removed the prefix already.
    """
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path


ALWAYS = frozenset({"/", "/health", "/health/live", "/health/ready", "/metrics"})
"""Paths that are answered under any load."""

MAX_CLIENTS = 10_000  # maximum number of token buckets; the least recently used one is dropped


class Rates:
    """A token bucket for each client; for use by one event loop.

    rate   requests per second
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
