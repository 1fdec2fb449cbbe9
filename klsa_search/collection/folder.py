"""Folder traversal in a fixed order, with a record of skipped files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath, PurePosixPath

from klsa_search.collection.intake import TruncatedFile
from klsa_search.collection.model import Unread

DEPENDENCIES = ("__pycache__", "bower_components", "node_modules", "site-packages")
"""Names of folders below a source that hold packages of others or caches, and are left out."""

COMPRESSED = (".gz", ".zip", ".zst")
"""Suffixes of compressed files; the suffix before them gives the format."""


def walk(path: Path, links: bool = False, unread: Unread | None = None) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, sorted by name, folder by folder.

    Hidden files and folders are left out, and folders named in `DEPENDENCIES`, which are added to
    `unread`; the path itself may be one. Symbolic links are followed only with `links`, each
    folder once. Other links, and entries that are neither file nor folder, are added to `unread`. A
    path that is a file yields itself; the path itself may be a link. Memory: the names in one
    folder of each level.
    """
    if not path.is_dir():
        path.stat()  # raises if the path was removed
        yield path
        return
    walked = {_identity(path)}
    open_folders = [iter(_entries(path))]
    while open_folders:
        entry = next(open_folders[-1], None)
        if entry is None:
            open_folders.pop()
        elif entry.name.startswith("."):
            continue
        elif entry.is_symlink() and not links:
            record_unread(Path(entry.path), path, unread, "linked")
        elif os.path.isdir(entry.path) and entry.name in DEPENDENCIES:
            record_unread(Path(entry.path), path, unread, f"{entry.name} folder")
        elif os.path.isdir(entry.path):
            identity = _identity(Path(entry.path))
            if identity not in walked:
                walked.add(identity)
                open_folders.append(iter(_entries(Path(entry.path))))
        elif os.path.isfile(entry.path):
            yield Path(entry.path)
        else:
            record_unread(Path(entry.path), path, unread, "special")


def single_file(
    file: Path, is_sidecar: Callable[[Path], bool], root: Path, links: bool, unread: Unread
) -> Iterator[Path]:
    """Yield one file of a folder; add the others, except sidecar files, to `unread`."""
    yield file
    for path in walk(root, links, unread):
        if path != file and not is_sidecar(path):
            record_unread(path, root, unread)


def record_unread(path: Path, root: Path, unread: Unread | None, kind: str | None = None) -> None:
    """Add a file that is not read to `unread`; its kind is its suffix by default."""
    if unread is not None:
        place = display_path(path, root)
        unread.add(kind or suffix_of(place), place)


def suffix_of(path: str) -> str:
    """Return the suffix of a file, with that of compression; "without suffix" if it has none."""
    name = PurePosixPath(path.lower())
    suffix = "".join(name.suffixes[-2:]) if name.suffix in COMPRESSED else name.suffix
    return suffix or "without suffix"


def display_path(path: Path, root: Path) -> str:
    """Return the path below a folder as text; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "replace")


def list_files(path: Path, links: bool = False) -> list[Path]:
    """Return the files directly in a folder, sorted by name; linked ones only with `links`."""
    return [
        Path(entry.path)
        for entry in _entries(path)
        if os.path.isfile(entry.path) and (links or not entry.is_symlink())
    ]


def uncompressed_name(path: PurePath) -> str:
    """Return the name of a file in lower case, without a suffix of compression."""
    name = path.name.lower()
    return next((name.removesuffix(suffix) for suffix in COMPRESSED if name.endswith(suffix)), name)


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise TruncatedFile(f"{path}: cannot be listed ({error.strerror})") from None


def _identity(folder: Path) -> tuple[int, int]:
    """Return device and inode of a folder."""
    found = folder.stat()
    return found.st_dev, found.st_ino
