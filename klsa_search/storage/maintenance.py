"""Upkeep: look over the indexes of a home, go back, undo writes, remove one."""

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
    HOLDERS,
    JUDGED,
    LOCKS,
    MARKER,
    NAME,
    NEW_SYNONYMS,
    SYNONYMS,
)


@dataclass(frozen=True)
class Rollback:
    """What going back has done.

    manifest  of the generation that is in use now
    now       its name
    before    the generation that was in use; None where CURRENT was damaged
    """

    manifest: Manifest
    now: str
    before: str | None


def indexes_in(home: Path) -> list[Path]:
    """Folders of all indexes of a home, by name; one that cannot be looked into counts."""
    if not home.is_dir():
        return []
    return sorted(path for path in home.iterdir() if path.name[0] != "." and _has_current(path))


def unfinished_in(home: Path) -> list[Path]:
    """Folders of a home that are indexes without a CURRENT, by name.

    A build, a restore or a deletion is at work there, or was interrupted.
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
    """Point CURRENT at another whole generation; the present one stays too.

    to  its name; by default the newest that is older than the one in use, or the newest of all
        where CURRENT is damaged
    IndexNotFound; StoreError if there is none, or the index is being changed; IndexDamaged or
    FormatUnsupported for a generation that is not whole. File sizes are checked, and the sum of
    its manifest where CURRENT has it; `verify` checks the rest.
    """
    _refuse_other(path)
    with index_lock(path):
        before = named(path)
        sealed = committed_generations(path)
        target = _chosen(path, sealed, before, to)
        manifest = read_manifest(target)
        check_sizes(target, manifest)
        write_current(path, Current(target.name, manifest_checksums(path, sealed)))
        (path / DELETED).unlink(missing_ok=True)
    return Rollback(manifest, target.name, before)


def undo_writes(path: Path, batches: int = 1) -> LogPosition:
    """Undo the last batches of writes to the generation in use; return how far its log goes then.

    A batch is what one call wrote, at most a thousand documents. IndexNotFound; IndexBusy;
    StoreError if there are fewer.
    """
    _refuse_other(path)
    with writing(path):
        generation = current_generation(path)
        standing = sum(batch.undone is None for batch in WriteLog(generation).batches())
        if not 1 <= batches <= standing:
            raise StoreError(
                f"`{path}` has {standing:,} batches of writes to undo, not "
                f"{batches:,}; give a smaller number",
                field="writes",
            )
        with LogWriter(generation) as writer:
            return writer.undo(batches)


def delete_index(path: Path) -> list[Path]:
    """Remove an index, damaged or not: out of use in one step, then from the disk.

    Files that are not the index's stay, and are returned; of a link to an index the link goes.
    A deletion that was killed is finished by another, or by the next build. IndexNotFound if there
    is none, StoreError for what is no index, or if it is being changed.
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
        ours = (SYNONYMS, NEW_SYNONYMS, *JUDGED, *HOLDERS, DELETED, MARKER, *reversed(LOCKS))
        for name in ours:
            (path / name).unlink(missing_ok=True)
    return [] if remove_empty(path) else sorted(path.iterdir())


def _refuse_other(path: Path) -> None:
    """StoreError for what is no index, IndexNotFound if nothing is there."""
    refuse_foreign(path)
    if not is_index(path):
        current_generation(path)


def _chosen(path: Path, sealed: list[Path], before: str | None, to: str | None) -> Path:
    there = ", ".join(generation.name for generation in sealed) or "none"
    older = [each for each in sealed if before is None or each.name < before]
    for generation in reversed(older) if to is None else sealed:
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
        # Opening it reports what is wrong; lost+found is not an index, and not readable.
        return bool(NAME.fullmatch(path.name))
    except OSError:
        return False
    return True
