"""What root may do and others may not: taken away, so that a mode counts; or used for a disk."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
