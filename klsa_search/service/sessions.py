"""Sessions of the search page: a signed cookie in the place of an API key.

The cookie names the key by its ID, so that revoking the key ends its sessions; nothing is stored.
It counts only in requests of the page: a browser adds cookies and cached Basic credentials by
itself, whichever page sends the request, but it also sets `Sec-Fetch-Site` and `Origin`, which no
page can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from klsa_search.errors import InvalidApiKey, QueryError
from klsa_search.service.signing import Signer

COOKIE: Final = "klsa_session"
"""Name of the cookie, before the port: browsers share cookies between the ports of a host."""

LIFETIME: Final = timedelta(days=14)
"""Lifetime of a session, or less if the key expires."""


PAGE_HEADER: Final = "X-Requested-With"
"""Header of each request of the search page, with any value. A page of another origin may send it
only if CORS allows it, which it never does.
"""


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


def is_cross_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a page of another origin sent the request; programs send neither header.

    Sec-Fetch-Site is missing without TLS, except on localhost; then Origin must name the host.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and _host_of(origin) != headers.get("host", "").lower()


def is_from_page(headers: Mapping[str, str], method: str) -> bool:
    """Return whether the search page of this host certainly sent the request.

    Browsers send an Origin with each request that may change something, and no Origin with a GET
    of the same origin.
    """
    proven = "sec-fetch-site" in headers or "origin" in headers or method in ("GET", "HEAD")
    return PAGE_HEADER.lower() in headers and proven and not is_cross_origin(headers)


def _host_of(origin: str) -> str | None:
    """Return host and port of an origin, as `Host` has them; None if it has none, as `null`."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None
