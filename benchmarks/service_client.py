"""A client of HTTP/1.1 that costs next to nothing, so that a measurement is of the service."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import cast
from urllib.parse import quote

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """Where a server listens.

    tls  context of the client, if the server speaks HTTPS
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = field(default=None, kw_only=True)

    def get(self, path: str, key: str | None = None) -> bytes:
        """The bytes of a GET, with an API key."""
        sent = f"Authorization: Bearer {key}\r\n" if key else ""
        return f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{sent}\r\n".encode()

    def post(self, path: str, body: object) -> bytes:
        """The bytes of a POST of JSON."""
        content = json.dumps(body).encode()
        return (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        ).encode() + content

    def searches(
        self, queries: list[str], index: str, parameters: str = "", keys: Sequence[str | None] = ()
    ) -> list[bytes]:
        """Searches with further parameters, as in &k=3, and with these keys in turns."""
        return [
            self.get(f"/search?index={index}&q={quote(query)}{parameters}", key)
            for query, key in zip(queries, cycle(keys or (None,)), strict=False)
        ]


@dataclass(frozen=True)
class Answer:
    """What came of one request; status 0 stands for a connection that ended without an answer."""

    status: int
    seconds: float


class Connection(asyncio.Protocol):
    """One connection, kept until the server ends it; one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[int] | None = None
        self._received = b""
        self.open = False

    @classmethod
    async def to(cls, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, address.host, address.port, ssl=address.tls))[1]

    async def ask(self, request: bytes, patience: float) -> Answer:
        """Send a request and wait for its answer, so long."""
        assert self._transport is not None
        begun = time.perf_counter()
        self._answer = asyncio.get_running_loop().create_future()
        self._received = b""
        self._transport.write(request)
        try:
            status = await asyncio.wait_for(self._answer, patience)
        except TimeoutError:
            status = 0
            self.close()
        return Answer(status, time.perf_counter() - begun)

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        self._settle(0)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        head = self._received[: max(end, 0)]
        length = _LENGTH.search(head)
        if length is not None and len(self._received) - end - 4 >= int(length[1]):
            if _CLOSE.search(head):
                self.close()
            self._settle(int(head[9:12]))

    def _settle(self, status: int) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(status)


async def closed_loop(
    address: Address, requests: list[bytes], connections: int, seconds: float, patience: float
) -> tuple[list[Answer], float]:
    """Each connection asks as soon as it is answered; the answers and the seconds it took."""
    begun = time.perf_counter()
    answers: list[Answer] = []

    async def ask(first: int) -> None:
        connection = await Connection.to(address)
        turn = first
        while time.perf_counter() - begun < seconds:
            if not connection.open:
                connection = await Connection.to(address)
            answers.append(await connection.ask(requests[turn % len(requests)], patience))
            turn += connections
        connection.close()

    await asyncio.gather(*map(ask, range(connections)))
    return answers, time.perf_counter() - begun


async def open_loop(
    address: Address, requests: list[bytes], rate: float, count: int, patience: float
) -> list[Answer]:
    """So many requests at so many a second, whether or not those before are answered."""
    free: list[Connection] = []
    asking: list[asyncio.Task[Answer]] = []
    begun = time.perf_counter()

    async def ask(turn: int) -> Answer:
        asked = time.perf_counter()
        connection = free.pop() if free else None
        try:
            if connection is None or not connection.open:
                connection = await asyncio.wait_for(Connection.to(address), patience)
        except OSError:
            return Answer(0, time.perf_counter() - asked)
        answer = await connection.ask(requests[turn % len(requests)], patience)
        if connection.open:
            free.append(connection)
        return answer

    for turn in range(count):  # not all at once: while they are made none is asked
        await asyncio.sleep(max(0, begun + turn / rate - time.perf_counter()))
        asking.append(asyncio.create_task(ask(turn)))
    answers = await asyncio.gather(*asking)
    for connection in free:
        connection.close()
    return answers
