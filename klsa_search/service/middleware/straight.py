"""The straight way to an endpoint that reads its request by itself.

FastAPI looks for a route in every router twice, solves dependencies and keeps two stacks of what is
to be closed; for an endpoint that wants none of it that takes longer than all else it does here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from klsa_search.errors import KlsaError
from klsa_search.service.messages.failures import explained, invalid

Answering = Callable[[Request], Awaitable[Response]]


class _Route(NamedTuple):
    """What metrics and journal tell of the route."""

    path_format: str


class Straight:
    """ASGI middleware that answers GET of some paths before all routers, which declare them too."""

    def __init__(self, app: ASGIApp, paths: Mapping[str, Answering]) -> None:
        self._app = app
        self._paths = {path: (_Route(path), answering) for path, answering in paths.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        asked = scope["type"] == "http" and scope["method"] == "GET"
        found = self._paths.get(scope["path"]) if asked else None
        if found is None:
            await self._app(scope, receive, send)
            return
        scope["route"], answering = found
        request = Request(scope, receive, send)
        try:
            answer = await answering(request)
        except KlsaError as error:
            answer = explained(error)
        except RequestValidationError as error:
            answer = invalid(error)
        await answer(scope, receive, send)
