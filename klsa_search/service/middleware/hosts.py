"""Check of the Host header against DNS rebinding.

A site can resolve its name to the address of this machine after its page was loaded; its scripts
could then read all answers. Their requests have the name of that site as host.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from klsa_search.service.schemas.errors import failure_answer

ANY = "*"
"""Stands for all names."""

_HOST = re.compile(r"(?P<name>\[[^\]]*\]|[^:]*)(:\d*)?")


class AllowedHosts:
    """ASGI middleware that answers 421 to a request for a host that is not one of `names`.

    IP addresses, localhost and its subdomains are always allowed, as no other site can own them;
    Starlette's TrustedHostMiddleware has no such rule. A request without a host is passed on: it
    is HTTP/1.0, which browsers do not send.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(_plain(name) for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        host = Headers(scope=scope).get("host") if scope["type"] == "http" else None
        if host is None or self._allows(host):
            await self._app(scope, receive, send)
            return
        message = (
            f"unknown host {host[:200]!r}; use a name of the machine of the service, or "
            "start klsa-serve with --allowed-host NAME"
        )
        await failure_answer("unknown_host", message)(scope, receive, send)

    def _allows(self, host: str) -> bool:
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
