"""ZIP archives of files, unpacked file by file."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from zipfile import ZipFile, ZipInfo

from klsa_search.collection.files.archives import archive_faults
from klsa_search.collection.files.content import LARGEST, Unreadable

LARGEST_ARCHIVE: Final = 2**32
"""Limit of the decompressed size of all files of an archive in bytes."""


class ZippedFile(NamedTuple):
    """A file of an open archive; its name is its path in the archive."""

    name: str
    info: ZipInfo
    archive: ZipFile

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link."""
        return stat.S_ISLNK(self.info.external_attr >> 16)

    @contextmanager
    def unpacked(self, folder: Path) -> Iterator[Path]:
        """Unpack the file into an existing folder; remove it at the end. Unreadable."""
        if self.info.file_size > LARGEST:
            raise Unreadable("is too large", f"more than {LARGEST >> 20} MiB unpacked")
        # Nothing else of the name is used: it may contain `..` or begin with a slash.
        path = folder / PurePosixPath(self.name).name
        try:
            with archive_faults(), self.archive.open(self.info) as packed, path.open("wb") as copy:
                shutil.copyfileobj(packed, copy)
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def open_zip(path: Path) -> Iterator[list[ZippedFile]]:
    """Open an archive and return its files, sorted by name, without hidden ones; Unreadable.

    Cost: at most `LARGEST_ARCHIVE` bytes are unpacked from it.
    """
    with ExitStack() as stack:
        with archive_faults():
            archive = stack.enter_context(ZipFile(path))
        members = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        if sum(info.file_size for info in members.values()) > LARGEST_ARCHIVE:
            raise Unreadable("is too large", f"more than {LARGEST_ARCHIVE >> 30} GiB unpacked")
        yield [
            ZippedFile(name, info, archive)
            for name, info in sorted(members.items())
            if not any(part.startswith(".") for part in name.split("/"))
        ]
