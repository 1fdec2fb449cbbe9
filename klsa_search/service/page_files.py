"""Serve the files of the search page, and the JavaScript client with its types.

`/` is the page for clients that prefer HTML, else the JSON of its endpoint. The files need no key,
and have no rate. The page requests its data like any client, with the key of its user.
"""

from __future__ import annotations

import hashlib
import re
from html import escape
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from klsa_search.errors import SettingsError

PREFIX = "/page/"  # prefix of the paths of the page's files
_TITLE = ">klsa-search<"  # the title in index.html, in the head and in the page
_LANGUAGE = '<html lang="en"'
_MARK = re.compile(r'<svg viewBox="0 0 32 32".*?</svg>')
_ICON = '<link rel="icon" href="page/icon.svg" type="image/svg+xml">'
"""The logo in index.html, in the page and in the head."""

_IMAGES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
"""Content types of logos by suffix."""

_LOGO = "logo"

_TYPES = {"js": "text/javascript", "ts": "application/typescript"}
"""Content types for which `mimetypes` depends on the machine, by suffix."""

_HEADERS = {
    # Neither resources of other hosts nor inline scripts and styles.
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Cached and revalidated: another version of the service has other files.
    "Cache-Control": "no-cache",
}


def prefers_html(accept: str) -> bool:
    """Return whether an Accept header prefers HTML to JSON; `*/*` alone does not."""
    wanted: dict[str, float] = {}
    for part in accept.lower().split(","):
        kind, *parameters = (part_.strip() for part_ in part.split(";"))
        weights = [parameter[2:] for parameter in parameters if parameter.startswith("q=")]
        try:
            wanted[kind] = float(weights[0]) if weights else 1.0
        except ValueError:  # an invalid weight is ignored
            wanted[kind] = 1.0
    json = wanted.get("application/json", wanted.get("application/*", wanted.get("*/*", 0.0)))
    return wanted.get("text/html", 0.0) > json


class SearchPage:
    """The start page and its files.

    logo, front_index  see the settings
    SettingsError for a logo of another format; OSError if it cannot be read.
    """

    def __init__(
        self, title: str, *, logo: Path | None = None, front_index: str | None = None
    ) -> None:
        self._files = StaticFiles(packages=[("klsa_search.service", "page")])
        start = (files("klsa_search.service") / "page" / "index.html").read_text("utf-8")
        start = start.replace(_TITLE, f">{escape(title)}<")
        if front_index is not None:
            start = start.replace(_LANGUAGE, f'{_LANGUAGE} data-index="{escape(front_index)}"')
        self._logo: Response | None = None
        if logo is not None:
            start = _MARK.sub(f'<img src="page/{_LOGO}" height="26" alt="">', start)
            start = start.replace(_ICON, f'<link rel="icon" href="page/{_LOGO}">')
            kind = _IMAGES.get(logo.suffix.lower())
            if kind is None:
                raise SettingsError(
                    f"logo = `{logo}`: its suffix is none of {', '.join(_IMAGES)}; convert the "
                    "image",
                    field="logo",
                )
            self._logo = Response(logo.read_bytes(), media_type=kind, headers=_HEADERS)
        self._start = start
        self._tag = f'"{hashlib.sha256(self._start.encode()).hexdigest()[:16]}"'

    def start(self, request: Request) -> Response:
        """Return the start page; without its content if the client has it."""
        headers = {**_HEADERS, "ETag": self._tag, "Vary": "Accept"}
        if self._tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return HTMLResponse(self._start, headers=headers)

    async def file(self, request: Request) -> Response:
        """Return a file of the page; HTTPException if there is none."""
        name: str = request.path_params["file"]
        if name == _LOGO and self._logo is not None:
            return self._logo
        response = await self._files.get_response(name, request.scope)
        if kind := _TYPES.get(name.rpartition(".")[2]):
            response.headers["Content-Type"] = f"{kind}; charset=utf-8"
        response.headers.update(_HEADERS)
        return response
