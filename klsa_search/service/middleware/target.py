"""Targets: a request may name the whole address, `GET http://host/path`, and not the path alone.

Proxies are asked so, and every server has to accept it (RFC 9112, 3.2.2); what it names as host
counts, and the Host header does not.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_ABSOLUTE = re.compile(rb"https?://(?P<host>[^/?#]*)(?P<path>[^?#]*)", re.IGNORECASE)


class AbsoluteTarget:
    """ASGI middleware that takes the host out of such a target."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as if it had named the path and the host apart."""
        target = scope.get("raw_path") or b""
        found = _ABSOLUTE.match(target) if scope["type"] == "http" else None
        if found:
            headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
            path = found["path"] or b"/"
            scope = {
                **scope,
                "headers": [(b"host", found["host"]), *headers],
                "path": unquote(path.decode("ascii")),
                "raw_path": path,
            }
        await self._app(scope, receive, send)
