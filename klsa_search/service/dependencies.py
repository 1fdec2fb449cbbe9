"""What routes are made of: scopes, the index service of a request, functions of an index."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, ClassVar, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor

from klsa_search.errors import InsufficientScope
from klsa_search.service.index_service import IndexService, settings_from_client
from klsa_search.service.keys import Scope
from klsa_search.service.middleware.bodies import DEFAULT_LIMIT, BodyLimit, RequestBody
from klsa_search.service.schemas.base import RequestModel

Endpoint = Callable[..., Awaitable[Any]]


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


_CHANGING: Final = frozenset(("write", "users"))  # scopes of routes that may change something


class Route(APIRoute):
    """A route of `router_for`, whose parameter `params`, if it has one, is read from the URL.

    scopes     one of them is needed; without scopes, no key is
    tenants    whether tenant tokens are valid: the route reads documents by `IndexService.read`
               only, and nothing that it returns is of other documents
    url_model  the type of that parameter
    Scopes are checked before the body is read, as FastAPI calls dependencies only after that.
    """

    scopes: ClassVar[tuple[Scope, ...]]
    tenants: ClassVar[bool]
    body_limit: ClassVar[BodyLimit]

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        params = inspect.signature(endpoint, eval_str=True).parameters.get("params")
        self.url_model: type[RequestModel] | None = None if params is None else params.annotation
        if self.url_model is not None:
            of_url = Depends(self.url_model.of_url)
            _replace(endpoint, "params", params=Annotated[self.url_model, of_url])
        super().__init__(path, endpoint, **options)

    async def check_scopes(self, request: Request) -> None:
        """Raise InsufficientScope, or WritingRefused if no key was sent, without a scope."""
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

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request if its key has a scope."""
        answer = super().get_route_handler()

        async def admitted(request: Request) -> Response:
            await self.check_scopes(request)
            if request.method != "GET":
                body = RequestBody.of(request, self.body_limit)
                request = Request(request.scope, body)
            return await answer(request)

        return admitted


def router_for(*scopes: Scope, tenants: bool = False, body: BodyLimit = DEFAULT_LIMIT) -> APIRouter:
    """Return a router whose routes need one of the scopes, see `Route`, and limit bodies."""
    attributes = {"scopes": scopes, "tenants": tenants, "body_limit": body}
    return APIRouter(route_class=type("Limited", (Route,), attributes))


async def _service(request: Request) -> IndexService:
    return service_of(request)


Service = Annotated[IndexService, Depends(_service)]


def reading(
    *, heavy: bool = False, cost: Callable[..., float] | None = None
) -> Callable[[Callable[..., Any]], Endpoint]:
    """Return a decorator: a function of an index and of what is requested becomes an endpoint.

    It runs in a thread, for the index `name` of the path: see `IndexService.answer`.
    cost  estimates its milliseconds by the same arguments
    """

    def decorate(function: Callable[..., Any]) -> Endpoint:
        @wraps(function)
        async def endpoint(name: str, service: IndexService, **requested: Any) -> Any:
            return await service.answer(
                name,
                lambda index: function(index, **requested),
                heavy=heavy,
                cost=cost and (lambda index: cost(index, **requested)),
            )

        return _replace(endpoint, "index", name=str, service=Service)

    return decorate


def changing(function: Callable[..., Any]) -> Endpoint:
    """Return the endpoint that changes the index `name` of the path by a function of it.

    See `IndexService.write`; invalid settings are an error of the client.
    """

    @wraps(function)
    async def endpoint(name: str, service: IndexService, **requested: Any) -> Any:
        with service.writes.slot():
            return await service.write(
                name, settings_from_client()(lambda index: function(index, **requested))
            )

    return _replace(endpoint, "index", name=str, service=Service)


def get_and_post(router: APIRouter, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator that adds an endpoint with `params` as GET, and as POST with a body."""

    def decorate(endpoint: Endpoint) -> Endpoint:
        @wraps(endpoint)
        async def with_body(body: RequestModel, **requested: Any) -> Any:
            return await endpoint(params=body, **requested)

        with_body.__name__ += "_body"
        shown = path.replace(":whole", "")
        with_body.__doc__ = f"Do the same as GET {shown}, with the parameters as a JSON object."
        model = inspect.signature(endpoint, eval_str=True).parameters["params"].annotation
        _replace(with_body, "params", body=model)  # before `Route` changes the other
        router.get(path, **options)(endpoint)
        router.post(path, **options)(with_body)
        return endpoint

    return decorate


def _replace(endpoint: Endpoint, parameter: str, **replacements: object) -> Endpoint:
    """Replace a parameter of an endpoint by parameters of these names and types."""
    signature = inspect.signature(endpoint, eval_str=True)
    types = replacements | {
        name: one.annotation for name, one in signature.parameters.items() if name != parameter
    }
    vars(endpoint)["__signature__"] = signature.replace(
        parameters=[
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=type_)
            for name, type_ in types.items()
        ]
    )
    return endpoint
