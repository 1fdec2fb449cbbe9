"""Maintenance of indexes: list, verify, copy, roll back, undo writes, delete."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from klsa_search.core.wording import counted
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage import directories, names
from klsa_search.storage.catalog_entry import replace_rows, rows_of, verify_entry
from klsa_search.storage.checksums import check_again, check_sizes
from klsa_search.storage.current import (
    Current,
    changed_file_error,
    current_build,
    read_current,
    write_current,
)
from klsa_search.storage.files import sync, writable, write_fresh
from klsa_search.storage.generations import (
    commit,
    committed_generations,
    index_lock,
    manifest_checksums,
    named,
    new_generation,
    remove_configuration,
    sync_files,
    writing,
)
from klsa_search.storage.manifest import Manifest, read_manifest, sha256_of
from klsa_search.storage.partitions import (
    documents_of,
    generations_in_use,
    generations_of_build,
    partition_paths,
    with_files,
)
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter


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

    def is_unfinished(path: Path) -> bool:
        if os.path.lexists(path / names.CURRENT):
            return False
        is_marked = os.path.isfile(path / names.MARKER) and directories.is_marked(path)
        return is_marked or directories.is_abandoned(path)

    return sorted(p for p in home.iterdir() if names.NAME.fullmatch(p.name) and is_unfinished(p))


def verify(path: Path) -> Manifest:
    """Read every file and every write of an index and compare the checksums; IndexDamaged.

    Of generations that are not in use only the manifests are read. Files derived from build and
    log (`delta-*.npz`, `saturated-*.bin`) are compared when they are used. Cost: one read of each.
    """
    verify_shared(path)
    generation = current_build(path)
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_again(generation, manifest)
    WriteLog(generation).check()
    _check_kept(path)
    _, *parts = generations_of_build(generation)
    return with_files(path, manifest, {part: verify(part.parent) for part in parts})


def _check_kept(path: Path) -> None:
    """Compare the manifests of generations that are kept with their checksums; IndexDamaged."""
    current = read_current(path)
    try:
        for name in current.sums.keys() - {current.generation}:
            read_manifest(path / name)
    except IndexDamaged:
        if read_current(path) == current:  # otherwise a build has removed the generation meanwhile
            raise


def verify_shared(path: Path) -> None:
    """Read the files of an index outside its generations; IndexDamaged."""
    current_build(path)
    if os.path.lexists(path / names.MARKER) and not directories.is_marked(path):
        raise IndexDamaged(
            f"`{path / names.MARKER}` has changed since it was written; the next "
            "build will write it again"
        )
    verify_entry(path)


def copy_index(source: Path, target: Path) -> Manifest:
    """Copy the generation in use with its log and its rows of the catalogue to a new folder.

    The target becomes an index when the copy is complete; it replaces what an interrupted copy or
    build left there. The index may be searched and written meanwhile: the copy has all writes
    acknowledged when its log is copied, last. Every file is compared with its checksum.
    Raise IndexNotFound; IndexDamaged names a changed file of the source; StoreError if the target
    exists, the generation was removed meanwhile, or the disk is full. Cost: reading and writing
    all files.
    """
    if os.path.lexists(target) and not directories.is_unfinished(target):
        raise _taken(target)
    generations = generations_in_use(source)
    with new_generation(target) as copy, ExitStack() as partitions:
        if os.path.lexists(target / names.CURRENT):  # completed by another process meanwhile
            raise _taken(target)
        fresh = [copy]
        count = len(generations) - 1  # of partitions and their terms, if it has any
        for folder in partition_paths(copy, count - 1)[:count]:
            fresh.append(partitions.enter_context(new_generation(folder)))
        manifests = list(map(_copy_files, generations, fresh))
        copy_logs(source, generations, fresh)
        replace_rows(target, rows_of(source, generations[0].name), copy.name)
        copied = dict(zip(fresh, manifests, strict=True))
        for generation, manifest in reversed(copied.items()):  # last the one that has the others
            sync_files(generation)
            commit(generation, manifest)
    return with_files(target, copied.pop(copy), copied)


def _copy_files(generation: Path, fresh: Path) -> Manifest:
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    for name in manifest.files:
        (fresh / name).parent.mkdir(exist_ok=True)
        try:
            shutil.copyfile(generation / name, fresh / name)
        except FileNotFoundError as error:
            raise StoreError(
                f"`{generation}` was removed during the copy; copy the index again"
            ) from error
        actual = sha256_of(fresh / name)
        if actual != manifest.files[name].sha256:
            raise changed_file_error(generation / name)
    return manifest


def copy_logs(path: Path, generations: Sequence[Path], targets: Sequence[Path]) -> None:
    """Copy the logs of all partitions of an index, as they are at one moment, to empty folders.

    Writers wait only if one of them writes during the first attempt.
    """
    logs = [WriteLog(generation) for generation in generations]
    for attempt in range(2):
        with writing(path) if attempt else nullcontext():
            before = [log.last() for log in logs]
            for log, target in zip(logs, targets, strict=True):
                for name in (names.LOG_ID, names.WRITE_LOG):  # of the first attempt
                    (target / name).unlink(missing_ok=True)
                log.copy_to(target)
            if len(logs) == 1 or [log.last() for log in logs] == before:
                return


def _taken(target: Path) -> StoreError:
    return StoreError(f"`{target}` already exists; choose another name, or delete it first")


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
        before = named(path)
        committed = committed_generations(path)
        target = _chosen(path, [generation.name for generation in committed], before, to)
        for generation in generations_of_build(path / target):
            check_sizes(generation, read_manifest(generation))
        write_current(path, Current(target, manifest_checksums(path, committed)))
        (path / names.DELETED).unlink(missing_ok=True)
    return Rollback(read_manifest(path / target), target, before)


def undo_writes(path: Path, batches: int = 1) -> int:
    """Undo the last batches of writes to the build in use; return how many writes remain.

    A batch is what one call wrote, at most a thousand documents; in partitions, all that it wrote
    to any of them. Raise IndexNotFound; IndexBusy; StoreError if there are fewer.
    """
    _refuse_other(path)
    with ExitStack() as stack:
        stack.enter_context(writing(path))
        generations = documents_of(current_build(path))
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
                f"`{path}` has {counted(count, 'batch', 'batches')} of writes to undo, not "
                f"{batches:,}; give a smaller number",
                field="writes",
            )
        undone = Counter[Path]()
        for _ in range(batches):
            last = _last_call(effective)
            for generation, times in zip(generations, effective, strict=True):
                if times[-1:] == [last]:
                    times.pop()
                    undone[generation] += 1
        for generation, number in undone.items():
            with LogWriter(generation) as writer:
                writer.undo(number)
        return sum(WriteLog(generation).last().seq for generation in generations)


def _last_call(logs: Sequence[Sequence[str]]) -> str:
    """Return the time of the last call that wrote to the logs of partitions.

    logs  times of the batches of each, in their order, which the clock need not have had
    It is the last one in all logs that it wrote to. The clock orders only calls that wrote to
    different partitions.
    """
    ends = [times[-1] for times in logs if times]
    last = [end for end in ends if all(end not in times[:-1] for times in logs)]
    return max(last or ends)


def delete_index(path: Path) -> list[Path]:
    """Delete an index, damaged or not: first take it out of use in one step, then remove its files.

    Also delete a folder that an interrupted build or restore left before it wrote its first file.
    Files that do not belong to the index stay, and are returned. Of a symbolic link only the link
    is removed. A later deletion or build finishes one that was interrupted. Raise IndexNotFound;
    StoreError if it is not an index or is being changed.
    """
    if not directories.is_abandoned(path):
        _refuse_other(path)
    if path.is_symlink():
        with writable(path):
            path.unlink()
        return []
    with index_lock(path):
        directories.mark_index(path)
        if os.path.lexists(path / names.CURRENT):
            os.replace(path / names.CURRENT, path / names.DELETED)
        elif not os.path.lexists(path / names.DELETED):
            write_fresh(path / names.DELETED, "")
        sync(path)
        directories.collect_garbage(path, keep=())
        remove_configuration(path)
        for name in (names.DELETED, names.MARKER, *reversed(names.LOCKS)):
            (path / name).unlink(missing_ok=True)
    return [] if directories.remove_empty(path) else sorted(path.iterdir())


def _refuse_other(path: Path) -> None:
    """Raise StoreError if the path is not an index, IndexNotFound if nothing is there."""
    directories.refuse_foreign(path)
    if not directories.is_index(path):
        current_build(path)


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
    try:
        (path / names.CURRENT).lstat()
    except PermissionError:
        # Opening it reports the reason; lost+found is not an index, and not readable.
        return bool(names.NAME.fullmatch(path.name))
    except OSError:
        return False
    return True
