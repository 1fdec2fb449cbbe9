"""Generations: build a new one, then switch to it atomically.

    <home>/<name>/KLSA-INDEX         marks the folder as an index
    <home>/<name>/<generation>/...   files, then manifest.json
    <home>/<name>/CURRENT            names the generation in use, replaced atomically
    <home>/<name>/LOCK               locked by the process that changes the index

An interrupted build leaves a generation without a manifest, or one that CURRENT never named; the
next build removes it. The generation that a build replaces stays, for readers that use it and for
a rollback; the one before is removed after the commit. If the generation in use is damaged, the
newest intact one stays; if CURRENT is damaged, all intact ones stay.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from klsa_search.errors import FormatUnsupported, IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage import directories, names
from klsa_search.storage.catalog_entry import change_entry
from klsa_search.storage.checksums import check_sizes
from klsa_search.storage.current import Current, read_current, write_current
from klsa_search.storage.files import (
    DISK_FULL,
    exclusive_lock,
    is_real,
    read_regular,
    replace_file,
    sync,
    writable,
)
from klsa_search.storage.manifest import (
    FileEntry,
    Manifest,
    read_manifest,
    sha256_of,
    write_settings,
)
from klsa_search.storage.partitions import generations_of_build

WRITE_TIMEOUT: Final = 10.0
"""Seconds that a writer waits for another."""


@contextmanager
def new_generation(path: Path, *, allow_writes: bool = False) -> Iterator[Path]:
    """Create an empty folder for the next generation, under the lock of the index.

    allow_writes  leave the log unlocked; the caller carries over what is written meanwhile
    An exception in the block removes what was created here and nothing else, unless CURRENT already
    names the generation. Raise StoreError if the path has content that is not an index, is being
    changed by another process, or cannot be written.
    """
    directories.refuse_foreign(path)
    made = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    try:
        with writable(path):
            path.mkdir(parents=True, exist_ok=True)
            for folder in made:
                sync(folder.parent)
        with index_lock(path, allow_writes=allow_writes), _marked(path):
            _remove_leftovers(path)
            generation = directories.make_generation(path, above=named(path) or "0")
            write_settings(generation, {})  # of an interrupted build of this number
            try:
                yield generation
            except BaseException as failure:
                if isinstance(failure, OSError) and failure.errno in DISK_FULL:
                    # A failed write does not name its file; it was in this folder.
                    failure.filename = failure.filename or str(generation)
                gone = isinstance(failure, FileNotFoundError) and not generation.is_dir()
                if (in_use := named(path)) != generation.name:
                    keep = {in_use or "", *(other.name for other in directories.generations(path))}
                    with suppress(OSError):  # the next build removes what remains
                        directories.collect_garbage(path, keep - {generation.name})
                if gone:
                    raise StoreError(
                        f"`{generation}` was removed during the build by another "
                        "program; build again"
                    ) from failure
                raise
    except BaseException:
        for folder in made:
            directories.remove_empty(folder)
        raise


@contextmanager
def index_lock(path: Path, *, allow_writes: bool = False) -> Iterator[None]:
    """Lock an index; IndexBusy while another process or thread does.

    allow_writes  do not take the lock of the log
    """
    with ExitStack() as locks:
        locks.enter_context(exclusive_lock(path / names.LOCK))
        if not allow_writes:
            locks.enter_context(writing(path))
        for name in (names.CURRENT, names.NEW_CURRENT, names.DELETED, names.MARKER):
            if is_real(path / name, stat.S_IFDIR):
                raise StoreError(
                    f"`{path / name}` is a folder that does not belong to the index; move it away"
                )
        yield


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Lock the log of an index for writing; IndexBusy while another process or thread does.

    A write is short, so this waits for other writers; it does not wait for a build.
    """
    with exclusive_lock(path / names.LOG_LOCK, timeout=WRITE_TIMEOUT):
        yield


def sync_files(generation: Path) -> None:
    """Sync all files of a generation; the log of the index may be written meanwhile.

    Cost: writing what the system has not written yet.
    """
    for file in sorted(generation.rglob("*")):
        sync(file)
    sync(generation)


def commit(generation: Path, manifest: Manifest) -> None:
    """Write the manifest durably and point CURRENT at the generation, whose files are synced.

    Then remove unneeded generations; StoreError if that fails, with the new one in use.
    """
    path, text = generation.parent, manifest.as_text()
    replace_file(generation / names.MANIFEST, text)
    retained = _retained(generation)
    sums = manifest_checksums(path, retained)
    sums[generation.name] = hashlib.sha256(text.encode()).hexdigest()
    write_current(path, Current(generation.name, sums))
    sync(path.parent)
    try:
        directories.collect_garbage(path, [kept.name for kept in (*retained, generation)])
    except OSError as error:
        raise StoreError(
            f"built generation `{generation.name}` of `{path}`, but could not "
            f"remove an old one ({error}); check its owner and permissions"
        ) from error


def describe_files(generation: Path) -> dict[str, FileEntry]:
    """Return size and checksum of the files of a generation, without manifest, marker and log.

    Those of its passages are named `passages/...`. Cost: reading them.
    """
    files = (path for path in generation.rglob("*") if path.is_file())
    return {
        path.relative_to(generation).as_posix(): FileEntry(
            bytes=path.stat().st_size, sha256=sha256_of(path)
        )
        for path in sorted(files)
        if path not in (generation / names.MANIFEST, generation / names.MARKER)
        and not names.LOG_FILES.fullmatch(path.name)
    }


def committed_generations(path: Path) -> list[Path]:
    """Return the generations that have a manifest, oldest first: CURRENT can name any of them."""
    return list(filter(directories.is_committed, directories.generations(path)))


def named(path: Path) -> str | None:
    """Return the name of the generation in use; None if CURRENT is missing or damaged."""
    try:
        return read_current(path).generation
    except StoreError:
        return None


def manifest_checksums(path: Path, committed: Iterable[Path]) -> dict[str, str]:
    """Return SHA-256 of the manifests of these generations, from CURRENT if it has them."""
    try:
        sums = dict(read_current(path).sums)
    except StoreError:
        sums = {}
    kept = [generation.name for generation in committed]
    for name in kept:
        with suppress(OSError):  # an unreadable manifest is damaged and has no checksum to keep
            if name not in sums:
                sums[name] = hashlib.sha256(read_regular(path / name / names.MANIFEST)).hexdigest()
    return {name: sums[name] for name in kept if name in sums}


@contextmanager
def _marked(path: Path) -> Iterator[None]:
    """Mark the folder as an index; if the block fails and the folder was bare, unmark it."""
    bare = not directories.is_index(path)
    try:
        directories.mark_index(path)
        yield
    except BaseException:
        if bare and not directories.generations(path):
            remove_configuration(path)
            for name in (names.MARKER, *names.LOCKS):
                (path / name).unlink(missing_ok=True)
        raise


def remove_configuration(path: Path) -> None:
    """Remove what the catalogue has of an index, and the file of its embeddings.

    Rows of a damaged catalogue stay, and belong to no index.
    """
    if os.path.lexists(path / names.CATALOG_ID):
        with suppress(IndexDamaged), change_entry(path) as entry:
            entry.remove()
    for name in (*names.CATALOG_FILES, *names.EMBEDDING_FILES):
        (path / name).unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    deleted = os.path.lexists(path / names.DELETED)
    keep: list[str] = []
    if not deleted or os.path.lexists(path / names.CURRENT):
        keep = [generation.name for generation in committed_generations(path)]
        keep += [named(path) or ""]
    directories.collect_garbage(path, keep)
    if deleted and not os.path.lexists(path / names.CURRENT):
        remove_configuration(path)
    if deleted:
        (path / names.DELETED).unlink()


def _retained(generation: Path) -> list[Path]:
    """Return the generations that a new one keeps: the one that CURRENT names, if it is intact.

    Otherwise the newest intact one, or all intact ones if CURRENT is damaged. Generations of
    unknown state are kept too, and all of them if none is intact.
    """
    path = generation.parent
    intact = {
        other: _is_intact(other) for other in committed_generations(path) if other != generation
    }
    in_use = [other for other in intact if other.name == named(path)]
    if in_use and intact[in_use[0]]:
        return in_use
    usable = [other for other in intact if intact[other]]
    unknown = [other for other in intact if intact[other] is None]
    return [*unknown, *(usable[-1:] if in_use else usable)] or list(intact)


def _is_intact(generation: Path) -> bool | None:
    """Return whether the manifests of all partitions are unchanged and files have their sizes.

    None if that is unknown: another format version, or no permission to read.
    """
    try:
        for part in generations_of_build(generation):
            check_sizes(part, read_manifest(part))
    except (FormatUnsupported, OSError):
        return None
    except (IndexDamaged, IndexNotFound) as damage:
        return None if isinstance(damage.__cause__, PermissionError) else False
    return True
