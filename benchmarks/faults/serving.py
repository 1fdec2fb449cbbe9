"""klsa-serve in a process of its own, and a client that knows how an answer can fail to come."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 30.0
"""Seconds within which every request has its answer."""

_PROGRAM = "from klsa_search.cli.serve import main; main()"


class DoesNotServe(Exception):
    """It ended before it served."""


class Server:
    """The service over a home. Use as a context manager: what is left at the end is killed."""

    def __init__(self, home: Path, *, descriptors: int | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the server

        def limit() -> None:
            if descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", _PROGRAM, "--home", str(home), "--port", "0"],
            stdout=subprocess.PIPE, stderr=self._errors, text=True, preexec_fn=limit,
        )  # fmt: skip
        self.port = 0

    def __enter__(self) -> Server:
        """Wait until it serves; DoesNotServe with what it said instead."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return self
        self.__exit__()
        raise DoesNotServe(" ".join(self.errors().split()))

    def __exit__(self, *failure: object) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait(timeout=600)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def errors(self) -> str:
        """What it has written to stderr so far."""
        return os.pread(self._errors.fileno(), 2**20, 0).decode(errors="replace")

    def terminate(self) -> None:
        """Ask it to end."""
        self.process.send_signal(signal.SIGTERM)

    def left(self, patience: float) -> int | None:
        """Its exit code; None if it lives on."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            return None

    def get(self, path: str) -> Asked:
        """Ask for something, alone."""
        return asyncio.run(ask(self.port, path))


@dataclass(frozen=True)
class Asked:
    """One request.

    outcome  the status of a whole answer, "refused" where no connection could be made, "dropped"
             where it ended without a byte, "cut off" where it ended within the answer, or
             "no answer" within PATIENCE
    sent     when, by the clock that `time.monotonic` reads, and seconds until the end of it
    """

    outcome: int | str
    sent: float
    seconds: float
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The answer as a value; None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


async def ask(port: int, path: str, patience: float = PATIENCE) -> Asked:
    """Ask over a connection of its own."""
    sent = time.monotonic()
    received = bytearray()
    try:
        async with asyncio.timeout(patience):
            outcome = await _outcome(port, path, received)
    except TimeoutError:
        outcome = "no answer"
    body = bytes(received.partition(b"\r\n\r\n")[2])
    return Asked(outcome, sent, time.monotonic() - sent, body)


async def _outcome(port: int, path: str, received: bytearray) -> int | str:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return "refused"
    try:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        while piece := await reader.read(2**16):
            received += piece
    except OSError:
        pass  # reset: what came before it says how
    finally:
        writer.close()
    if not received:
        return "dropped"
    head_, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head_, re.IGNORECASE)
    whole = length is not None and len(body) == int(length[1])
    return int(head_[9:12]) if whole else "cut off"
