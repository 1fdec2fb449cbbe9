"""Plain requests: a GET that is whole and asks for nothing but its answer, read by one pattern.

h11 reads and writes all of HTTP in Python, which takes as long as a search. The pattern takes up
what h11 would read in the same way, to the byte, and leaves it all else to judge.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, RequestResponseCycle

PATHS: Final = frozenset({"/search"})
"""What is answered so: in one piece, and asked for often."""

Headers = list[tuple[bytes, bytes]]

_NAME: Final = rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]++"
# No group is repeated possessively: Python 3.11.2 reads that wrongly (gh-106052).
_VALUE: Final = rb"[!-~\x80-\xff]++(?:[ \t]++[!-~\x80-\xff]++)*"
_SPECIAL: Final = (
    rb"(?i:(?:content-length|transfer-encoding|expect|upgrade):|connection:(?! keep-alive\r))"
)
_HEADER: Final = rb"%b:[ \t]*+(?:%b[ \t]*+)?\r\n" % (_NAME, _VALUE)
_ONE: Final = re.compile(rb"(%b):[ \t]*+(%b)?" % (_NAME, _VALUE))
_REQUEST: Final = re.compile(
    rb"GET (/[!->@-~]*+)(?:\?([!-~]*+))? HTTP/1\.1\r\n((?:(?!%b)%b)+)\r\n" % (_SPECIAL, _HEADER)
)


class Plain(NamedTuple):
    """A request as it was sent; names of headers in lower case."""

    path: str
    query: bytes
    headers: Headers


def plain(data: bytes) -> Plain | None:
    """Read a request, one and no more; None where it is for h11. Cost: 3 µs, and 1 a header."""
    found = _REQUEST.fullmatch(data)
    if found is None:
        return None
    path, query, lines = found.groups(b"")
    headers = [(name.lower(), value) for name, value in _ONE.findall(lines)]
    if sum(name == b"host" for name, _ in headers) != 1:
        return None
    return Plain(path.decode("ascii"), query, headers)


def written(status: int, headers: Headers, body: bytes) -> bytes:
    """Write an answer as h11 does; ValueError where a header would end its line."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        raise ValueError("a header has a line end")
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, STATUS_PHRASES[status], lines, body)


class PlainCycle(RequestResponseCycle):
    """Answers a plain request in one piece, without h11, which takes no note of it."""

    _start: Any = None

    def __init__(self, **of_connection: Any) -> None:
        super().__init__(**of_connection)
        self.more_body = False
        self.message_event.set()
        self._pieces: list[bytes] = []

    async def send(self, message: Any) -> None:
        """Take a part of the answer, and write it with the last."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self.response_started, self._start = True, message
            return
        self._pieces.append(message.get("body", b""))
        if message.get("more_body", False):
            return
        body, status = b"".join(self._pieces), self._start["status"]
        headers = [*self.default_headers, *self._start["headers"]]
        if not any(name == b"content-length" for name, _ in headers):
            headers.append((b"content-length", b"%d" % len(body)))
        answer = written(status, headers, body)
        self.response_complete = True
        self.on_response()  # first, so that who has the answer is counted no more
        self.transport.write_at_once(answer)  # type: ignore[attr-defined]  # of `Together`
        if (b"connection", b"close") in headers or not self.keep_alive:
            self.transport.close()
