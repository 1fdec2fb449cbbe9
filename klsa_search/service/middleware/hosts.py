"""Check of the Host header against DNS rebinding.

A site can resolve its name to the address of this machine after its page was loaded; its scripts
could then read all answers. Their requests have the name of that site as host.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection
from functools import lru_cache

ANY = "*"
"""Stands for all names."""

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
