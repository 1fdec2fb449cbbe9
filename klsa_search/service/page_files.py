"""Serve the files of the search page, and the JavaScript client with its types.

`/` is the page for clients that prefer HTML, else the JSON of its endpoint. The files are public:
they are sent before API keys and rates are checked. The page requests its data like any
client, with the key of its user.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/page/"
"""Prefix of the paths of the page's files."""

_TITLE = b">klsa-search<"
"""The title in index.html, in the head and in the page."""

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "ts": "application/typescript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Content types by suffix; other files are not part of the page."""

_HEADERS = {
    # Neither resources of other hosts nor inline scripts and styles.
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Cached and revalidated: another version of the service has other files.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page; `kind` is its content type."""

    content: bytes
    kind: str

    @property
    def tag(self) -> str:
        """ETag of the content."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


def page_files(title: str | None = None) -> dict[str, PageFile]:
    """Return the files of the page by their paths below `PREFIX`. Cost: some ms."""
    found: dict[str, PageFile] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for each in sorted(folder.iterdir(), key=lambda one: one.name):
            kind = _TYPES.get(each.name.rpartition(".")[2])
            if each.is_dir():
                walk(each, f"{prefix}{each.name}/")
            elif kind is not None:
                found[prefix + each.name] = PageFile(each.read_bytes(), kind)

    walk(files("klsa_search.service") / "page", "")
    if title is not None:
        start = found["index.html"]
        shown = escape(title).encode()
        found["index.html"] = replace(
            start, content=start.content.replace(_TITLE, b">" + shown + b"<")
        )
    return found


def prefers_html(accept: str) -> bool:
    """Return whether an Accept header prefers HTML to JSON; `*/*` alone does not."""
    wanted: dict[str, float] = {}
    for part in accept.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        weights = [each[2:] for each in parameters if each.startswith("q=")]
        try:
            wanted[kind] = float(weights[0]) if weights else 1.0
        except ValueError:  # an invalid weight is ignored
            wanted[kind] = 1.0
    json = wanted.get("application/json", wanted.get("application/*", wanted.get("*/*", 0.0)))
    return wanted.get("text/html", 0.0) > json


class SearchPage:
    """ASGI middleware that answers with the page and its files, and passes on other requests.

    Starlette's StaticFiles supports neither the title nor content negotiation at /, and needs a
    route, before which keys and rates are checked.
    """

    def __init__(self, app: ASGIApp, title: str | None = None) -> None:
        self._app = app
        self._files = {
            name: (one, {**_HEADERS, "ETag": one.tag, "Content-Type": one.kind})
            for name, one in page_files(title).items()
        }

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            raise AssertionError("only its path is used, in metrics")

        self._route = Route(PREFIX + "{file:path}", serve)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file, or pass the request on."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path == "/":
            if not prefers_html(Headers(scope=scope).get("accept", "")):
                await self._app(scope, receive, _varying(send))
                return
            name = "index.html"
        elif path.startswith(PREFIX):
            name = path.removeprefix(PREFIX)
        else:
            name = ""
        if name not in self._files:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route
        one, headers = self._files[name]
        vary = {"Vary": "Accept"} if path == "/" else {}
        known = Headers(scope=scope).get("if-none-match", "")
        if one.tag in known:
            answer = Response(status_code=304, headers={**headers, **vary})
        else:
            answer = Response(one.content, headers={**headers, **vary})
        await answer(scope, receive, send)


def _varying(send: Send) -> Send:
    """Return a `send` that adds `Vary: Accept`, as the response at / depends on that header."""

    async def send_varying(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).add_vary_header("Accept")
        await send(message)

    return send_varying
