"""ZIP archives: formats that are archives of XML, and archives of files."""

from __future__ import annotations

import errno
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile, ZipInfo

from klsa_search.collection.files.content import LARGEST, Unreadable
from klsa_search.collection.lines import LARGEST_UNPACKED

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
_OF_SYSTEM: Final = (errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOSPC)
"""Codes of OSError that another archive would meet as well."""
_NAME: Final = 60  # characters of the name of an unpacked file, which has at most 255 bytes


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


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive; Unreadable if it is damaged or encrypted."""
    with archive_faults(), ZipFile(path) as packed:
        yield Archive(packed)


@contextmanager
def archive_faults() -> Iterator[None]:
    """Raise Unreadable for errors of reading an archive; OSError for those of the system."""
    try:
        yield
    except FAULTS as error:
        if isinstance(error, OSError) and error.errno in _OF_SYSTEM:
            raise
        raise Unreadable("is damaged", error) from None
    except RuntimeError as error:  # of zipfile for an encrypted part
        raise Unreadable("needs a password", error) from None


class ZippedFile(NamedTuple):
    """A file of an open archive; its name is its path in the archive."""

    name: str
    info: ZipInfo
    archive: ZipFile

    @contextmanager
    def unpacked(self, folder: Path) -> Iterator[Path]:
        """Unpack the file into an existing folder; remove it at the end. Unreadable."""
        if self.info.file_size > LARGEST:
            raise Unreadable("is too large", f"more than {LARGEST >> 20} MiB unpacked")
        # Nothing else of the name is used: it may contain `..`, begin with a slash, or be long.
        path = folder / PurePosixPath(self.name).name[-_NAME:]
        try:
            with archive_faults(), self.archive.open(self.info) as packed, path.open("wb") as copy:
                shutil.copyfileobj(packed, copy)
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def open_zip(path: Path) -> Iterator[list[ZippedFile]]:
    """Open an archive and return its files, sorted by name, without hidden ones; Unreadable.

    Cost: at most `LARGEST_UNPACKED` bytes are unpacked from it.
    """
    with ExitStack() as stack:
        with archive_faults():
            archive = stack.enter_context(ZipFile(path))
        members = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        if sum(info.file_size for info in members.values()) > LARGEST_UNPACKED:
            raise Unreadable("is too large", f"more than {LARGEST_UNPACKED >> 30} GiB unpacked")
        yield [
            ZippedFile(name, info, archive)
            for name, info in sorted(members.items())
            if not any(part.startswith(".") for part in name.split("/"))
        ]
