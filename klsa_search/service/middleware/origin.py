"""Origin of a request in a browser, against cross-site request forgery.

A browser adds cookies and cached Basic credentials by itself, whichever page sends the request.
`Sec-Fetch-Site` and `Origin` are set by the browser; no page can change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

PAGE_HEADER: Final = "X-Requested-With"
"""Header of each request of the search page, with any value. A page of another origin may send it
only if CORS allows it, which it never does.
"""


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
