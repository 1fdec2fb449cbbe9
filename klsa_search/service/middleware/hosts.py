"""Hosts: only requests to a name of this machine are answered.

A page of another site may give its own name the address of this machine, after it was loaded (DNS
rebinding); its scripts could then read all answers. Their requests carry the name of that site.
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

    IP addresses, localhost and the names below it are always allowed, as no other site can own
    them; Starlette's TrustedHostMiddleware has no such rule. A request without a host is passed
    on: it is HTTP/1.0, which no browser sends.
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
    """Return the name in a Host header, plain: without port, brackets, upper case; None if none."""
    found = _HOST.fullmatch(host)
    return None if found is None or not found["name"] else _plain(found["name"])


def names_of_this_machine() -> set[str]:
    """Return what this machine calls itself. The full name may take a question to a name server."""
    return {socket.gethostname(), socket.getfqdn()}


def _plain(name: str) -> str:
    return name.strip("[]").lower().removesuffix(".")


def _is_local(name: str) -> bool:
    """Return whether no other site can have that name: an address, or localhost."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)  # which knows zones, and those of version 6 alone
    except ValueError:
        return False
    return True
