"""Ownership of folders: mark what belongs to an index, and remove only that.

The file KLSA-INDEX, written first, marks a folder as an index, and a folder of six digits in it as
a generation, which is removed with all that is in it. If a marker was lost, a manifest decides.
Other files and folders in the folder of an index stay.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

from klsa_search.errors import StoreError
from klsa_search.storage import names
from klsa_search.storage.aliases import alias_at
from klsa_search.storage.files import PERMISSIONS, is_real, read_regular, replace_file, unreadable
from klsa_search.storage.manifest import is_manifest

_INDEX: Final = "klsa-search index"
_GENERATION: Final = "klsa-search generation"
_NOTES: Final = {
    _INDEX: "klsa-search keeps an index here. A folder of six digits with such a file is removed\n"
    "with all that is in it. Other files that klsa-search did not write stay.",
    _GENERATION: "One generation of that index: written whole, never changed, removed with all\n"
    "that is in this folder when two newer ones are whole.",
}


def is_index(path: Path) -> bool:
    """Return whether a folder is an index: marked, or with a manifest."""
    if is_marked(path):
        return True
    return is_real(path / names.CURRENT, stat.S_IFREG) and any(
        is_manifest(old / names.MANIFEST) for old in _folders_named(path, names.GENERATION)
    )


def is_marked(folder: Path, kind: str = _INDEX) -> bool:
    """Return whether a folder has the marker of an index, or of a generation."""
    marker = folder / names.MARKER
    if not is_real(marker, stat.S_IFREG):
        return False
    try:
        return read_regular(marker, 1000).startswith(f"{kind}\n".encode())
    except OSError as error:
        raise unreadable(marker, error, PERMISSIONS) from error


def is_unfinished(path: Path) -> bool:
    """Return whether a folder is an index without any complete generation.

    An interrupted first build or restore leaves such a folder.
    """
    return (
        is_marked(path)
        and not os.path.lexists(path / names.CURRENT)
        and not os.path.lexists(path / names.DELETED)
        and not any(map(is_committed, generations(path)))
    )


def is_abandoned(path: Path) -> bool:
    """Return whether a process that died left a folder before it marked it as an index."""
    return is_real(path, stat.S_IFDIR) and os.access(path, os.R_OK | os.X_OK) and _is_bare(path)


def refuse_foreign(path: Path) -> None:
    """Raise StoreError for a path that has content and is not an index."""
    target = None if os.path.lexists(path) else alias_at(path)
    if target is not None:
        raise StoreError(
            f"`{path}` is an alias of `{target}`, so it was not changed; name that "
            "index, choose another name, or delete the alias (klsa-index alias "
            f"--delete {path.name})"
        )
    if not os.path.lexists(path) or is_index(path):
        return
    if not path.is_dir():
        fact = "exists and is not a folder"
    elif not _is_bare(path):
        fact = "is there and is not an index"
    else:
        return
    raise StoreError(
        f"`{path}` {fact}, so it was not changed; choose another name or another index directory"
    )


def mark_index(path: Path) -> None:
    """Mark a folder as an index, unless it is."""
    if not is_marked(path):
        _mark(path, _INDEX)


def partition_folders(path: Path) -> list[Path]:
    """Return the folders of partitions of an index, in use or not, complete or not, by name.

    Also those that a process made that died.
    """
    folders = _folders_named(path, names.PARTITION)
    return [folder for folder in folders if is_index(folder) or _is_bare(folder)]


def partitions_there(generation: Path) -> list[Path]:
    """Return the folders of the partitions of a generation that there are, by number."""
    prefix = f"{generation.name}-"
    folders = [f for f in partition_folders(generation.parent) if f.name.startswith(prefix)]
    numbers = {f: f.name.removeprefix(prefix) for f in folders}
    return sorted((f for f in folders if numbers[f].isdigit()), key=lambda f: int(numbers[f]))


def build_of(partition: Path) -> str:
    """Return the name of the generation that the folder of a partition belongs to."""
    return partition.name.partition("-")[0]


def _is_bare(folder: Path) -> bool:
    """Return whether a folder has nothing but locks and a marker without its name.

    A process that died before it marked the folder left them.
    """

    def is_ours(entry: Path) -> bool:
        is_file = is_real(entry, stat.S_IFREG)
        is_lock = entry.name in names.LOCKS and is_file and entry.lstat().st_size == 0
        return is_lock or (entry.name == names.NEW_MARKER and is_file)

    return all(map(is_ours, folder.iterdir()))


def make_generation(path: Path, above: str) -> Path:
    """Create the folder of the next generation; it has its marker before it has its name.

    above  the generation that CURRENT names, even if it is gone; "0" without one
    """
    taken = [above, *(old.name for old in generations(path))]
    taken += map(build_of, partition_folders(path))
    number = max(map(int, taken)) + 1
    while os.path.lexists(path / f"{number:06d}"):  # not ours, so it stays
        number += 1
    generation = path / f"{number:06d}"
    if not names.GENERATION.fullmatch(generation.name):
        raise StoreError(f"`{path}` has no generation numbers left; build under another name")
    temporary = path / f".{generation.name}.{names.NEW}"
    temporary.mkdir()
    try:
        _mark(temporary, _GENERATION)
        temporary.rename(generation)
    except BaseException:  # for example a full disk
        shutil.rmtree(temporary)
        raise
    return generation


def generations(path: Path) -> list[Path]:
    """Return the folders of the generations of an index, complete or not, oldest first."""
    return [
        folder
        for folder in _folders_named(path, names.GENERATION)
        if is_marked(folder, _GENERATION) or is_manifest(folder / names.MANIFEST)
    ]


def is_committed(generation: Path) -> bool:
    """Return whether a generation has its manifest, which is written last."""
    return os.path.lexists(generation / names.MANIFEST)


def collect_garbage(path: Path, keep: Collection[str]) -> None:
    """Remove all generations but those to keep, and what interrupted processes left.

    Partitions are removed with their generation. The index is locked.
    """
    for entry in sorted(path.iterdir()):
        if names.TEMPORARY_FOLDER.fullmatch(entry.name) and is_real(entry, stat.S_IFDIR):
            shutil.rmtree(entry)
        elif entry.name == names.NEW_CURRENT:
            entry.unlink()
    for generation in generations(path):
        if generation.name not in keep:
            gone = generation.with_name(f".{generation.name}.{names.GONE}")
            if is_real(gone, stat.S_IFDIR):  # a removal was interrupted
                shutil.rmtree(gone)
            generation.rename(gone)
            shutil.rmtree(gone)
    for folder in partition_folders(path):
        if build_of(folder) not in keep:
            # Files next to its generations stay.
            collect_garbage(folder, ())
            for name in (names.CURRENT, names.MARKER, *names.LOCKS):
                (folder / name).unlink(missing_ok=True)
            remove_empty(folder)


def remove_empty(folder: Path) -> bool:
    """Remove a folder if it is empty; return False if it is not."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _folders_named(path: Path, pattern: re.Pattern[str]) -> list[Path]:
    if not path.is_dir():
        return []
    return sorted(
        entry
        for entry in path.iterdir()
        if pattern.fullmatch(entry.name) and is_real(entry, stat.S_IFDIR)
    )


def _mark(folder: Path, kind: str) -> None:
    replace_file(folder / names.MARKER, f"{kind}\n\n{_NOTES[kind]}\n")
