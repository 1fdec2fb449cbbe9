"""Refuse requests before they are parsed while the queue is full, at a tenth of the cost."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from klsa_search.errors import ServiceBusy
from klsa_search.service.admission import Admission
from klsa_search.service.messages.failures import explained

ALWAYS = frozenset({"/", "/health", "/health/live", "/health/ready", "/metrics"})
"""Paths that are answered under any load."""


class LoadShedder:
    """ASGI middleware that answers 503 while the queue is full."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["path"] not in ALWAYS:
            try:
                self._admission.check()
            except ServiceBusy as busy:
                await explained(busy)(scope, receive, send)
                return
        await self._app(scope, receive, send)
