"""Maintenance of indexes: list, roll back, undo writes, delete."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.catalog_entry import change_entry
from klsa_search.storage.current import Current, current_build, write_current
from klsa_search.storage.directories import (
    collect_garbage,
    is_abandoned,
    is_index,
    mark_index,
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
)
from klsa_search.storage.partitions import documents_of, generations_of_build


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
        before = named(path)
        committed = committed_generations(path)
        target = _chosen(path, [generation.name for generation in committed], before, to)
        for generation in generations_of_build(path / target):
            check_sizes(generation, read_manifest(generation))
        write_current(path, Current(target, manifest_checksums(path, committed)))
        (path / DELETED).unlink(missing_ok=True)
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
        (path / CURRENT).lstat()
    except PermissionError:
        # Opening it reports the reason; lost+found is not an index, and not readable.
        return bool(NAME.fullmatch(path.name))
    except OSError:
        return False
    return True
