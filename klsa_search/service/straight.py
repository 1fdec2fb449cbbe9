"""The straight way to an endpoint that reads its request by itself.

FastAPI looks for a route in every router twice, solves dependencies and keeps two stacks of what is
to be closed; for an endpoint that wants none of it that takes longer than all else it does here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send


class Straight(Route):
    """GET of a path without parameters, before all routers; one of these declares it as well."""

    def __init__(self, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
        super().__init__(path, answer, methods=["GET"], include_in_schema=False)
        self._answer = answer
        self._found: dict[str, Any] = {"endpoint": answer, "path_params": {}, "route": self}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Say whether it is asked for; other methods are left to the routers."""
        if scope["type"] == "http" and scope["path"] == self.path and scope["method"] == "GET":
            return Match.FULL, self._found
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        answer = await self._answer(Request(scope, receive, send))
        await answer(scope, receive, send)
