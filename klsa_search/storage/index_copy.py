"""Copies an index that is in use to a new folder, which is an index itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.catalog_entry import replace_rows, rows_of
from klsa_search.storage.current import step_for
from klsa_search.storage.directories import is_unfinished
from klsa_search.storage.generations import (
    check_sizes,
    commit,
    new_generation,
    sync_files,
    writing,
)
from klsa_search.storage.log import WriteLog
from klsa_search.storage.manifest import Manifest, read_manifest, sha256_of
from klsa_search.storage.names import CURRENT, LOG_ID, WRITES
from klsa_search.storage.partitions import generations_in_use, with_build, with_files


def copy_index(source: Path, target: Path) -> Manifest:
    """Copy the generation in use with its log and its rows of the catalogue to a new folder.

    The target becomes an index when the copy is complete; it replaces what an interrupted copy or
    build left there. The index may be searched and written meanwhile: the copy has all writes
    acknowledged when its log is copied, last. Every file is compared with its checksum.
    Raise IndexNotFound; IndexDamaged names a changed file of the source; StoreError if the target
    exists, the generation was removed meanwhile, or the disk is full. Cost: reading and writing
    all files.
    """
    if os.path.lexists(target) and not is_unfinished(target):
        raise _taken(target)
    generations = generations_in_use(source)
    with new_generation(target) as copy, ExitStack() as partitions:
        if os.path.lexists(target / CURRENT):  # completed by another process meanwhile
            raise _taken(target)
        fresh = [copy]
        for generation in generations[1:]:
            folder = with_build(generation.parent, copy)
            fresh.append(partitions.enter_context(new_generation(folder)))
        manifests = list(map(_copy_files, generations, fresh))
        copy_logs(source, generations, fresh)
        replace_rows(target, rows_of(source, generations[0].name), copy.name)
        copied = dict(zip(fresh, manifests, strict=True))
        for generation, manifest in reversed(copied.items()):  # last the one that has the others
            sync_files(generation)
            commit(generation, manifest)
    manifest = copied.pop(copy)
    return with_files(target, manifest, copied) if copied else manifest


def _copy_files(generation: Path, fresh: Path) -> Manifest:
    """Copy the files of a generation to an empty one; return its manifest."""
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
            raise IndexDamaged(
                f"`{generation / name}` has changed since it was built; "
                f"{step_for(generation / name)}"
            )
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
                for name in (LOG_ID, WRITES):  # of the first attempt
                    (target / name).unlink(missing_ok=True)
                log.copy_to(target)
            if len(logs) == 1 or [log.last() for log in logs] == before:
                return


def _taken(target: Path) -> StoreError:
    return StoreError(f"`{target}` already exists; choose another name, or delete it first")
