"""What is written to a connection in one turn of the event loop goes out in one call.

uvicorn writes the head of an answer and its body apart. Each call of the system lets another thread
run Python, and the loop then waits for its turn: while searches are at work, longer than the call.
"""

from __future__ import annotations

import asyncio
from typing import Any

_MOST = 2**16
"""Bytes that are held back for more; what is larger is not copied to be joined."""


class Together:
    """A transport, as far as uvicorn uses one, over that of a connection."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write, by the end of this turn of the loop."""
        if not data:
            return
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > _MOST:  # so that the connection tells in time when it is full
            self._flush()

    def write_at_once(self, data: bytes) -> None:
        """Write what nothing follows in this turn."""
        self._flush()
        self._transport.write(data)

    def close(self) -> None:
        """Close, once all is written."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close, whatever is left to be written."""
        self._held, self._size = [], 0
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Bytes that the client has not taken; what is held back goes out in this turn."""
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Take nothing more from the client."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on taking."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Tell of the socket."""
        return self._transport.get_extra_info(name, default)

    def _flush(self) -> None:
        if not self._held:
            return
        held, size = self._held, self._size
        self._held, self._size = [], 0
        if size <= _MOST:
            held = [b"".join(held)]
        for data in held:
            self._transport.write(data)
