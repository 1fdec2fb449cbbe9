"""Children: trials in processes of their own, which may be killed, crash or hang.

They are forked from a process that has everything imported, in some milliseconds.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds after which a child is taken to hang."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["benchmarks.faults.warm"])


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    answer   what its function returned
    failure  what it raised instead: the name of the type, and the message
    signal   that killed it before either
    hung     whether it did nothing at all within PATIENCE, and was killed for it
    """

    answer: Any = None
    failure: tuple[str, str] | None = None
    signal: int | None = None
    hung: bool = False

    @property
    def well(self) -> bool:
        """Whether its function returned."""
        return self.failure is None and self.signal is None and not self.hung

    def given(self) -> Any:
        """Return its answer; AssertionError if it has none."""
        assert self.well, str(self)
        return self.answer

    def __str__(self) -> str:
        if self.failure is not None:
            return f"{self.failure[0]}: {self.failure[1]}"
        if self.hung:
            return "it hung"
        return str(self.answer) if self.signal is None else f"ended by signal {self.signal}"


class Child:
    """A function at work in a process of its own.

    Use as a context manager: what is left of the process at the end is killed.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._connection, other = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_work, args=(other, function, arguments), daemon=True
        )
        self._process.start()
        other.close()

    def __enter__(self) -> Child:
        """Return itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Kill what is left of it."""
        self.kill()
        self._process.join(PATIENCE)
        self._connection.close()

    def kill(self) -> None:
        """End it with SIGKILL, wherever it is."""
        self._process.kill()

    _last: Ended | None = None

    def end(self) -> Ended:
        """Wait for its end."""
        while self._last is None:
            if not self._connection.poll(PATIENCE):
                return Ended(hung=True)
            try:
                kind, value = self._connection.recv()
            except EOFError:
                self._process.join(PATIENCE)
                return Ended(signal=-(self._process.exitcode or 0))
            self._last = Ended(**{kind: value})
        return self._last


def call(function: Callable[..., Any], *arguments: Any) -> Ended:
    """Let a child do it, to its end."""
    with Child(function, *arguments) as child:
        return child.end()


def die() -> None:
    """End this process as the power does."""
    os.kill(os.getpid(), signal.SIGKILL)


def _work(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        sent = ("answer", function(*arguments))
    except BaseException as failure:  # noqa: BLE001 - whatever it is, the parent counts it
        sent = ("failure", (type(failure).__name__, str(failure)))
    connection.send(sent)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield an empty folder, in memory if there is room, and delete it at the end."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="klsa-faults-", dir=memory) as folder:
        yield Path(folder)


_VERSION_3 = 0x20080522
_NEW_MOUNTS, _PRIVATE_ALL = 0x00020000, 0x00040000 | 0x4000

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Lay down, if this process is root's, what makes modes and owners count for nothing."""
    header, held = struct.pack("Ii", _VERSION_3, 0), ctypes.create_string_buffer(24)
    _checked(_libc.capget(header, held))
    effective, permitted, _, effective_2, permitted_2, _ = struct.unpack("6I", held.raw)
    laid_down = struct.pack("6I", 0, permitted, 0, 0, permitted_2, 0)
    _checked(_libc.capset(header, laid_down))
    try:
        yield
    finally:
        taken_up = struct.pack("6I", effective, permitted, 0, effective_2, permitted_2, 0)
        _checked(_libc.capset(header, taken_up))


def own_disk(folder: Path, size: int, inodes: int) -> None:
    """Mount a disk in memory for this process alone; PermissionError where it may not."""
    _checked(_libc.unshare(_NEW_MOUNTS))
    _checked(_libc.mount(b"none", b"/", None, _PRIVATE_ALL, None))
    options = f"size={size},nr_inodes={inodes}".encode()
    _checked(_libc.mount(b"none", os.fsencode(folder), b"tmpfs", 0, options))


def resize(folder: Path, size: int, inodes: int) -> None:
    """Give that disk another size."""
    options = f"size={size},nr_inodes={inodes}".encode()
    _checked(_libc.mount(b"none", os.fsencode(folder), b"tmpfs", 0x20, options))


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
