"""Maintenance of indexes: list, roll back, undo writes, delete."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from klsa_search.errors import StoreError
from klsa_search.storage.current import Current, current_generation, write_current
from klsa_search.storage.directories import (
    collect_garbage,
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
from klsa_search.storage.log import LogPosition, WriteLog
from klsa_search.storage.log_writer import LogWriter
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import (
    CURRENT,
    DELETED,
    EMBEDDING_FILES,
    HOLDERS,
    JUDGEMENT_FILES,
    LOCKS,
    MARKER,
    NAME,
    QUERY_FILES,
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

    A build, a restore or a deletion is running there, or was interrupted.
    """
    if not home.is_dir():
        return []
    return sorted(
        path
        for path in home.iterdir()
        if NAME.fullmatch(path.name)
        and os.path.isfile(path / MARKER)
        and is_index(path)
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
        target = _chosen(path, committed, before, to)
        manifest = read_manifest(target)
        check_sizes(target, manifest)
        write_current(path, Current(target.name, manifest_checksums(path, committed)))
        (path / DELETED).unlink(missing_ok=True)
    return Rollback(manifest, target.name, before)


def undo_writes(path: Path, batches: int = 1) -> LogPosition:
    """Undo the last batches of writes to the generation in use; return the new end of its log.

    A batch is what one call wrote, at most a thousand documents. Raise IndexNotFound; IndexBusy;
    StoreError if there are fewer.
    """
    _refuse_other(path)
    with writing(path):
        generation = current_generation(path)
        effective = sum(batch.undone is None for batch in WriteLog(generation).batches())
        if not 1 <= batches <= effective:
            raise StoreError(
                f"`{path}` has {effective:,} batches of writes to undo, not "
                f"{batches:,}; give a smaller number",
                field="writes",
            )
        with LogWriter(generation) as writer:
            return writer.undo(batches)


def delete_index(path: Path) -> list[Path]:
    """Delete an index, damaged or not: first take it out of use in one step, then remove its files.

    Files that do not belong to the index stay, and are returned. Of a symbolic link only the link
    is removed. A later deletion or build finishes one that was interrupted. Raise IndexNotFound;
    StoreError if it is not an index or is being changed.
    """
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
        own = (*QUERY_FILES, *JUDGEMENT_FILES, *EMBEDDING_FILES, *HOLDERS, DELETED, MARKER)
        for name in (*own, *reversed(LOCKS)):
            (path / name).unlink(missing_ok=True)
    return [] if remove_empty(path) else sorted(path.iterdir())


def _refuse_other(path: Path) -> None:
    """Raise StoreError if the path is not an index, IndexNotFound if nothing is there."""
    refuse_foreign(path)
    if not is_index(path):
        current_generation(path)


def _chosen(path: Path, committed: list[Path], before: str | None, to: str | None) -> Path:
    there = ", ".join(generation.name for generation in committed) or "none"
    older = [each for each in committed if before is None or each.name < before]
    for generation in reversed(older) if to is None else committed:
        if to in (None, generation.name):
            return generation
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
