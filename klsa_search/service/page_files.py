"""Serve the files of the search page, and the JavaScript client with its types.

`/` is the page for clients that prefer HTML, else the JSON of its endpoint. The files are public:
they are sent before API keys and rates are checked. The page requests its data like any
client, with the key of its user.
"""

from __future__ import annotations

import hashlib
from html import escape
from importlib.resources import files

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from klsa_search.service.middleware.paths import path_of

PREFIX = "/page/"
"""Prefix of the paths of the page's files."""

_TITLE = ">klsa-search<"
"""The title in index.html, in the head and in the page."""

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
    """ASGI middleware that answers with the page and its files, and passes on other requests.

    A middleware, because keys and rates are checked before routes.
    """

    def __init__(self, app: ASGIApp, title: str) -> None:
        self._app = app
        self._files = StaticFiles(packages=[("klsa_search.service", "page")])
        start = (files("klsa_search.service") / "page" / "index.html").read_text("utf-8")
        self._start = start.replace(_TITLE, f">{escape(title)}<")
        self._tag = f'"{hashlib.sha256(self._start.encode()).hexdigest()[:16]}"'
        self._route = Route(PREFIX + "{file:path}", self._files)  # its path is that in metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file, or pass the request on."""
        response = None
        if scope["type"] == "http" and scope["method"] == "GET":
            path = path_of(scope)
            if path == "/":
                if prefers_html(Headers(scope=scope).get("accept", "")):
                    response = self._start_page(Headers(scope=scope))
                else:
                    send = _varying(send)
            elif path.startswith(PREFIX):
                response = await self._file(path.removeprefix(PREFIX), scope)
        if response is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route
        response.headers.update(_HEADERS)
        await response(scope, receive, send)

    def _start_page(self, headers: Headers) -> Response:
        shown = {"ETag": self._tag, "Vary": "Accept"}
        if self._tag in headers.get("if-none-match", ""):
            return Response(status_code=304, headers=shown)
        return HTMLResponse(self._start, headers=shown)

    async def _file(self, name: str, scope: Scope) -> Response | None:
        try:
            response = await self._files.get_response(name, scope)
        except HTTPException:  # there is no such file: the application says so
            return None
        if kind := _TYPES.get(name.rpartition(".")[2]):
            response.headers["Content-Type"] = f"{kind}; charset=utf-8"
        return response


def _varying(send: Send) -> Send:
    """Return a `send` that adds `Vary: Accept`, as the response at / depends on that header."""

    async def send_varying(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).add_vary_header("Accept")
        await send(message)

    return send_varying
