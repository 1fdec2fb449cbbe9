"""Origins: pages of which other sites may ask in a browser, and read what is answered (CORS)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from klsa_search.service.messages.codes import ERROR_CODES
from klsa_search.service.messages.failures import failure_answer
from klsa_search.service.middleware.request_id import HEADER

LEFT_OUT: Final = "X-Left-Out"
"""How many judgements a file has no place for."""

_DAY = 86_400
_CODE: Final = "origin_refused"


class Origins(CORSMiddleware):
    """ASGI middleware that has browsers let pages of these origins ask; `*` stands for all.

    Keys come in a header that the page sets itself, so that no page asks with what the browser
    keeps of another (cookies are not allowed).
    """

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        super().__init__(
            app,
            allow_origins=tuple(origins),
            allow_methods=("GET", "HEAD", "POST", "PUT", "DELETE"),
            allow_headers=("Authorization", "Content-Type", HEADER),
            expose_headers=(HEADER, "Retry-After", "WWW-Authenticate", LEFT_OUT),
            max_age=_DAY,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a browser that asks first; a refusal has the shape of all failures."""
        answer = super().preflight_response(request_headers)
        if answer.status_code == 200:
            return answer
        message = (
            "cross-origin request refused: allow the origin with `klsa-serve --cors-origin`, and "
            "send no headers but Authorization, Content-Type and X-Request-ID"
        )
        refused = Response(failure_answer(_CODE, message), ERROR_CODES[_CODE].status)
        refused.headers["Content-Type"] = "application/json"
        refused.headers["Vary"] = "Origin"
        return refused
