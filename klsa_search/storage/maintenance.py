"""Maintenance of indexes: list, roll back, undo writes, delete."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.catalog_entry import change_entry
from klsa_search.storage.current import Current, current_generation, write_current
from klsa_search.storage.directories import (
    collect_garbage,
    is_abandoned,
    is_index,
    mark_index,
    partition_folders,
    refuse_foreign,
    remove_empty,
)
from klsa_search.storage.files import sync, writable, write_fresh
from klsa_search.storage.generations import (
    check_sizes,
    committed_generations,
    index_lock,
    manifest_checksums,
    named,
    writing,
)
from klsa_search.storage.log import WriteLog
from klsa_search.storage.log_writer import LogWriter
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import (
    CATALOG_FILES,
    CATALOG_ID,
    CURRENT,
    DELETED,
    EMBEDDING_FILES,
    LOCKS,
    MARKER,
    NAME,
    NEW,
    PARTITIONS,
    PARTITIONS_WORK,
)
from klsa_search.storage.partitions import (
    PartitionSet,
    former_builds,
    former_file,
    is_partitioned,
    keep_partitions,
    parts_of,
    read_partitions,
    restore_partitions,
    retire_partitions,
    write_partitions,
)


@dataclass(frozen=True)
class Rollback:
    """Result of a rollback.

    manifest  of the generation in use now
    now       its name
    before    the generation that was in use; None if CURRENT was damaged
    """

    manifest: Manifest
    now: str
    before: str | None


def indexes_in(home: Path) -> list[Path]:
    """Return the folders of all indexes in a directory, by name, unreadable ones included."""
    if not home.is_dir():
        return []
    return sorted(path for path in home.iterdir() if path.name[0] != "." and _has_current(path))


def unfinished_in(home: Path) -> list[Path]:
    """Return the folders of indexes without a CURRENT, by name.

    A build, a restore or a deletion is running there, or was interrupted, perhaps before it wrote
    its first file.
    """
    if not home.is_dir():
        return []
    return sorted(
        path
        for path in home.iterdir()
        if NAME.fullmatch(path.name)
        and (is_abandoned(path) or (os.path.isfile(path / MARKER) and is_index(path)))
        and not os.path.lexists(path / CURRENT)
        and not is_partitioned(path)
    )


def rollback(path: Path, to: str | None = None) -> Rollback:
    """Point CURRENT at another complete generation; no generation is removed.

    to  its name; by default the newest that is older than the one in use, or the newest of all
        if CURRENT is damaged
    Raise IndexNotFound; StoreError if there is none or the index is being changed; IndexDamaged or
    FormatUnsupported if the generation is not intact. File sizes are checked, and the checksum of
    its manifest if CURRENT has it; `verify` checks the rest.
    """
    _refuse_other(path)
    with index_lock(path):
        before = _in_use(path)
        committed = committed_generations(path)
        builds = sorted({*(generation.name for generation in committed), *former_builds(path)})
        target = _chosen(path, builds, before, to)
        if target in former_builds(path):
            manifest = _checked(path, target)
            if before is not None and is_partitioned(path):
                keep_partitions(path)
            restore_partitions(path, target)
        else:
            manifest = read_manifest(path / target)
            check_sizes(path / target, manifest)
            write_current(path, Current(target, manifest_checksums(path, committed)))
            if before is not None and is_partitioned(path):
                retire_partitions(path)
            else:
                (path / PARTITIONS).unlink(missing_ok=True)
        (path / DELETED).unlink(missing_ok=True)
    return Rollback(manifest, target, before)


def _in_use(path: Path) -> str | None:
    """Return the name of the build in use; None if CURRENT or PARTITIONS is damaged."""
    if not is_partitioned(path):
        return named(path)
    try:
        return read_partitions(path).generation
    except IndexDamaged:
        return None


def _checked(path: Path, build: str) -> Manifest:
    """Return the manifest of a former build of partitions; errors as of `rollback`."""
    partition_set = read_partitions(path, build)
    for name in partition_set.all_folders:
        generation = current_generation(path / name)
        check_sizes(generation, read_manifest(generation))
    return partition_set.manifest


def use_partitions(path: Path, partition_set: PartitionSet) -> None:
    """Use new partitions, in one step; the index is locked.

    What was in use before is kept for a rollback, and other builds are removed.
    """
    before = read_partitions(path).generation if is_partitioned(path) else None
    if before is not None:
        keep_partitions(path)
    write_partitions(path, partition_set)
    if before is not None:
        (path / CURRENT).unlink(missing_ok=True)
    kept = named(path)
    collect_garbage(path, [] if kept is None else [kept])
    remove_partitions(path, {partition_set.generation, before or partition_set.generation})


def remove_partitions(path: Path, keep: Collection[str] = ()) -> None:
    """Remove all partitions but those of some builds, and what an interrupted build left.

    The index is locked.
    """
    for build in former_builds(path):
        if build not in keep:
            former_file(path, build).unlink()
    for fresh in path.glob(f".{PARTITIONS}*.{NEW}"):
        fresh.unlink()
    shutil.rmtree(path / PARTITIONS_WORK, ignore_errors=True)
    for folder in partition_folders(path):
        if folder.name.partition("-")[0] not in keep:
            mark_index(folder)  # a process may have died before it did
            delete_index(folder)


def undo_writes(path: Path, batches: int = 1) -> int:
    """Undo the last batches of writes to the build in use; return how many writes remain.

    A batch is what one call wrote, at most a thousand documents; in partitions, all that it wrote
    to any of them. Raise IndexNotFound; IndexBusy; StoreError if there are fewer.
    """
    _refuse_other(path)
    with ExitStack() as stack:
        stack.enter_context(writing(path))
        generations = [current_generation(part) for part in parts_of(path)]
        for generation in generations:
            if generation.parent != path:
                stack.enter_context(writing(generation.parent))
        effective = [
            [batch.time for batch in WriteLog(generation).batches() if batch.undone is None]
            for generation in generations
        ]
        count = len(set(chain.from_iterable(effective)))
        if not 1 <= batches <= count:
            raise StoreError(
                f"`{path}` has {count:,} batches of writes to undo, not "
                f"{batches:,}; give a smaller number",
                field="writes",
            )
        undone = Counter[Path]()
        for _ in range(batches):
            last = max(times[-1] for times in effective if times)
            for generation, times in zip(generations, effective, strict=True):
                if times[-1:] == [last]:
                    times.pop()
                    undone[generation] += 1
        for generation, number in undone.items():
            with LogWriter(generation) as writer:
                writer.undo(number)
        return sum(WriteLog(generation).last().seq for generation in generations)


def delete_index(path: Path) -> list[Path]:
    """Delete an index, damaged or not: first take it out of use in one step, then remove its files.

    So is a folder that an interrupted build or restore left before it wrote its first file.

    Files that do not belong to the index stay, and are returned. Of a symbolic link only the link
    is removed. A later deletion or build finishes one that was interrupted. Raise IndexNotFound;
    StoreError if it is not an index or is being changed.
    """
    if not is_abandoned(path):
        _refuse_other(path)
    if path.is_symlink():
        with writable(path):
            path.unlink()
        return []
    with index_lock(path):
        mark_index(path)
        if os.path.lexists(path / CURRENT):
            os.replace(path / CURRENT, path / DELETED)
        elif not os.path.lexists(path / DELETED):
            write_fresh(path / DELETED, "")
        sync(path)
        collect_garbage(path, keep=())
        (path / PARTITIONS).unlink(missing_ok=True)
        remove_partitions(path)
        if os.path.lexists(path / CATALOG_ID):
            with suppress(IndexDamaged), change_entry(path) as entry:
                entry.remove()
        names = (*CATALOG_FILES, *EMBEDDING_FILES, DELETED, MARKER)
        for name in (*names, *reversed(LOCKS)):
            (path / name).unlink(missing_ok=True)
    return [] if remove_empty(path) else sorted(path.iterdir())


def _refuse_other(path: Path) -> None:
    """Raise StoreError if the path is not an index, IndexNotFound if nothing is there."""
    refuse_foreign(path)
    if not is_index(path):
        current_generation(path)


def _chosen(path: Path, builds: Sequence[str], before: str | None, to: str | None) -> str:
    there = ", ".join(builds) or "none"
    older = [build_ for build_ in builds if before is None or build_ < before]
    for build in reversed(older) if to is None else builds:
        if to in (None, build):
            return build
    wanted = f"generation {to!r}" if to is not None else f"generation before {before}"
    raise StoreError(
        f"`{path}` has no {wanted}; its generations are: {there}; choose one with --to (in "
        "Python to=), or rebuild the index",
        field="to",
    )


def _has_current(path: Path) -> bool:
    if is_partitioned(path):
        return True
    try:
        (path / CURRENT).lstat()
    except PermissionError:
        # Opening it reports the reason; lost+found is not an index, and not readable.
        return bool(NAME.fullmatch(path.name))
    except OSError:
        return False
    return True
