"""Bodies of requests: their size, rate and compression, and those that are kept as files.

A stream of lines has no maximum size, as its reader limits what is in memory.

Each file is in a folder for it alone, which its service keeps locked. The system removes locks
however a process ends, so another service removes the folders that a killed one has left behind.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from time import monotonic
from typing import IO, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

from klsa_search.errors import BodyTooSlow, QueryError, StoreError

LINES: Final = "application/x-ndjson"  # content type of a stream of lines, each of them JSON
MAX_SPOOLED: Final = 2**33  # maximum bytes of a body that waits in a temporary file
RATE: Final = 4096
"""Minimum bytes per second of a body, averaged over each window, while the service waits for it."""

WINDOW: Final = 15.0
"""Seconds of waiting over which the rate is measured; a small body has to arrive within them."""

_PIECE: Final = 2**18  # maximum bytes that are decompressed at once
_GZIP: Final = 16 + zlib.MAX_WBITS


def content_type(headers: Mapping[str, str]) -> str:
    """Return the content type of a request in lower case, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def refuse_other_types(request: Request, *kinds: str) -> None:
    """Raise HTTPException unless the content type of the body is one of these."""
    if content_type(request.headers) not in kinds:
        media_type = request.headers.get("content-type", "none")[:60]
        wanted = " or ".join(kinds)
        raise HTTPException(
            415, f"content type {media_type} is not supported; send Content-Type: {wanted}"
        )


async def spool(request: Request, file: IO[bytes]) -> None:
    """Write the body of a request to a file outside of the event loop.

    HTTPException if it is too large, StoreError if the file cannot be written.
    """
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > MAX_SPOOLED:
            raise HTTPException(
                413,
                f"the body is larger than {MAX_SPOOLED:,} bytes; run klsa-index on the machine of "
                "the service",
            )
        try:
            await asyncio.to_thread(file.write, chunk)
        except OSError as error:
            raise StoreError(
                f"the body cannot be kept in a temporary file: {error.strerror}; free space in the "
                "folder of temporary files of the service, or set TMPDIR to another one"
            ) from error


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Maximum size of a body.

    size         maximum bytes, decompressed; None for any number, see `spool`
    advice       what to do if a body is larger
    takes_lines  whether the body may be a stream of lines, which has no maximum size
    """

    size: int | None
    advice: str = ""
    takes_lines: bool = False


UNLIMITED: Final = BodyLimit(None)
DEFAULT_LIMIT: Final = BodyLimit(2**20, "shorten it, or send less at a time")
"""The longest query, all escapes, has a tenth of it."""


class RequestBody:
    """The `receive` of a request that limits its body, and decompresses it.

    receive   of the server
    limit     maximum size; by default none
    encoding  gzip, or blank
    Only the time in which the service waits for the client counts, not that of its own writes.
    Errors are raised where a route reads the body, so that error handlers answer them.
    """

    def __init__(
        self, receive: Receive, limit: BodyLimit = UNLIMITED, *, encoding: str = ""
    ) -> None:
        self._receive = receive
        self._limit, self._left = limit, limit.size or 0
        self._encoding = encoding
        self._decoder = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        self._compressed = b""  # arrived, and not yet decompressed
        self._is_full = False  # whether the last piece may be only a part of what is decompressed
        self._waited, self._arrived, self._is_complete = 0.0, 0, False

    @classmethod
    def of(cls, request: Request, limit: BodyLimit) -> RequestBody:
        """Return the body of a request with a limit of its route."""
        if limit.takes_lines and content_type(request.headers) == LINES:
            limit = UNLIMITED
        encoding = request.headers.get("content-encoding", "").strip().lower()
        return cls(request.receive, limit, encoding="" if encoding == "identity" else encoding)

    async def __call__(self) -> Message:
        """Return the next message, as `receive` of ASGI.

        BodyTooSlow; HTTPException if the body is too large, or its encoding is unknown; QueryError
        if it is not gzip.
        """
        if self._decoder is not None:
            message = await self._decompressed()
        elif self._encoding:
            raise HTTPException(
                415,
                f"Content-Encoding: {self._encoding[:60]} is not supported; send the body with "
                "Content-Encoding: gzip, or without this header",
            )
        else:
            message = await self._arriving()
        if self._limit.size is not None:
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise HTTPException(
                    413,
                    f"the body is larger than {self._limit.size:,} bytes; {self._limit.advice}",
                )
        return message

    async def _decompressed(self) -> Message:
        """Return the next piece of the body, decompressed."""
        assert self._decoder is not None
        if not self._compressed and not self._is_full:
            if self._is_complete:
                return await self._receive()
            message = await self._arriving()
            if message["type"] != "http.request":
                return message
            self._compressed = message.get("body", b"")
        if self._decoder.eof and self._compressed:  # several members follow each other
            self._decoder = zlib.decompressobj(_GZIP)
        try:
            body = self._decoder.decompress(self._compressed, _PIECE)
        except zlib.error as error:
            raise QueryError(
                f"the body is not gzip ({error}), as Content-Encoding says; compress it again"
            ) from None
        self._compressed = self._decoder.unconsumed_tail or self._decoder.unused_data
        self._is_full = len(body) == _PIECE
        more = bool(self._compressed) or self._is_full or not self._is_complete
        if not more and not self._decoder.eof:
            raise QueryError("the body ends before its gzip stream does; send it again")
        return {"type": "http.request", "body": body, "more_body": more}

    async def _arriving(self) -> Message:
        """Return the next message of the server; BodyTooSlow."""
        if self._is_complete:  # the next message is the end of the connection
            return await self._receive()
        while True:
            begin = monotonic()
            try:
                async with asyncio.timeout(WINDOW - self._waited):
                    message = await self._receive()
            except TimeoutError:
                self._begin_window()
            else:
                break
        self._waited += monotonic() - begin
        self._arrived += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._waited >= WINDOW and not self._is_complete:
            self._begin_window()
        return message

    def _begin_window(self) -> None:
        """Begin a new window; BodyTooSlow if the last one had too few bytes."""
        if self._arrived < RATE * WINDOW:
            raise BodyTooSlow(
                f"the body arrived too slowly: less than {RATE:g} bytes a "
                f"second over {WINDOW:g} s; send it faster, or in smaller requests"
            )
        self._waited, self._arrived = 0.0, 0


_PREFIX: Final = "klsa-file-"
_NAME: Final = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
"""Name of a folder as `TemporaryDirectory` makes it, which only its user may read."""
_NEW_SECONDS: Final = 60.0  # age of a folder up to which its service may not have locked it yet


@asynccontextmanager
async def received(request: Request, name: str) -> AsyncIterator[Path]:
    """The body of a request as a temporary file of this name, alone in its folder."""
    with ExitStack() as stack:
        folder = await asyncio.to_thread(_locked_folder, stack)
        try:
            path = folder / name
            body = await asyncio.to_thread(path.open, "wb")
            try:
                await spool(request, body)
            finally:
                await asyncio.to_thread(body.close)
            yield path
        finally:
            await asyncio.to_thread(stack.close)


def _locked_folder(stack: ExitStack) -> Path:
    temporary = TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    folder = Path(stack.enter_context(temporary))
    stack.callback(os.close, _lock(folder))
    return folder


def _lock(folder: Path) -> int:
    """Lock a folder, and return its descriptor; OSError if another process has locked it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove_abandoned() -> None:
    """Remove the files of services that were killed; nothing without a temporary folder."""
    try:
        paths = [path for path in Path(gettempdir()).iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return
    for folder in paths:
        with suppress(OSError):  # of another user, in use, or removed meanwhile
            facts = folder.lstat()
            is_private = stat.S_IMODE(facts.st_mode) == stat.S_IRWXU
            if is_private and time.time() - facts.st_mtime > _NEW_SECONDS:
                descriptor = _lock(folder)
                try:
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(descriptor)
