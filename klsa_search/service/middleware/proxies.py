"""What trusted proxies say of a request: its client, scheme and path prefix; paths without it."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address, ip_network
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

PREFIX: Final = re.compile(r"(/[^/?#\s]+)*")
"""Path prefix under which a proxy serves, without a slash at its end."""


class TrustedProxies:
    """ASGI middleware that reads `X-Forwarded-For`, `-Proto` and `-Prefix` of some proxies.

    addresses  of the proxies, or their networks; the headers of others are ignored
    """

    def __init__(self, app: ASGIApp, addresses: Collection[str]) -> None:
        self._networks = [ip_network(address) for address in addresses]
        forwarded: Any = ProxyHeadersMiddleware(app, list(addresses))  # type: ignore[arg-type]
        self._app: ASGIApp = forwarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with the prefix as its root path."""
        if scope["type"] == "http" and self._trusts(scope):
            prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
            if prefix and PREFIX.fullmatch(prefix):
                scope["root_path"] = prefix
        await self._app(scope, receive, send)

    def _trusts(self, scope: Scope) -> bool:
        try:
            address = ip_address(scope["client"][0])
        except (TypeError, ValueError):  # a socket without addresses
            return False
        return any(address in network for network in self._networks)


def path_of(scope: Scope) -> str:
    """Return the path of a request without the prefix of a mount or of `root_path`.

    A proxy may have removed the prefix already.
    """
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path
