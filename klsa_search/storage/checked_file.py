"""Small files of an index outside its generations, with a checksum in their first line.

    sha256 5a0c...
    {"tv": ["television"]}

They are replaced as a whole, atomically.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from klsa_search.errors import StoreError
from klsa_search.storage.files import read_regular, write_fresh
from klsa_search.storage.names import NEW

_BYTES: Final = 2**28

Stamp = tuple[int, int, int]


def stamp_of(path: Path) -> Stamp | None:
    """Return a value that changes with a file; None if there is none. Cost: 2 µs."""
    try:
        file = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return file.st_ino, file.st_size, file.st_mtime_ns


def read_checked(path: Path) -> bytes:
    """Return the content of a file; OSError, or ValueError if it has changed."""
    line, _, content = read_regular(path, _BYTES).partition(b"\n")
    if line != _checksum_line(content):
        raise ValueError("it has changed since it was written")
    return content


def replace_checked(path: Path, content: str | None) -> None:
    """Replace a file of an index that is locked; None removes it. The caller syncs the folder.

    StoreError if something else is in its place.
    """
    fresh = path.with_name(f".{path.name}.{NEW}")
    try:
        fresh.unlink(missing_ok=True)
        if content is None:
            path.unlink(missing_ok=True)
            return
        write_fresh(fresh, f"{_checksum_line(content.encode()).decode()}\n{content}")
        os.replace(fresh, path)
    except IsADirectoryError:
        raise StoreError(
            f"`{path}` is a folder that does not belong to the index; move it away"
        ) from None


def _checksum_line(content: bytes) -> bytes:
    return b"sha256 " + hashlib.sha256(content).hexdigest().encode()
