"""The guard of the service: the one middleware, which every request passes.

It gives a request its ID and measures its time, and refuses it for its host, the load, its API key
or its rate. It reads the headers once, and wraps `send` once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from random import getrandbits
from time import perf_counter
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from klsa_search.errors import InvalidApiKey, KlsaError
from klsa_search.service.admission import Admission
from klsa_search.service.middleware.auth import (
    API_KEY_HEADER,
    NO_ACCESS,
    Access,
    is_file,
    needs_key,
)
from klsa_search.service.middleware.clients import ALWAYS, Hosts, Rates, address_of, path_of
from klsa_search.service.page_files import prefers_html
from klsa_search.service.schemas.errors import REQUEST_ID, error_response, failure_answer

RequestObserver = Callable[[Scope, int, float], None]
"""Called after each response with the scope of the request, the status and the seconds it took."""

_RAW_ID: Final = REQUEST_ID.lower().encode()

# Short and printable, so that an echoed ID can forge neither a header nor a log line.
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]{1,128}")

_BASIC: Final = 'Basic realm="klsa-search", charset="UTF-8"'
"""Challenge by which a browser asks for a key: only where it opens an address as a page, else it
would ask instead of the search page.
"""

_MIN_COMPRESSED: Final = 2**14
"""Bytes of an answer from which on it is compressed, if the client accepts gzip: fewer arrive in
one round trip anyway.
"""

_ACCEPTS_GZIP: Final = re.compile(r"gzip(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)

_COMPRESSION_LEVEL: Final = 4  # twice as fast as the default of 9, for 3% more bytes
_PREFLIGHT_AGE: Final = 86_400  # seconds that a browser keeps the answer to a CORS preflight


class Guard:
    """ASGI middleware that admits requests; `state` of those has ID and access.

    admission     refuses requests while its queue is full
    authenticate  returns the access of headers and a method: see `access_of`
    origins       origins of pages that may send cross-origin requests
    exposed       headers of answers that such pages may read
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        admission: Admission,
        authenticate: Callable[[Mapping[str, str], str], Access],
        rates: Rates | None = None,
        hosts: Hosts | None = None,
        origins: Collection[str] = (),
        exposed: Sequence[str] = (),
        observers: Sequence[RequestObserver] = (),
    ) -> None:
        self._app = app
        self._compressing = GZipMiddleware(app, _MIN_COMPRESSED, _COMPRESSION_LEVEL)
        self._admission = admission
        self._authenticate = authenticate
        self._rates = rates
        self._hosts = hosts
        self._observers = observers
        self._inner: ASGIApp = self._admit
        if origins:  # outside all that may refuse, so that pages can read why
            self._inner = CORSMiddleware(
                self._admit,
                allow_origins=tuple(origins),
                allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
                allow_headers=("Authorization", API_KEY_HEADER, "Content-Type", REQUEST_ID),
                expose_headers=(REQUEST_ID, "Retry-After", "WWW-Authenticate", *exposed),
                max_age=_PREFLIGHT_AGE,
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it, and call the observers; an exception is status 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = perf_counter(), 500
        headers = {  # of repeated ones the first, as Starlette's `Headers.get`
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }
        identity = headers.get("x-request-id", "")
        if not _PRINTABLE.fullmatch(identity):
            identity = f"{getrandbits(128):032x}"  # `uuid` makes a system call
        state = scope.setdefault("state", {})
        state["headers"], state["request_id"] = headers, identity
        is_head = scope["method"] == "HEAD"  # answered as GET, without the body

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (_RAW_ID, identity.encode())]
                access = state.get("access")
                if access is not None and access.by_session:  # caches ignore cookies
                    MutableHeaders(scope=message)["Cache-Control"] = "no-store"
            elif is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # A copy, as the server has to see the method HEAD.
        inner = {**scope, "method": "GET"} if is_head else scope
        try:
            await self._inner(inner, receive, send_with_id)
        finally:
            if is_head:
                scope["route"] = inner.get("route")
            seconds = perf_counter() - begin
            for observe in self._observers:
                observe(scope, status, seconds)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its access, or refuse it."""
        state, path = scope["state"], path_of(scope)
        headers: dict[str, str] = state["headers"]
        host = headers.get("host")  # HTTP/1.0, which browsers do not send, may have none
        if self._hosts is not None and host is not None and not self._hosts.allow(host):
            unknown = failure_answer(
                "unknown_host",
                f"unknown host {host[:200]!r}; use a name of the machine of the service, or start "
                "klsa-serve with --allowed-host NAME",
            )
            await unknown(scope, receive, send)
            return
        try:
            if path not in ALWAYS:
                self._admission.check()
            state["access"] = self._access(path, headers, scope)
        except KlsaError as refused:
            answer = error_response(refused)
            if isinstance(refused, InvalidApiKey) and prefers_html(headers.get("accept", "")):
                answer.headers.append("WWW-Authenticate", _BASIC)
            await answer(scope, receive, send)
            return
        accepts_gzip = _ACCEPTS_GZIP.search(headers.get("accept-encoding", ""))
        await (self._compressing if accepts_gzip else self._app)(scope, receive, send)

    def _access(self, path: str, headers: Mapping[str, str], scope: Scope) -> Access:
        """Return the access of a request; InvalidApiKey, RateExceeded."""
        try:
            access = self._authenticate(headers, scope["method"])
        except KlsaError:
            if needs_key(path):
                if self._rates is not None:  # keys cannot be tried faster than others ask
                    self._rates.take(address_of(scope))
                raise
            access = NO_ACCESS
        if self._rates is not None and path not in ALWAYS and not is_file(path):
            self._rates.take(access.client or address_of(scope))
        return access
