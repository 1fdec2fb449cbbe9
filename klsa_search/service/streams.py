"""Answers that are made and sent in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Final
from urllib.parse import quote
from weakref import finalize

from fastapi import Response
from fastapi.responses import StreamingResponse

from klsa_search.errors import RequestTimedOut
from klsa_search.search.index import Index
from klsa_search.service.admission import Admission
from klsa_search.service.index_service import IndexService
from klsa_search.service.middleware.bodies import LINES
from klsa_search.service.visible_indexes import restricted_by_token

TYPES: Final = {"csv": "text/csv; charset=utf-8", "jsonl": LINES}
"""Content types of files by their suffix."""

MAX_SECONDS: Final = 600.0
"""Seconds that a stream takes, at most: a client that reads slowly keeps the index open."""


async def stream(
    service: IndexService, name: str, pieces: Callable[[Index], Iterator[bytes]], suffix: str
) -> Response:
    """Return what is made of an index as a stream, each piece in a thread for expensive requests.

    pieces  of an index with the documents that the request may see, which stays open meanwhile
    suffix  of the name of the file, which is that of the index: a key of `TYPES`
    """
    target, token_filter = service.visible.resolve_with_filter("search", name)

    def begin(leased: ExitStack) -> Iterator[bytes]:
        index = leased.enter_context(service.catalog.use(target))
        service.state["index"] = index.name
        if token_filter is not None:
            index = restricted_by_token(index, token_filter)
        return pieces(index)

    return await Stream(service.heavy, begin).response(f"{name}.{suffix}", TYPES[suffix])


class Stream:
    """A file that is made in pieces, each in a thread, while the client reads.

    admission  its threads
    begin      returns the pieces; what it enters into the stack is left after the last of them
    """

    def __init__(self, admission: Admission, begin: Callable[[ExitStack], Iterator[bytes]]) -> None:
        self._admission, self._begin = admission, begin
        self._leased = ExitStack()

    async def response(self, name: str, kind: str) -> Response:
        """Return the answer, with the name and content type of the file.

        Errors before the first piece are raised; after it, the connection breaks off, as it does
        after `MAX_SECONDS`.
        """

        def begin() -> tuple[Iterator[bytes], bytes | None]:
            pieces = self._begin(self._leased)
            return pieces, next(pieces, None)

        try:
            pieces, first = await self._admission.run(begin)
        except BaseException:
            self._leased.close()
            raise
        content = self._content(pieces, first)
        finalize(content, self._leased.close)  # also if the client is gone before the first piece
        disposition = f"attachment; filename*=UTF-8''{quote(name)}"
        headers = {"Content-Disposition": disposition}
        return StreamingResponse(content, media_type=kind, headers=headers)

    async def _content(self, pieces: Iterator[bytes], first: bytes | None) -> AsyncIterator[bytes]:
        end, piece = monotonic() + MAX_SECONDS, first
        while piece is not None:
            yield piece
            if monotonic() > end:
                raise RequestTimedOut(f"the client read for more than {MAX_SECONDS:.0f} s")
            piece = await self._admission.run(lambda: next(pieces, None))
