"""Files that are zip archives of XML: parts of them, by the standard library."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from klsa_search.collection.files.content import LARGEST, Unreadable

FAULTS: Final = (
    BadZipFile,
    ElementTree.ParseError,
    EOFError,
    NotImplementedError,  # a way of packing that zipfile does not know
    OSError,  # a place before the beginning of the file
    ValueError,
    zlib.error,
)
"""What the standard library says of damaged archives, and of XML."""


class Archive:
    """An open archive that gives up no more than `LARGEST` bytes."""

    def __init__(self, packed: ZipFile) -> None:
        self._packed = packed
        self._left = LARGEST

    def __contains__(self, name: str) -> bool:
        """Whether it has a part of that name."""
        return name in self._packed.NameToInfo

    def data(self, name: str) -> bytes:
        """Bytes of a part; Unreadable where it is missing."""
        if name not in self:
            raise Unreadable("is damaged", f"contains no {name}")
        self._left -= self._packed.getinfo(name).file_size
        if self._left < 0:
            raise Unreadable("is too large", f"more than {LARGEST >> 20} MiB unpacked")
        return self._packed.read(name)

    def tree(self, name: str) -> ElementTree.Element:
        """A part that is XML."""
        return ElementTree.fromstring(self.data(name))  # noqa: S314 - in the sandbox

    def about(self, name: str) -> ElementTree.Element | None:
        """A part the words do not need; None where it is missing or damaged."""
        try:
            return self.tree(name) if name in self else None
        except FAULTS:
            return None


@contextmanager
def opened_archive(path: Path) -> Iterator[Archive]:
    """Open an archive; whatever is wrong with it becomes Unreadable."""
    try:
        with ZipFile(path) as packed:
            yield Archive(packed)
    except FAULTS as error:
        raise Unreadable("is damaged", error) from None
    except RuntimeError as error:  # as zipfile reports that a part is encrypted
        raise Unreadable("needs a password", error) from None
