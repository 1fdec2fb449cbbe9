"""Sessions of the search page: a signed cookie in the place of an API key.

The cookie names the key by its ID, so that revoking the key ends its sessions; nothing is stored.
It counts only in requests of the page: see `middleware.origin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from klsa_search.errors import InvalidApiKey, QueryError
from klsa_search.service.middleware.origin import PAGE_HEADER, is_from_page
from klsa_search.service.signing import Signer

COOKIE: Final = "klsa_session"
"""Name of the cookie, before the port: browsers share cookies between the ports of a host."""

LIFETIME: Final = timedelta(days=14)
"""Lifetime of a session, or less if the key expires."""


class Sessions:
    """Begins, recognises and ends the sessions of a service."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    def key_id(self, headers: Mapping[str, str], method: str) -> str | None:
        """Return the ID of the key of a session, or None.

        Cost: 0.1 ms if the request has a session.
        """
        if PAGE_HEADER.lower() not in headers:
            return None
        cookie = cookie_parser(headers.get("cookie", "")).get(_name(headers))
        if cookie is None or not is_from_page(headers, method):
            return None
        try:
            key_id: str = self._signer.verify("session", cookie)["sub"]
        except InvalidApiKey:
            return None
        return key_id

    def begin(
        self, request: Request, response: Response, key_id: str, expires: datetime | None
    ) -> None:
        """Set the cookie of a new session; it ends when the key expires, if that is earlier.

        QueryError unless the page of this host sent the request. Cost: 1 ms.
        """
        self.refuse_others(request)
        end = datetime.now(UTC) + LIFETIME
        if expires is not None:
            end = min(end, expires)
        token = self._signer.sign("session", {"sub": key_id}, end)
        _set(request, response, token, end - datetime.now(UTC))

    def refuse_others(self, request: Request) -> None:
        """Raise QueryError unless the page of this host sent a request."""
        headers = request.headers
        if not is_from_page(headers, request.method):
            raise QueryError(
                f"cannot sign in: the request for host {headers.get('host')!r} is not from its "
                f"search page (Origin: {headers.get('origin')!r}); let a proxy pass on the Host "
                "header with its port, or send the API key with each request"
            )

    def end(self, request: Request, response: Response) -> None:
        """Remove the cookie."""
        _set(request, response, "", timedelta(0))


def _set(request: Request, response: Response, value: str, age: timedelta) -> None:
    # Behind a proxy only the origin says whether the browser uses TLS. Without a path, the cookie
    # is for the folder of /session, with the prefix that a proxy adds.
    origin = request.headers.get("origin", "")
    response.set_cookie(
        _name(request.headers),
        value,
        max_age=int(age.total_seconds()),
        path=None,
        secure=request.url.scheme == "https" or origin.startswith("https://"),
        httponly=True,
        samesite="strict",
    )


def _name(headers: Mapping[str, str]) -> str:
    port = urlsplit(f"//{headers.get('host', '')}").netloc.rpartition("]")[2].rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isascii() and port.isdigit() else COOKIE
