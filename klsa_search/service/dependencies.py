"""What routes depend on: the index service with the access of a request, scopes, content types."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final, get_type_hints

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException

from klsa_search.errors import InsufficientScope
from klsa_search.service.index_service import IndexService
from klsa_search.service.keys import Scope
from klsa_search.service.middleware.bodies import content_type
from klsa_search.service.schemas.base import RequestModel


class _RestOfPath(PathConvertor):
    """The rest of a path, with slashes and line ends, as in IDs of documents."""

    regex = r"[\s\S]*"


register_url_convertor("whole", _RestOfPath())


def service_of(request: Request) -> IndexService:
    """Return the service of the application with the access of a request."""
    state = request.scope["state"]
    service: IndexService | None = state.get("service")
    if service is None:
        # Raises KeyError, and so refuses, if the guard did not set the access.
        service = IndexService(request.app.state, state["access"], state)
        state["service"] = service
    return service


_CHANGING: Final = frozenset(("write", "users"))
"""Scopes of routes that may change something."""


class Requires:
    """Dependency of a route: its key needs one of the scopes; without scopes, no key is needed.

    tenants  whether tenant tokens are valid: the route reads documents by `IndexService.read` only,
             and nothing that it returns is of other documents
    InsufficientScope; WritingRefused if no key was sent.
    """

    def __init__(self, *scopes: Scope, tenants: bool = False) -> None:
        self.scopes = scopes
        self.tenants = tenants

    async def __call__(self, request: Request) -> None:
        """Refuse a request without one of the scopes."""
        if not self.scopes:
            return
        if request.method != "GET" and not _CHANGING.isdisjoint(self.scopes):
            request.state.is_change = True  # for the audit log, refused or not
        service = service_of(request)
        if not service.open_indexes.is_listed:
            await asyncio.to_thread(service.open_indexes.list_again)
        if service.access.filters is not None and not self.tenants:
            raise InsufficientScope(
                "a tenant token cannot be used here; it can search, suggest, search facets, "
                "get, compare and explain documents, and send events; use an API key",
                scope=self.scopes[0],
            )
        service.require(*self.scopes)


class Route(APIRoute):
    """A route whose parameter `params`, if its function has one, is read from the URL.

    url_model  the type of that parameter
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.url_model: type[RequestModel] | None = get_type_hints(endpoint).get("params")
        if self.url_model is not None:
            of_url = Depends(self.url_model.of_url)
            endpoint.__annotations__["params"] = Annotated[self.url_model, of_url]
        super().__init__(path, endpoint, **options)


def router_for(*scopes: Scope, tenants: bool = False) -> APIRouter:
    """Return a router whose routes need one of the scopes: see `Requires`."""
    required = Depends(Requires(*scopes, tenants=tenants))
    return APIRouter(dependencies=[required], route_class=Route)


async def _service(request: Request) -> IndexService:
    return service_of(request)


Service = Annotated[IndexService, Depends(_service)]


def refuse_other_types(request: Request, *kinds: str) -> None:
    """Raise HTTPException unless the content type of the body is one of these."""
    if content_type(request.headers) not in kinds:
        media_type = request.headers.get("content-type", "none")[:60]
        wanted = " or ".join(kinds)
        raise HTTPException(
            415, f"content type {media_type} is not supported; send Content-Type: {wanted}"
        )
