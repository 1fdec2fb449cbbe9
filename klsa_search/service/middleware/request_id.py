"""X-Request-ID: every answer carries the name of its request, the caller's own if it sent one."""

from __future__ import annotations

import re
from random import getrandbits

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
RAW_HEADER = HEADER.lower().encode()

# What may be echoed: short and printable, so that it can forge neither a header nor a log line.
_PLAIN = re.compile(r"[\x21-\x7e]{1,128}")


class RequestId:
    """ASGI middleware that names requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and put its name into the head of the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = request_id(scope)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (RAW_HEADER, name.encode("ascii")),
                ]
            await send(message)

        await self._app(scope, receive, named)


def request_id(scope: Scope) -> str:
    """Name of the request: the one it came with if that is plain, else a new one; then the same."""
    state: dict[str, str] = scope.setdefault("state", {})
    if "request_id" not in state:
        given = next((value for name, value in scope["headers"] if name == RAW_HEADER), b"").decode(
            "latin-1"
        )
        state["request_id"] = given if _PLAIN.fullmatch(given) else _new()
    return state["request_id"]


def _new() -> str:
    """A name that no other request has; not by `uuid`, which asks the system and waits for it."""
    return f"{getrandbits(128):032x}"
