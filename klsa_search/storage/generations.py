"""Generations: build a new one, then switch.

    <home>/<name>/KLSA-INDEX         says that the folder is an index
    <home>/<name>/<generation>/...   files, then manifest.json
    <home>/<name>/CURRENT            the generation in use, replaced atomically
    <home>/<name>/LOCK               held by the process that changes something

A build that dies leaves a marked folder without a manifest, or one that CURRENT never named; the
next one removes it. The generation that a build replaces stays, for readers that still hold it and
for who wants to go back; the one before that is removed once the new one is sealed, never earlier.
Where the one in use is damaged, the newest that is whole stays; where CURRENT is, all that are.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from klsa_search.errors import FormatUnsupported, IndexDamaged, StoreError
from klsa_search.storage.current import Current, read_current, step_for, write_current
from klsa_search.storage.directories import (
    collect_garbage,
    generations,
    is_committed,
    is_index,
    make_generation,
    mark_index,
    refuse_foreign,
    remove_empty,
    remove_generation,
    work_folders,
)
from klsa_search.storage.files import is_real, read_regular, sync, writable, write_fresh
from klsa_search.storage.locks import exclusive_lock
from klsa_search.storage.manifest import FileEntry, Manifest, read_manifest, sha256_of
from klsa_search.storage.names import (
    CURRENT,
    DELETED,
    HOLDERS,
    JUDGED,
    LIVING,
    LOCK,
    LOCKS,
    MANIFEST,
    MARKER,
    NEW_CURRENT,
    NEW_SYNONYMS,
    SYNONYMS,
    WRITING,
)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_PATIENCE: Final = 10.0
"""Seconds that who writes waits for who else does."""


@contextmanager
def new_generation(path: Path, *, beside_writes: bool = False) -> Iterator[Path]:
    """Give an empty folder for the next generation, alone.

    beside_writes  let the log be written to meanwhile: who seals takes what was over
    Whatever fails inside removes what was made here and nothing else, unless CURRENT names the
    generation by then. StoreError if the path holds something that is no index, is being changed by
    another, or cannot be written to: that names a file, or at least the folder.
    """
    refuse_foreign(path)
    made = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    try:
        with writable(path):
            path.mkdir(parents=True, exist_ok=True)
            for folder in made:
                sync(folder.parent)
        with index_lock(path, beside_writes=beside_writes), _marked(path):
            _sweep_dead(path)
            generation = make_generation(path, above=named(path) or "")
            try:
                yield generation
            except BaseException as failure:
                if isinstance(failure, OSError) and failure.errno in _NO_ROOM:
                    # A write that fails does not say where; whatever it was, it was in here.
                    failure.filename = failure.filename or str(generation)
                gone = isinstance(failure, FileNotFoundError) and not generation.is_dir()
                if named(path) != generation.name:
                    with suppress(OSError):  # what stays is dead, and the next build removes it
                        remove_generation(generation)
                if gone:
                    raise StoreError(
                        f"`{generation}` was removed during the build by another "
                        "program; build again"
                    ) from failure
                raise
    except BaseException:
        for folder in made:
            remove_empty(folder)
        raise


@contextmanager
def index_lock(path: Path, *, beside_writes: bool = False) -> Iterator[None]:
    """Hold the locks of an index; IndexBusy while another does.

    beside_writes  leave that of writing to the log to others
    """
    with ExitStack() as holding:
        holding.enter_context(exclusive_lock(path / LOCK))
        if not beside_writes:
            holding.enter_context(writing(path))
        for name in (CURRENT, NEW_CURRENT, DELETED, MARKER):
            if is_real(path / name, stat.S_IFDIR):
                raise StoreError(
                    f"`{path / name}` is a folder that does not belong to the index; move it away"
                )
        yield


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the lock of writing to the log of an index; IndexBusy while another does.

    A write takes moments, so others are waited for; a build is not.
    """
    with exclusive_lock(path / WRITING, patience=_PATIENCE):
        yield


def sync_files(generation: Path) -> None:
    """Make all files of a generation durable; others may write to the log of the index meanwhile.

    Cost: writing what the system has not written yet, up to all of it.
    """
    for file in sorted(generation.iterdir()):
        sync(file)
    sync(generation)


def commit(generation: Path, manifest: Manifest) -> None:
    """Write the manifest, durably, and point CURRENT at the generation, whose files are synced.

    Then unneeded generations are removed; StoreError if that fails, with the new one in use.
    """
    path = generation.parent
    text = manifest.model_dump_json(indent=1) + "\n"
    write_fresh(generation / MANIFEST, text)
    sync(generation)
    forerunners = _forerunners(generation)
    sums = manifest_checksums(path, forerunners)
    sums[generation.name] = hashlib.sha256(text.encode()).hexdigest()
    write_current(path, Current(generation.name, sums))
    sync(path.parent)
    try:
        collect_garbage(path, keep=[each.name for each in (*forerunners, generation)])
    except OSError as error:
        raise StoreError(
            f"built generation `{generation.name}` of `{path}`, but could not "
            f"remove an old one ({error}); check its owner and permissions"
        ) from error


def describe_files(generation: Path) -> dict[str, FileEntry]:
    """Size and sum of the files of a generation, without manifest, mark and what comes after it.

    Cost: reading them.
    """
    return {
        path.name: FileEntry(bytes=path.stat().st_size, sha256=sha256_of(path))
        for path in sorted(generation.iterdir())
        if path.name not in (MANIFEST, MARKER) and not LIVING.fullmatch(path.name)
    }


def check_sizes(generation: Path, manifest: Manifest) -> None:
    """IndexDamaged if a file is missing or not as long as the manifest says."""
    for name, entry in manifest.files.items():
        path = generation / name
        size = path.stat().st_size if path.is_file() else None
        if size != entry.bytes:
            found = "is missing" if size is None else f"has {size} bytes, not {entry.bytes}"
            raise IndexDamaged(f"`{path}` {found}; {step_for(path)}")


def committed_generations(path: Path) -> list[Path]:
    """Folders of the generations that are whole, oldest first: what CURRENT can be pointed at."""
    return [generation for generation in generations(path) if is_committed(generation)]


def named(path: Path) -> str | None:
    """Name of the generation in use; None where CURRENT is not there or damaged."""
    try:
        return read_current(path).generation
    except StoreError:
        return None


def manifest_checksums(path: Path, sealed: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of the manifests of these generations: as CURRENT knows it, else as it is now."""
    try:
        sums = dict(read_current(path).sums)
    except StoreError:
        sums = {}
    names = [generation.name for generation in sealed]
    for name in names:
        with suppress(OSError):  # one that cannot be read is damaged: it has no sum to keep
            if name not in sums:
                sums[name] = hashlib.sha256(read_regular(path / name / MANIFEST)).hexdigest()
    return {name: sums[name] for name in names if name in sums}


@contextmanager
def _marked(path: Path) -> Iterator[None]:
    """Mark the folder as an index; unmark it if it was bare and what is done fails."""
    bare = not is_index(path)
    try:
        mark_index(path)
        yield
    except BaseException:
        if bare and not generations(path) and not work_folders(path):
            for name in (MARKER, SYNONYMS, NEW_SYNONYMS, *JUDGED, *HOLDERS, *LOCKS):
                (path / name).unlink(missing_ok=True)
        raise


def _sweep_dead(path: Path) -> None:
    """Remove what dead processes left: builds without a manifest, and the rest of a deletion."""
    deleted = os.path.lexists(path / DELETED)
    keep: list[str] = []
    if not deleted or os.path.lexists(path / CURRENT):
        keep = [generation.name for generation in committed_generations(path)]
        keep += [named(path) or ""]
    collect_garbage(path, keep, work=deleted)
    if deleted:
        (path / DELETED).unlink()


def _forerunners(generation: Path) -> list[Path]:
    """Find the generations that a new one keeps: what CURRENT names, if that is whole.

    Otherwise the newest complete one; all of them if CURRENT does not say which was in use. What
    cannot be judged is kept too, and everything if no generation is complete.
    """
    path = generation.parent
    found = {each: _is_whole(each) for each in committed_generations(path) if each != generation}
    in_use = [each for each in found if each.name == named(path)]
    if in_use and found[in_use[0]]:
        return in_use
    whole = [each for each in found if found[each]]
    doubtful = [each for each in found if found[each] is None]
    return [*doubtful, *(whole[-1:] if in_use else whole)] or list(found)


def _is_whole(generation: Path) -> bool | None:
    """Say whether its manifest is what was written and its files are of that size.

    None if that is unknown: another format version, or files that we may not read.
    """
    try:
        check_sizes(generation, read_manifest(generation, former=True))
    except (FormatUnsupported, OSError):
        return None
    except IndexDamaged as damage:
        return None if isinstance(damage.__cause__, PermissionError) else False
    return True
