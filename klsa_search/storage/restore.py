"""Restore indexes from a repository of backups.

    restore_index(repository, name, path, number)     one index, under a new name
    restore_all(repository, home, number)             all indexes and aliases
    restore_partition(repository, path, build)        one partition, on the machine that serves it

A generation is committed when all its files and its log are complete.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from klsa_search.errors import IndexExists, IndexNotFound, StoreError
from klsa_search.storage.aliases import aliases_in, replace_aliases
from klsa_search.storage.catalog_entry import replace_rows
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_unfinished, mark_index
from klsa_search.storage.files import exclusive_lock
from klsa_search.storage.generations import commit, new_generation, sync_files
from klsa_search.storage.log import WriteLog
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import MANIFEST, index_path
from klsa_search.storage.partitions import generations_in_use
from klsa_search.storage.repository import ROWS, BuildCopy, IndexCopy, Repository, build_id

FOLLOWER_LOCK: Final = ".follower.lock"
_UNLIMITED: Final = -1  # seconds to wait for a lock


def restore_index(repository: Repository, name: str, path: Path, number: int | None = None) -> str:
    """Restore an index of a backup, by default the newest, to a new path; return its backup.

    An interrupted restore can be repeated. IndexNotFound, IndexExists, IndexDamaged, StoreError.
    """
    backup_name = repository.find(number)
    backup = repository.read(backup_name)
    if name not in backup.indexes:
        choices = ", ".join(sorted(backup.indexes)) or "none"
        raise IndexNotFound(
            f"no index `{name}` in the backup; choose from {choices}", field="index"
        )
    copy = backup.indexes[name]
    if os.path.lexists(path) and not is_unfinished(path):
        raise _exists(path)
    install_copy(repository, copy, path)
    return backup_name


def restore_all(repository: Repository, home: Path, number: int | None = None) -> str:
    """Restore all indexes and aliases of a backup, by default the newest; return its name.

    If an index or alias of the backup exists with other content, nothing is restored; what is equal
    stays. So an interrupted restore can be repeated. IndexExists, IndexDamaged, StoreError.
    """
    backup_name = repository.find(number)
    backup = repository.read(backup_name)
    existing = aliases_in(home)
    for name, copy in backup.indexes.items():
        path = index_path(home, name)
        is_other = os.path.lexists(path) and not is_unfinished(path) and not _is_equal(path, copy)
        if is_other or name in existing:
            raise _exists(path)
    for name, index in backup.aliases.items():
        if os.path.lexists(home / name) or existing.get(name, index) != index:
            raise _exists(home / name)
    for name, copy in backup.indexes.items():
        if not _is_equal(home / name, copy):
            install_copy(repository, copy, home / name)
    replace_aliases(home, existing | backup.aliases)
    return backup_name


def restore_partition(repository: Repository, path: Path, build: str) -> Path:
    """Restore one partition of an index, unless it is there; return the folder of its generation.

    The terms of all partitions are restored in the same way.

    path   its folder
    build  see `repository.build_id`
    Processes of one machine wait for each other, and use what the first restored. An interrupted
    restore is repeated. IndexNotFound if no backup has this build; IndexDamaged, StoreError.
    """
    if generation := generation_of_build(path, build):
        return generation
    home = path.parents[1]
    home.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(home / FOLLOWER_LOCK, timeout=_UNLIMITED):
        if generation := generation_of_build(path, build):
            return generation
        copy = partition_copy(repository, path, build)
        path.parent.mkdir(exist_ok=True)
        mark_index(path.parent)
        return _install_build(repository, copy, path)


def generation_of_build(path: Path, build: str) -> Path | None:
    """Return the generation in use of a partition if it is of this build."""
    with suppress(StoreError):  # none, or damaged
        generation = current_generation(path)
        if build_id(read_manifest(generation)) == build:
            return generation
    return None


def partition_copy(repository: Repository, path: Path, build: str) -> BuildCopy:
    """Return the copy of a partition in the newest backup that has its build; IndexNotFound."""
    index = path.parent.name
    for name in reversed(repository.names().values()):
        if copy := repository.read(name).indexes.get(index):
            for part in copy.builds:
                if part.build == build:
                    return part
    raise IndexNotFound(
        f"no backup at `{repository.target}` has partition `{path.name}` of index `{index}` as it "
        "is served; back the index up, or wait until the service follows a newer backup",
        field="follow",
    )


def is_same_build(path: Path, copy: IndexCopy) -> bool:
    """Return whether the build in use is that of the copy; its logs may differ."""
    with suppress(StoreError):  # none, or damaged
        builds = [build_id(read_manifest(generation)) for generation in generations_in_use(path)]
        return builds == [part.build for part in copy.builds]
    return False


def _is_equal(path: Path, copy: IndexCopy) -> bool:
    """Return whether an index has the documents of a copy."""
    if not is_same_build(path, copy):
        return False
    states = [WriteLog(generation).state_id() for generation in generations_in_use(path)]
    return states == [part.log_state for part in copy.builds]


def install_copy(repository: Repository, copy: IndexCopy, path: Path) -> None:
    """Restore a build with its log, and those of all partitions, then use it."""
    with new_generation(path) as generation:
        names = [*map(str, range(len(copy.builds) - 2)), "terms"] if copy.builds[1:] else []
        for name, build in zip(names, copy.builds[1:], strict=True):
            _install_build(repository, build, path / f"{generation.name}-{name}")
        manifest = _fetch(repository, copy.builds[0], generation)
        replace_shared_files(repository, copy, path, generation.name)
        sync_files(generation)
        commit(generation, manifest)
    note_checked(generation, manifest)


def _install_build(repository: Repository, copy: BuildCopy, path: Path) -> Path:
    """Restore a generation with its log, then use it; return its folder."""
    with new_generation(path) as generation:
        manifest = _fetch(repository, copy, generation)
        sync_files(generation)
        commit(generation, manifest)
    note_checked(generation, manifest)
    return generation


def _fetch(repository: Repository, copy: BuildCopy, generation: Path) -> Manifest:
    """Write the files of a build to an empty generation; return its manifest."""
    # Those that change come first: they may be gone before a long transfer ends.
    for name, file in (*copy.log.items(), *copy.generation.items()):
        if name != MANIFEST:
            (generation / name).parent.mkdir(exist_ok=True)
            repository.fetch(file, generation / name)
    with TemporaryDirectory(prefix="klsa-restore-") as folder:
        repository.fetch(copy.generation[MANIFEST], Path(folder, MANIFEST))
        manifest = read_manifest(Path(folder))
    if build_id(manifest) != copy.build:
        raise StoreError(
            f"the backup of `{generation.parent.name}` is inconsistent; use another backup"
        )
    return manifest


def replace_shared_files(repository: Repository, copy: IndexCopy, path: Path, build: str) -> None:
    """Replace what changes of an index, besides its log, by that of a copy.

    build  to which the query settings belong
    """
    if unknown := sorted(copy.shared.keys() - {ROWS}):
        raise StoreError(
            f"the backup of `{path.name}` has a file `{unknown[0]}` that this version does not "
            "know; install the version of klsa-search that wrote it"
        )
    rows = copy.shared.get(ROWS)
    with TemporaryDirectory(prefix="klsa-restore-") as folder:
        file = Path(folder, ROWS)
        if rows is not None:
            repository.fetch(rows, file)
        replace_rows(path, file.read_text(encoding="utf-8") if rows else "", build)


def _exists(path: Path) -> IndexExists:
    return IndexExists(
        f"`{path}` exists with other content; restore to another index directory or name, or "
        "delete it first"
    )
