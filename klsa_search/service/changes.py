"""Notices of changes between the processes that serve an index directory.

A file of the directory, which all of them map into memory, has a version of the directory itself
(indexes created or deleted, aliases) and versions of its indexes. A process that has changed
something replaces its version by a random number before it acknowledges the change. The others
compare versions when a request comes, and read the directory or the index again if they differ.
"""

from __future__ import annotations

import mmap
import os
import secrets
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final
from zlib import crc32

_FILE: Final = ".changes"
_WORD: Final = 8
_WORDS: Final = 4_096
"""The first is that of the directory. Indexes that share one are read again too often: 0.5 ms."""


class ChangeNotices:
    """The versions of an index directory and its indexes; safe to share between threads.

    Other processes find changes only when they scan the directory if the file can be neither
    created nor read: on a read-only or full disk, where the service cannot write to indexes.
    Cost: 0.3 µs for each call, or 10 µs while there is no file.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / _FILE
        self._lock = threading.Lock()
        self._words: mmap.mmap | None = None

    def version(self, name: str | None) -> bytes:
        """Return the version of an index, or of the directory; empty if there is no file."""
        words, begin = self._words or self._mapped(), _begin(name)
        return b"" if words is None else words[begin : begin + _WORD]

    def announce(self, name: str | None) -> None:
        """Replace the version of an index, or of the directory: it was changed."""
        words, begin = self._mapped(), _begin(name)
        if words is not None:
            words[begin : begin + _WORD] = secrets.token_bytes(_WORD)

    def announce_to_services(self, name: str) -> None:
        """Announce a change by a command; nothing is created if no service has run here."""
        if self._path.exists():
            self.announce(name)

    def _mapped(self) -> mmap.mmap | None:
        if self._words is None:
            with self._lock, suppress(OSError):
                self._words = self._words or _map(self._path)
        return self._words


@lru_cache(_WORDS)
def _begin(name: str | None) -> int:
    return 0 if name is None else _WORD * (1 + crc32(name.encode()) % (_WORDS - 1))


def _map(path: Path) -> mmap.mmap:
    """Map the file, which is created if the directory is there and can be written; OSError."""
    size = _WORD * _WORDS
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.posix_fallocate(descriptor, 0, size)  # a write to a hole ends the process on a full disk
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)
