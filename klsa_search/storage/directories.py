"""Marking: what in a folder is ours, and removing that and nothing else.

A folder is an index, and a folder of six digits in it a generation, by the file KLSA-INDEX that
was written into it first. What the first release built has none: there a manifest decides.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

from klsa_search.errors import StoreError
from klsa_search.storage.aliases import alias_at
from klsa_search.storage.files import is_real, read_regular, write_fresh
from klsa_search.storage.manifest import files_of
from klsa_search.storage.names import (
    CURRENT,
    DELETED,
    GENERATION,
    GONE,
    HALF_DONE,
    HOLDERS,
    LIVING,
    LOCKS,
    MANIFEST,
    MARKER,
    NEW,
    NEW_CURRENT,
    SCRATCH,
    WORK,
    WRITTEN,
)

_INDEX: Final = "klsa-search index"
_GENERATION: Final = "klsa-search generation"
_NOTES: Final = {
    _INDEX: "klsa-search keeps an index here. What it did not write, it leaves alone.",
    _GENERATION: "One generation of that index: written whole, never changed, removed when two\n"
    "newer ones are whole.",
}


def is_index(path: Path) -> bool:
    """Say whether a folder is an index: marked, or built by the first release."""
    if _is_marked(path, _INDEX):
        return True
    return is_real(path / CURRENT, stat.S_IFREG) and any(
        files_of(old / MANIFEST) is not None for old in _folders_of_digits(path)
    )


def is_marked(path: Path) -> bool:
    """Say whether a folder has the mark of an index."""
    return _is_marked(path, _INDEX)


def is_unfinished(path: Path) -> bool:
    """Say whether a folder is an index of which nothing was ever finished.

    That is what an interrupted first build, or an interrupted restore, leaves.
    """
    return (
        _is_marked(path, _INDEX)
        and not os.path.lexists(path / CURRENT)
        and not os.path.lexists(path / DELETED)
        and not any(map(is_committed, generations(path)))
    )


def refuse_foreign(path: Path) -> None:
    """StoreError for a path that is there, holds something, and is not an index."""
    if not os.path.lexists(path) or is_index(path):
        return
    if target := alias_at(path):
        raise StoreError(
            f"`{path}` is an alias of `{target}`, so it was not changed; name that "
            "index, choose another name, or remove the alias (klsa-index alias "
            f"--remove {path.name})"
        )
    if not path.is_dir():
        fact = "exists and is not a folder"
    elif any(not (_is_bare_lock(entry) or _is_half_mark(entry)) for entry in path.iterdir()):
        fact = "is there and is not an index"
    else:
        return
    raise StoreError(
        f"`{path}` {fact}, so it was not changed; choose another name or another index directory"
    )


def mark_index(path: Path) -> bool:
    """Mark a folder as an index; False if it is marked."""
    if _is_marked(path, _INDEX):
        return False
    if _is_half_mark(path / MARKER):
        (path / MARKER).unlink()
    _mark(path, _INDEX)
    return True


def make_generation(path: Path, above: str = "") -> Path:
    """Make the folder of the next generation; it is marked from the moment it has its name.

    above  the generation that CURRENT names, even if it is gone
    """
    names = [above or "0", *(old.name for old in generations(path))]
    number = max(map(int, names)) + 1
    while os.path.lexists(path / f"{number:06d}"):  # not ours, and stays
        number += 1
    generation = path / f"{number:06d}"
    if not GENERATION.fullmatch(generation.name):
        raise StoreError(f"`{path}` has no generation numbers left; build under another name")
    half = path / f".{generation.name}.{NEW}"
    half.mkdir()
    try:
        _mark(half, _GENERATION)
        half.rename(generation)
    except BaseException:  # as where there is no room for a mark
        (half / MARKER).unlink(missing_ok=True)
        half.rmdir()
        raise
    return generation


def generations(path: Path) -> list[Path]:
    """Folders of the generations that are ours, whole or not, oldest first."""
    return [
        folder
        for folder in _folders_of_digits(path)
        if _is_marked(folder, _GENERATION) or files_of(folder / MANIFEST) is not None
    ]


def is_committed(generation: Path) -> bool:
    """Say whether a generation has its manifest, which is written last."""
    return os.path.lexists(generation / MANIFEST)


def work_folder(path: Path, key: str) -> Path:
    """Folder of what a build by many processes has done so far, which stays until one is sealed.

    key  32 hexadecimal digits that say what is built; the work of other builds is removed
    """
    folder = path / f".work-{key}.{NEW}"
    for other in work_folders(path):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(exist_ok=True)
    return folder


def work_folders(path: Path) -> list[Path]:
    """Folders of what unfinished builds by many processes have done."""
    if not path.is_dir():
        return []
    return [
        entry
        for entry in sorted(path.iterdir())
        if WORK.fullmatch(entry.name) and is_real(entry, stat.S_IFDIR)
    ]


def collect_garbage(path: Path, keep: Collection[str], *, work: bool = True) -> None:
    """Remove all generations but those to keep, and what dead processes left half done.

    work  that of builds which can go on, too
    """
    for folder in work_folders(path) if work else ():
        shutil.rmtree(folder)
    for entry in sorted(path.iterdir()):
        if HALF_DONE.fullmatch(entry.name) and is_real(entry, stat.S_IFDIR):
            shutil.rmtree(entry)
        elif entry.name == NEW_CURRENT:
            entry.unlink()
    for generation in generations(path):
        if generation.name not in keep:
            remove_generation(generation)


def remove_generation(generation: Path) -> None:
    """Remove a generation of ours, out of sight in one step; a file of the user's in it stays.

    Its manifest names our files; where that cannot be read, the names that builds give do.
    """
    files = files_of(generation / MANIFEST)
    last = MARKER if files is None else MANIFEST  # until it goes it says that the rest is to go
    ours = {entry for entry in generation.iterdir() if _is_ours(entry, files)}
    if ours == set(generation.iterdir()):
        gone = generation.with_name(f".{generation.name}.{GONE}")
        generation.rename(gone)
        shutil.rmtree(gone)
        return
    for entry in sorted(ours, key=lambda entry: (entry.name == last, entry)):
        if is_real(entry, stat.S_IFDIR):
            shutil.rmtree(entry)
        else:
            entry.unlink()


def remove_empty(folder: Path) -> bool:
    """Remove a folder if nothing is in it; False if something is."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _is_ours(entry: Path, files: Collection[str] | None) -> bool:
    """Say whether an entry of a generation is; `files` are those of its manifest, if it has one."""
    if is_real(entry, stat.S_IFDIR):
        return files is None and entry.name == SCRATCH
    known = WRITTEN.fullmatch(entry.name) if files is None else entry.name in files
    return bool(known or LIVING.fullmatch(entry.name)) or entry.name in (MANIFEST, MARKER)


def _folders_of_digits(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return sorted(
        entry
        for entry in path.iterdir()
        if GENERATION.fullmatch(entry.name) and is_real(entry, stat.S_IFDIR)
    )


def _is_bare_lock(entry: Path) -> bool:
    """Say whether it is a lock that a process left which died before it marked the folder."""
    if not is_real(entry, stat.S_IFREG):
        return False
    if entry.name in HOLDERS:
        return read_regular(entry, 7) in (b"", b'{"pid":')
    return entry.name in LOCKS and entry.lstat().st_size == 0


def _is_half_mark(entry: Path) -> bool:
    """Say whether it is the beginning of a mark that a process left which could not write it."""
    if entry.name != MARKER or not is_real(entry, stat.S_IFREG):
        return False
    whole, found = _text_of_mark(_INDEX).encode(), read_regular(entry, 1000)
    return len(found) < len(whole) and whole.startswith(found)


def _mark(folder: Path, kind: str) -> None:
    write_fresh(folder / MARKER, _text_of_mark(kind))


def _text_of_mark(kind: str) -> str:
    return f"{kind}\n\n{_NOTES[kind]}\n"


def _is_marked(folder: Path, kind: str) -> bool:
    marker = folder / MARKER
    if not is_real(marker, stat.S_IFREG):
        return False
    return read_regular(marker, 100).startswith(f"{kind}\n".encode())
