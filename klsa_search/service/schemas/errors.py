"""Error codes of the HTTP API, and errors as responses.

docs/reference/error-codes.md is generated from this table: see tools/error_codes_page.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from reprlib import Repr
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

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


class ErrorCode(NamedTuple):
    """Description of an error code.

    status  HTTP status
    cause   why a request gets it
    fix     what the client or the operator of the service can do
    """

    status: int
    cause: str
    fix: str


ERROR_CODES: Final = MappingProxyType(
    {
        "bad_request": ErrorCode(
            400,
            "The request is not valid HTTP/1.1.",
            "Correct the request, or shorten its headers.",
        ),
        "bad_json": ErrorCode(
            400, "The body is not valid JSON.", "Correct the body at the character that is named."
        ),
        "invalid_api_key": ErrorCode(
            401,
            "The service requires an API key, and the request has none, or one that is unknown, "
            "revoked or expired.",
            "Send `Authorization: Bearer KEY` with a key created by `klsa-keys add NAME`.",
        ),
        "insufficient_scope": ErrorCode(
            403,
            "The API key lacks the scope, or is restricted to other indexes.",
            "Use a key with the scope in `WWW-Authenticate`: `klsa-keys add NAME --scope SCOPE`.",
        ),
        "writing_refused": ErrorCode(
            403,
            "The service or the index is read-only, the index is full, or writes need an API key.",
            "Follow the message: create a key with scope write, start `klsa-serve` with "
            "`--writable`, or rebuild the index with the spectral function gvsm.",
        ),
        "analytics_off": ErrorCode(
            403,
            "The service records no searches and clicks.",
            "Start `klsa-serve` with `--analytics`.",
        ),
        "not_found": ErrorCode(
            404, "The path is not an endpoint.", "See `/docs` for all endpoints."
        ),
        "index_not_found": ErrorCode(
            404,
            "The service has no index or alias of this name.",
            "Choose one of `GET /indexes`, or build it.",
        ),
        "document_not_found": ErrorCode(
            404, "The index has no document with this ID.", "Check the ID."
        ),
        "term_not_found": ErrorCode(
            404,
            "No document of the index contains the term.",
            "Check the spelling; `POST /indexes/{name}/analyze` shows the terms of a text.",
        ),
        "rule_not_found": ErrorCode(
            404, "The index has no rule with this ID.", "List rules with `GET /indexes/NAME/rules`."
        ),
        "job_not_found": ErrorCode(
            404,
            "The service has no job with this ID, or it was forgotten: the last 100 are kept.",
            "List jobs with `GET /jobs`.",
        ),
        "method_not_allowed": ErrorCode(
            405, "The path does not support this method.", "Use one of the methods in `Allow`."
        ),
        "index_exists": ErrorCode(
            409,
            "An index or alias has this name already.",
            "Choose another name, or delete the index with `DELETE /indexes/{name}`.",
        ),
        "request_timeout": ErrorCode(
            408, "The rest of the request did not arrive in time.", "Send the request again."
        ),
        "body_too_slow": ErrorCode(
            408, "The body arrived too slowly.", "Send it faster, or in several requests."
        ),
        "body_too_long": ErrorCode(
            413, "The body is too large.", "Send less at a time, or documents as lines of JSON."
        ),
        "unsupported_media_type": ErrorCode(
            415, "The content type is not supported.", "Send the content type that is named."
        ),
        "unknown_host": ErrorCode(
            421,
            "The `Host` header is not a name of this machine.",
            "Use a name of the machine, or start `klsa-serve` with `--allowed-host NAME`.",
        ),
        "bad_query": ErrorCode(
            422,
            "A parameter is missing, unknown or invalid, or the answer would be too large.",
            "Correct the parameter in `field`.",
        ),
        "bad_document": ErrorCode(
            422, "A document or its ID is not valid.", "Correct the document, then send it again."
        ),
        "bad_collection": ErrorCode(
            422, "The documents or judgements are not valid.", "Correct them as the message says."
        ),
        "partitions_unsupported": ErrorCode(
            422,
            "The index has partitions, which do not support the call.",
            "Leave it out, or build the index with one partition: docs/guides/partitions.md.",
        ),
        "rate_exceeded": ErrorCode(
            429, "The client exceeded `--rate-limit`.", "Wait for the seconds in `Retry-After`."
        ),
        "too_many_writes": ErrorCode(
            429, "Too many writes are waiting.", "Wait for the seconds in `Retry-After`."
        ),
        "bad_settings": ErrorCode(
            500,
            "A setting or file of the service is not valid, such as its key file.",
            "See the log of the service.",
        ),
        "plugin_failed": ErrorCode(
            500,
            "A plug-in cannot be loaded, failed or returned an invalid result.",
            "Correct or reinstall the package that the message names, then restart `klsa-serve`.",
        ),
        "internal": ErrorCode(
            500,
            "A bug.",
            "Report it, with the lines of the log that have the ID in `X-Request-ID`.",
        ),
        "missing_extra": ErrorCode(
            501,
            "An optional package is not installed.",
            "Install the extra that is named: `pip install 'klsa-search[EXTRA]'`.",
        ),
        "busy": ErrorCode(
            503,
            "The service has more requests than it can answer in time.",
            "Wait for the seconds in `Retry-After`; raise `--threads` or `--queue-size`.",
        ),
        "timed_out": ErrorCode(
            503,
            "The request waited or ran longer than the service allows.",
            "Send a cheaper request, or raise `--queue-timeout` or `--request-timeout`.",
        ),
        "index_unusable": ErrorCode(
            503,
            "The index cannot be read or written, there is no index at all, or the system lacks "
            "memory, disk space or open files.",
            "Follow the message on the machine of the service.",
        ),
        "index_busy": ErrorCode(
            503,
            "Another process is changing the index.",
            "Wait for the seconds in `Retry-After`.",
        ),
        "index_damaged": ErrorCode(
            503,
            "A file of the index is missing or damaged.",
            "Run `klsa-index repair NAME`, or restore a backup.",
        ),
        "format_unsupported": ErrorCode(
            503,
            "The index has a format that this version cannot read.",
            "Rebuild the index from its source, or install the version that built it.",
        ),
        "plugin_missing": ErrorCode(
            503,
            "The index was built with a plug-in that is not installed, or in another version.",
            "Install the package that the message names, or build the index again.",
        ),
        "cluster_failed": ErrorCode(
            503, "The cluster cannot be reached, or its processes fail.", "Check `ray status`."
        ),
        "partition_missing": ErrorCode(
            503,
            "Some partitions of the index do not answer.",
            "Check the machines of the cluster, or send `partial=true` for the other partitions.",
        ),
    }
)
"""Error codes in the order of their statuses."""


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
    """Describe these failures of a route for the OpenAPI schema, by their error codes."""
    codes: dict[int | str, list[str]] = {status: [] for status in statuses}
    for code, error in ERROR_CODES.items():
        if error.status in codes:
            codes[error.status].append(code)
    return {
        status: {"model": FailureAnswer, "description": f"error: {', '.join(names)}"}
        for status, names in codes.items()
    }


def failure_answer(
    code: str,
    message: str,
    field: str | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """Return an error response."""
    answer = FailureAnswer(error=Failure(code=code, message=message, field=field))
    return JSONResponse(answer.model_dump(), ERROR_CODES[code].status, headers)


def error_response(error: KlsaError) -> JSONResponse:
    """Return the response for an error of the package."""
    code = error.code if error.code in ERROR_CODES else _INTERNAL
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
    return failure_answer(code, error.message, error.field, headers)


def shown_message(error: KlsaError, home: Path) -> str:
    """Return the message of an error for a client: paths are those within the index directory."""
    if not home.is_absolute():
        return error.message
    return error.message.replace(f"{home}/", "").replace(f"`{home}`", "the index directory")


def is_fault(error: Exception) -> bool:
    """Return whether an error is a fault of the service, not of the request or of its load."""
    if not isinstance(error, KlsaError):
        return True
    status = ERROR_CODES[error.code].status if error.code in ERROR_CODES else 500
    return status >= 500 and not isinstance(error, ServiceBusy | RequestTimedOut | IndexBusy)


async def _known_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, KlsaError)
    error.message = shown_message(error, request.app.state.resources.catalog.home)
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
        return failure_answer(QueryError.code, message)
    field = str(location[1])
    if kind == "missing":
        message = f"{field} is missing; add it"
    else:
        message = f"{field} = {_BRIEF.repr(first['input'])}: {first['msg']}"
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
        path=request.url.path,
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


async def internal_error(request: Request, error: Exception) -> JSONResponse:
    """Log a bug, and return a response with the request ID; the server logs the traceback."""
    identity = request.state.request_id
    _log.error("request %s failed: %s: %s", identity, type(error).__name__, error)
    message = f"internal error (a bug); see the log of the service for request {identity}"
    # The header is set here: this response does not pass through the middleware.
    return failure_answer(_INTERNAL, message, headers={REQUEST_ID: identity})


HANDLERS: Final[Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]]] = (
    MappingProxyType(
        {
            KlsaError: _known_error,
            RequestValidationError: _invalid,
            HTTPException: _refused,
            OSError: _system_error,
            MemoryError: _system_error,
        }
    )
)
"""Functions that return the response for an error, by its kind."""
