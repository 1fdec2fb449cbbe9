"""Errors in one shape, whatever went wrong: {"error": {"code", "message", "field"}}."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from reprlib import Repr
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from klsa_search.errors import (
    BodyTooSlow,
    ClusterFailed,
    CollectionError,
    DocumentNotFound,
    IndexBusy,
    IndexNotFound,
    InsufficientScope,
    InvalidApiKey,
    KlsaError,
    MissingExtra,
    QueryError,
    RateExceeded,
    RequestTimedOut,
    ServiceBusy,
    StoreError,
    TermNotFound,
    TooManyWrites,
    WritingRefused,
)
from klsa_search.service.messages.reading import BadJson
from klsa_search.service.middleware.request_id import HEADER, request_id

Shape = Callable[[JSONResponse], JSONResponse]
_Handler = Callable[[Request, Exception], Awaitable[JSONResponse]]

_log = logging.getLogger(__name__)

_STATUSES: tuple[tuple[type[KlsaError], int], ...] = (
    # The first that fits decides, so that the finer kinds come first.
    (IndexNotFound, 404),
    (DocumentNotFound, 404),
    (TermNotFound, 404),
    (BadJson, 400),
    (QueryError, 422),
    (CollectionError, 422),
    (InvalidApiKey, 401),
    (InsufficientScope, 403),
    (WritingRefused, 403),
    (StoreError, 503),
    (TooManyWrites, 429),
    (RateExceeded, 429),
    (ServiceBusy, 503),
    (BodyTooSlow, 408),
    (RequestTimedOut, 503),
    (ClusterFailed, 503),
    (MissingExtra, 501),
    (KlsaError, 500),
)

_MEANINGS = {
    400: "the body is not JSON",
    401: "there is no key that counts, and one is needed",
    403: "the key is not for this, or the service or the index takes no writes",
    404: "there is no such index, document or term",
    413: "the body is too long",
    415: "the body is of another content type",
    429: "more is asked than the key may, or written than can be kept: try again later",
    422: "a parameter is missing, unknown or outside its limits, or the answer too large",
    500: "a slip of the service itself",
    501: "the service lacks an optional package that this needs",
    503: "the index is there and cannot be used, there is none, or the service is too busy",
}

_REFUSALS = {
    400: ("bad_json", "the body is not JSON that can be read: correct it"),
    404: ("not_found", "there is nothing at {path}: see /docs for what there is"),
    405: ("method_not_allowed", "{method} is not for {path}: use {allowed}"),
    413: ("body_too_long", "{detail}"),
    415: ("unsupported_media_type", "{detail}"),
}

_CHALLENGE = 'Bearer realm="klsa-search"'

_BRIEF = Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 60


class Failure(BaseModel):
    """What went wrong."""

    code: str = Field(description="a stable word for programs")
    message: str = Field(description="one sentence: the thing, the fact, the next step")
    field: str | None = Field(description="the parameter at fault, if it is one")


class FailureAnswer(BaseModel):
    """The answer to every request that cannot be served."""

    error: Failure


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe these failures of a route for the OpenAPI schema."""
    return {
        status: {"model": FailureAnswer, "description": _MEANINGS[status]} for status in statuses
    }


def failure_answer(code: str, message: str, field: str | None = None) -> bytes:
    """Make the body of an answer to a request that cannot be served."""
    failure = Failure(code=code, message=message, field=field)
    return FailureAnswer(error=failure).model_dump_json().encode()


def install(
    app: FastAPI, routes: Sequence[BaseRoute], shapes: Mapping[str, Shape] | None = None
) -> None:
    """Make the application answer every failure in the one shape.

    routes  those of the routers it includes, which it may not list among its own
    shapes  how another API tells them, by what its paths begin with
    """
    app.state.routes = routes
    kinds = {
        KlsaError: _explained,
        RequestValidationError: _invalid,
        HTTPException: _refused,
        Exception: _slipped,
    }
    for kind, handler in kinds.items():
        app.add_exception_handler(kind, _shaped(handler, shapes or {}))


def _shaped(handler: _Handler, shapes: Mapping[str, Shape]) -> _Handler:
    """Have what a handler answers told in the shape of the API that was asked."""

    async def told(request: Request, error: Exception) -> JSONResponse:
        failure = await handler(request, error)
        for prefix, shape in shapes.items():
            if request.url.path.startswith(prefix):
                return shape(failure)
        return failure

    return told


def _answer(
    status: int,
    code: str,
    message: str,
    field: str | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    answer = FailureAnswer(error=Failure(code=code, message=message, field=field))
    return JSONResponse(answer.model_dump(), status, headers)


def explained(error: KlsaError) -> JSONResponse:
    """Answer one of our own errors, which explain themselves."""
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    headers = {}
    if isinstance(error, ServiceBusy | IndexBusy):
        headers["Retry-After"] = str(error.after if isinstance(error, ServiceBusy) else 1)
    if isinstance(error, InvalidApiKey):  # as RFC 6750 has it
        headers["WWW-Authenticate"] = _CHALLENGE + (', error="invalid_token"' if error.sent else "")
    if isinstance(error, InsufficientScope):
        wanted = f', error="insufficient_scope", scope="{error.scope}"'
        headers["WWW-Authenticate"] = _CHALLENGE + wanted
    if isinstance(error, BodyTooSlow) or (isinstance(error, ServiceBusy) and error.leaving):
        headers["Connection"] = "close"
    return _answer(status, error.code, error.message, error.field, headers)


async def _explained(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, KlsaError)
    return explained(error)


def invalid(error: RequestValidationError) -> JSONResponse:
    """Answer a request that does not fit the types: the first offence, by name."""
    first = error.errors()[0]
    kind, place, context = first["type"], first["loc"], first.get("ctx", {})
    if kind == "json_invalid":
        reason = f"{context['error']} at character {place[-1]}"
        return _answer(400, "bad_json", f"the body is not JSON ({reason}): correct it there")
    if "field" in context:
        return _answer(422, QueryError.code, first["msg"], str(context["field"]))
    if len(place) < 2:
        message = "the body must be a JSON object, sent with Content-Type: application/json"
        return _answer(422, QueryError.code, message)
    field = str(place[1])
    if kind == "missing":
        message = f"{field} is missing: add it"
    else:
        message = f"{field} = {_BRIEF.repr(first['input'])}: {first['msg']}"
    return _answer(422, QueryError.code, message, field)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return invalid(error)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """Answer what the framework refuses: no such path, no such method, a body too long."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, KlsaError):  # raised while FastAPI read the body
        return explained(error.__cause__)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
    code, message = _REFUSALS.get(error.status_code, ("refused", "{detail}"))
    message = message.format(
        method=request.method,
        path=request.url.path,
        allowed=headers.get("Allow", "another method"),
        detail=error.detail,
    )
    return _answer(error.status_code, code, message, headers=headers)


def _methods(request: Request) -> list[str]:
    """Methods that a path knows; a refusal itself names those of one route only."""
    known = {
        method
        for route in (*request.app.routes, *request.app.state.routes)
        if route.matches(request.scope)[0] is not Match.NONE
        for method in getattr(route, "methods", None) or ()
    }
    return sorted(known | {"HEAD"} if "GET" in known else known)


async def _slipped(request: Request, error: Exception) -> JSONResponse:
    """Answer a slip of our own; the server logs its traceback, the user gets the request's name."""
    name = request_id(request.scope)
    _log.error("request %s failed: %s: %s", name, type(error).__name__, error)
    message = f"the service failed to answer: its log tells why, under request {name}"
    # This answer is made outside of all middleware, which cannot add the header any more.
    return _answer(500, "internal", message, headers={HEADER: name})
