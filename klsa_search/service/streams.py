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
    """Return what is made of an index as a file, each piece in a thread for expensive requests.

    pieces  of an index with the documents that the request may see, which stays open meanwhile
    suffix  of the name of the file, which is that of the index: a key of `TYPES`

    Errors before the first piece are raised; after it, the connection breaks off, as it does
    after `MAX_SECONDS`.
    """
    target, token_filter = service.visible.resolve_with_filter("search", name)
    leased = ExitStack()

    def begin() -> tuple[Iterator[bytes], bytes | None]:
        index = leased.enter_context(service.catalog.use(target))
        service.state["index"] = index.name
        if token_filter is not None:
            index = restricted_by_token(index, token_filter)
        made = pieces(index)
        return made, next(made, None)

    try:
        made, first = await service.heavy.run(begin)
    except BaseException:
        leased.close()
        raise
    content = _content(service.heavy, made, first)
    finalize(content, leased.close)  # also if the client is gone before the first piece
    disposition = f"attachment; filename*=UTF-8''{quote(name)}.{suffix}"
    headers = {"Content-Disposition": disposition}
    return StreamingResponse(content, media_type=TYPES[suffix], headers=headers)


async def _content(
    admission: Admission, pieces: Iterator[bytes], first: bytes | None
) -> AsyncIterator[bytes]:
    end, piece = monotonic() + MAX_SECONDS, first
    while piece is not None:
        yield piece
        if monotonic() > end:
            raise RequestTimedOut(f"the client read for more than {MAX_SECONDS:.0f} s")
        piece = await admission.run(lambda: next(pieces, None))
