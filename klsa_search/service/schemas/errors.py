"""Error codes of the HTTP API, and errors as responses."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from klsa_search.core.arguments import brief
from klsa_search.core.settings_group import reason_of
from klsa_search.errors import (
    BodyTooSlow,
    IndexBusy,
    InsufficientScope,
    InvalidApiKey,
    KlsaError,
    QueryError,
    RequestTimedOut,
    ServiceBusy,
    StoreError,
)

REQUEST_ID: Final = "X-Request-ID"
"""Header of the ID of a request, in the request and in its answer."""


Handler = Callable[[Request, Exception], Awaitable[Response]]


CODES: Final[Mapping[int, tuple[str, ...]]] = {
    400: ("bad_request", "bad_json"),
    401: ("invalid_api_key",),
    403: ("insufficient_scope", "writing_refused", "analytics_off"),
    404: (
        "not_found",
        "index_not_found",
        "document_not_found",
        "term_not_found",
        "rule_not_found",
        "job_not_found",
    ),
    405: ("method_not_allowed",),
    409: ("index_exists",),
    408: ("request_timeout", "body_too_slow"),
    413: ("body_too_long",),
    415: ("unsupported_media_type",),
    421: ("unknown_host",),
    422: ("bad_query", "bad_document", "bad_collection", "partitions_unsupported"),
    429: ("rate_exceeded", "too_many_writes"),
    500: ("bad_settings", "plugin_failed", "internal"),
    501: ("missing_extra",),
    503: (
        "busy",
        "timed_out",
        "index_unusable",
        "index_busy",
        "index_damaged",
        "format_unsupported",
        "plugin_missing",
        "cluster_failed",
        "partition_missing",
    ),
}
"""The error codes of each HTTP status: docs/reference/error-codes.md says why a request gets them,
and what to do.
"""

STATUSES: Final = {code: status for status, codes in CODES.items() for code in codes}
"""The HTTP status of each error code."""


_log = logging.getLogger(__name__)

_REFUSALS = {
    400: ("bad_json", "the body is not valid JSON; correct it"),
    404: ("not_found", "no endpoint at {path}; see /docs for all endpoints"),
    405: ("method_not_allowed", "{method} is not allowed for {path}; use {allowed}"),
    413: ("body_too_long", "{detail}"),
    415: ("unsupported_media_type", "{detail}"),
}

_INTERNAL = "internal"
_CHALLENGE = 'Bearer realm="klsa-search"'


class Failure(BaseModel):
    """What went wrong."""

    code: str = Field(description="a stable word for programs")
    message: str = Field(description="one sentence: the thing, the fact, the next step")
    field: str | None = Field(description="the parameter at fault, if it is one")
    added: int = Field(0, description="documents of a file that were added before; absent if 0")


class FailureAnswer(BaseModel):
    """The answer to every request that cannot be served."""

    error: Failure


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe these failures of a route for the OpenAPI schema, by their error codes."""
    return {
        status: {"model": FailureAnswer, "description": f"error: {', '.join(CODES[status])}"}
        for status in statuses
    }


def failure_answer(
    code: str,
    message: str,
    field: str | None = None,
    headers: dict[str, str] | None = None,
    added: int = 0,
) -> JSONResponse:
    """Return an error response: a `FailureAnswer`."""
    failure = Failure(code=code, message=message, field=field, added=added)
    body = FailureAnswer(error=failure).model_dump(exclude_defaults=True)
    return JSONResponse(body, STATUSES[code], headers)


def error_response(error: KlsaError) -> JSONResponse:
    """Return the response for an error of the package."""
    code = error.code if error.code in STATUSES else _INTERNAL
    headers = {}
    if isinstance(error, ServiceBusy | IndexBusy):
        headers["Retry-After"] = str(error.after if isinstance(error, ServiceBusy) else 1)
    if isinstance(error, InvalidApiKey):  # RFC 6750
        headers["WWW-Authenticate"] = _CHALLENGE + (', error="invalid_token"' if error.sent else "")
    if isinstance(error, InsufficientScope):
        wanted = f', error="insufficient_scope", scope="{error.scope}"'
        headers["WWW-Authenticate"] = _CHALLENGE + wanted
    if isinstance(error, BodyTooSlow):
        headers["Connection"] = "close"
    return failure_answer(code, error.message, error.field, headers, error.added)


def shown_message(message: str, home: Path) -> str:
    """Return a message for a client: paths are those within the index directory.

    Other paths stay, such as that of a source: the message says which file to correct.

    >>> text = "`/srv/p/000001-1` is missing; run `klsa-index verify p --home /srv`, see /srv."
    >>> shown_message(text, Path("/srv"))
    '`p/000001-1` is missing; run `klsa-index verify p`, see the index directory.'
    >>> shown_message("run `klsa-serve --home='/my srv'`; /my srv/: not found", Path("/my srv"))
    'run `klsa-serve`; the index directory: not found'
    """
    if not home.is_absolute():
        return message
    folder = rf"(?<![\w/.-]){re.escape(str(home))}"
    end = r"/?(?![\w/-]|\.\w)"
    message = re.sub(rf" --home[ =](['\"]?){folder}{end}\1", "", message)
    message = re.sub(rf"{folder}/(?=\.?[\w-])", "", message)
    return re.sub(rf"([`'\"]?){folder}{end}\1", "the index directory", message)


def is_fault(error: Exception) -> bool:
    """Return whether an error is a fault of the service, not of the request or of its load."""
    if not isinstance(error, KlsaError):
        return True
    status = STATUSES.get(error.code, STATUSES[_INTERNAL])
    return status >= 500 and not isinstance(error, ServiceBusy | RequestTimedOut | IndexBusy)


async def _known_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, KlsaError)
    error.message = shown_message(error.message, request.app.state.resources.open_indexes.home)
    return error_response(error)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """Return the response for a request that fails validation: its first error."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    kind, location, context = first["type"], first["loc"], first.get("ctx", {})
    if kind == "json_invalid":
        reason = f"{context['error']} at character {location[-1]}"
        return failure_answer("bad_json", f"the body is not JSON ({reason}); correct it")
    if "field" in context:
        return failure_answer(QueryError.code, first["msg"], str(context["field"]))
    if len(location) < 2:
        message = "the body must be a JSON object, sent with Content-Type: application/json"
        if kind == "list_sent":
            message = f"the body: {first['msg']}"
        return failure_answer(QueryError.code, message)
    field = str(location[1])
    if kind == "missing":
        message = f"{field} is missing; add it"
    else:
        message = f"{field} = {brief(first['input'])}: {reason_of(first)}"
    return failure_answer(QueryError.code, message, field)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """Return the response for an error of the framework: unknown path, method, large body."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, KlsaError):  # raised while FastAPI read the body
        return error_response(error.__cause__)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
    code, message = _REFUSALS.get(error.status_code, ("bad_request", "{detail}"))
    message = message.format(
        method=request.method,
        path=request.scope["path"],
        allowed=headers.get("Allow", "another method"),
        detail=error.detail,
    )
    return failure_answer(code, message, headers=headers)


def _methods(request: Request) -> list[str]:
    """Return all methods of a path; the error has only those of one route."""
    methods = {
        method
        for route in request.app.routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in getattr(route, "methods", None) or ()
    }
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


async def _system_error(request: Request, error: Exception) -> JSONResponse:
    """Log what the system refused, such as opening a file; return a response without paths."""
    identity = request.state.request_id
    _log.error("request %s failed: %s", identity, error, exc_info=error)
    reason = getattr(error, "strerror", None) or (
        "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    )
    message = f"the system refused a step: {reason}; see the log of the service for {identity}"
    return failure_answer(StoreError.code, message)


async def _disconnected(_: Request, __: Exception) -> Response:
    """Return the status 499 for the log and the metrics; the client has left."""
    return Response(status_code=499)


async def internal_error(request: Request, error: Exception) -> JSONResponse:
    """Log a bug, and return a response with the request ID; the server logs the traceback."""
    identity = request.state.request_id
    _log.error("request %s failed: %s: %s", identity, type(error).__name__, error)
    message = f"internal error (a bug); see the log of the service for request {identity}"
    # The header is set here: this response does not pass through the middleware.
    return failure_answer(_INTERNAL, message, headers={REQUEST_ID: identity})


HANDLERS: Final[Mapping[Any, Handler]] = {
    KlsaError: _known_error,
    RequestValidationError: _invalid,
    HTTPException: _refused,
    OSError: _system_error,
    MemoryError: _system_error,
    ClientDisconnect: _disconnected,
}
"""Functions that return the response for an error, by its kind."""


async def answer_to(request: Request, error: Exception) -> Response:
    """Return the response for an error; raise it if it is a bug."""
    for kind in type(error).__mro__:
        if kind in HANDLERS:
            return await HANDLERS[kind](request, error)
    raise error
