"""Generations: build beside, then point.

    <home>/<name>/<generation>/...   files, then manifest.json
    <home>/<name>/CURRENT            the generation in use, replaced atomically
    <home>/<name>/LOCK               held by the one build at work

A build that dies leaves a folder without a manifest, or one that CURRENT never named; the next
build of that index removes it. So is the generation before the current one: until the next build
begins, readers that still hold it find it whole.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from klsa_search.errors import IndexDamaged, IndexNotFound, SettingsError, StoreError
from klsa_search.store.checked import check_again
from klsa_search.store.manifest import MANIFEST, FileEntry, Manifest, read_manifest, sha256_of

CURRENT = "CURRENT"
LOCK = "LOCK"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def index_path(home: Path, name: str) -> Path:
    """Folder of an index; SettingsError for a name that is no plain file name."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"name = {name!r}: an index name is 1 to 100 letters, digits, '.', '_' or '-', "
            "and begins with a letter or a digit",
            field="name",
        )
    return home / name


def current_generation(path: Path) -> Path:
    """Folder of the generation in use; IndexNotFound without one, IndexDamaged if it is gone."""
    try:
        name = (path / CURRENT).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise IndexNotFound(
            f"there is no index at {path}: build one with "
            f"klsa-index build SOURCE --name {path.name} --home {path.parent}"
        ) from None
    generation = path / name
    if not name or not generation.is_dir():
        raise IndexDamaged(
            f"{path / CURRENT} names generation {name!r}, which is not there: "
            "rebuild the index with klsa-index build"
        )
    return generation


def indexes_in(home: Path) -> list[Path]:
    """Folders of all indexes of a home, by name."""
    if not home.is_dir():
        return []
    return sorted(
        path for path in home.iterdir() if path.name[0] != "." and (path / CURRENT).is_file()
    )


@contextmanager
def new_generation(path: Path) -> Iterator[Path]:
    """Give an empty folder for the next generation, alone.

    Whatever fails inside removes it, unless CURRENT names it by then; an OSError for want of room
    names a file, or at least the folder. StoreError if another build
    of the same index is at work.
    """
    path.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        _sweep(path)
        numbers = [int(old.name) for old in path.iterdir() if old.name.isdigit()]
        generation = path / f"{max(numbers, default=0) + 1:06d}"
        generation.mkdir()
        try:
            yield generation
        except BaseException as failure:
            if isinstance(failure, OSError) and failure.errno in _NO_ROOM:
                # A write that fails does not say where; whatever it was, it was in here.
                failure.filename = failure.filename or str(generation)
            if _named(path) != generation.name:
                shutil.rmtree(generation if numbers else path, ignore_errors=True)
            raise


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    try:
        with FileLock(path / LOCK, timeout=0):
            yield
    except Timeout:
        raise StoreError(
            f"another build of {path} is at work: wait for it to end, then try again"
        ) from None


def seal(generation: Path, manifest: Manifest) -> None:
    """Write the manifest, make everything durable, and point CURRENT at the generation."""
    text = manifest.model_dump_json(indent=1)
    (generation / MANIFEST).write_text(text + "\n", encoding="utf-8")
    for path in sorted(generation.iterdir()):
        _sync(path)
    _sync(generation)
    pointer = generation.parent / (CURRENT + ".new")
    pointer.write_text(generation.name + "\n", encoding="utf-8")
    _sync(pointer)
    pointer.replace(generation.parent / CURRENT)
    _sync(generation.parent)
    _sync(generation.parent.parent)


def describe_files(generation: Path) -> dict[str, FileEntry]:
    """Size and sum of every file of a generation but the manifest. Cost: one read of each."""
    return {
        path.name: FileEntry(bytes=path.stat().st_size, sha256=sha256_of(path))
        for path in sorted(generation.iterdir())
        if path.name != MANIFEST
    }


def check_sizes(generation: Path, manifest: Manifest) -> None:
    """IndexDamaged if a file is missing or not as long as the manifest says."""
    for name, entry in manifest.files.items():
        path = generation / name
        size = path.stat().st_size if path.is_file() else None
        if size != entry.bytes:
            found = "is missing" if size is None else f"has {size} bytes, not {entry.bytes}"
            raise IndexDamaged(f"{path} {found}: rebuild the index with klsa-index build")


def verify(path: Path) -> Manifest:
    """Read every file of the generation in use and compare its sum. Cost: one read of each."""
    generation = current_generation(path)
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_again(generation, manifest)
    return manifest


def delete_index(path: Path) -> None:
    """Remove an index, damaged or not: out of sight in one step, then from the disk.

    IndexNotFound if there is none, StoreError if a build of it is at work.
    """
    if not (path / CURRENT).is_file():
        current_generation(path)
    with _alone(path):
        aside = path.with_name(f".{path.name}.deleted")
        if aside.exists():  # left by a deletion that was killed
            shutil.rmtree(aside)
        path.replace(aside)
        shutil.rmtree(aside)


def _sweep(path: Path) -> None:
    """Remove all generations but the current one: former ones, and what dead builds left."""
    current = _named(path)
    for old in path.iterdir():
        if old.name.isdigit() and old.is_dir() and old.name != current:
            shutil.rmtree(old)


def _named(path: Path) -> str:
    try:
        return (path / CURRENT).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
