"""Formats that are zip archives of XML, read with the standard library."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from klsa_search.collection.files.content import (
    LARGEST,
    Unreadable,
    iso_date,
    metadata_of,
    one_line,
)

FAULTS: Final = (
    BadZipFile,
    ElementTree.ParseError,
    EOFError,
    NotImplementedError,  # a compression method that zipfile does not support
    OSError,  # an offset before the beginning of the file
    ValueError,
    zlib.error,
)
"""Exceptions of the standard library for damaged archives and XML."""


class Archive:
    """An open archive that decompresses at most `LARGEST` bytes."""

    def __init__(self, packed: ZipFile) -> None:
        self._packed = packed
        self._left = LARGEST

    def __contains__(self, name: str) -> bool:
        """Return whether the archive has a part of that name."""
        return name in self._packed.NameToInfo

    def data(self, name: str) -> bytes:
        """Return the bytes of a part; Unreadable if it is missing."""
        if name not in self:
            raise Unreadable("is damaged", f"contains no {name}")
        self._left -= self._packed.getinfo(name).file_size
        if self._left < 0:
            raise Unreadable("is too large", f"more than {LARGEST >> 20} MiB unpacked")
        return self._packed.read(name)

    def tree(self, name: str) -> ElementTree.Element:
        """Return an XML part, parsed."""
        return ElementTree.fromstring(self.data(name))  # noqa: S314 - in the sandbox

    def optional_tree(self, name: str) -> ElementTree.Element | None:
        """Return an XML part that the text does not need; None if it is missing or damaged."""
        try:
            return self.tree(name) if name in self else None
        except FAULTS:
            return None

    def properties(self) -> dict[str, str]:
        """Return the properties of an Office document as metadata, and its `title`."""
        core = self.optional_tree("docProps/core.xml")
        if core is None:
            return {}
        properties = {node.tag.rpartition("}")[2]: node.text for node in core}
        return metadata_of(
            title=one_line(properties.get("title") or ""),
            author=properties.get("creator"),
            date=iso_date(properties.get("created")),
            language=properties.get("language"),
        )


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive; Unreadable if it is damaged or encrypted."""
    with archive_faults(), ZipFile(path) as packed:
        yield Archive(packed)


@contextmanager
def archive_faults() -> Iterator[None]:
    """Raise Unreadable for errors of reading an archive."""
    try:
        yield
    except FAULTS as error:
        raise Unreadable("is damaged", error) from None
    except RuntimeError as error:  # of zipfile for an encrypted part
        raise Unreadable("needs a password", error) from None
