"""Restore indexes from a repository of backups.

    restore_index(repository, name, path, number)     one index, under a new name
    restore_all(repository, home, number)             all indexes and aliases
    restore_partition(repository, path, build)        one partition, on the machine that serves it

A generation is committed when all its files and its log are complete.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from klsa_search.errors import IndexDamaged, IndexExists, IndexNotFound, StoreError
from klsa_search.storage.catalog import aliases_in, replace_aliases
from klsa_search.storage.catalog_entry import replace_rows, rows_of
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_abandoned, is_unfinished, mark_index
from klsa_search.storage.files import exclusive_lock
from klsa_search.storage.generations import (
    commit,
    committed_generations,
    named,
    new_generation,
    sync_files,
)
from klsa_search.storage.maintenance import rollback
from klsa_search.storage.manifest import Manifest, parse_manifest, read_manifest, sha256_of
from klsa_search.storage.names import CURRENT, DELETED, MANIFEST, index_path
from klsa_search.storage.partitions import generations_of_build, partition_paths
from klsa_search.storage.repository import ROWS, BuildCopy, IndexCopy, Repository, build_id
from klsa_search.storage.write_log import WriteLog

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
    if os.path.lexists(path / CURRENT) or not _is_free(repository, copy, path):
        raise _exists(path)
    _restore(repository, copy, path)
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
        if name in existing or not _is_free(repository, copy, path):
            raise _exists(path)
    for name, index in backup.aliases.items():
        if os.path.lexists(home / name) or existing.get(name, index) != index:
            raise _exists(home / name)
    for name, copy in backup.indexes.items():
        _restore(repository, copy, home / name)
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
        return install(repository, IndexCopy(builds=[copy], shared={}), path)


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


def is_same_build(generation: Path, copy: IndexCopy) -> bool:
    """Return whether a generation is the build of a copy; their logs may differ."""
    with suppress(StoreError):  # damaged
        builds = [build_id(read_manifest(part)) for part in generations_of_build(generation)]
        return builds == [part.build for part in copy.builds]
    return False


def _has_documents(generation: Path, copy: IndexCopy) -> bool:
    if not is_same_build(generation, copy):
        return False
    states = [WriteLog(part).state_id() for part in generations_of_build(generation)]
    return states == [part.log_state for part in copy.builds]


def _completed(repository: Repository, copy: IndexCopy, path: Path) -> Path | None:
    """Return the generation that an interrupted restore completed and did not yet use, or None.

    An index whose CURRENT was lost, or whose deletion was interrupted, looks similar. So all files
    and rows must be those of the copy: then nothing is lost. Cost: reading all files.
    """
    if os.path.lexists(path / CURRENT) or os.path.lexists(path / DELETED):
        return None
    builds = committed_generations(path)
    if len(builds) != 1 or not _has_documents(builds[0], copy):
        return None
    manifests = [_manifest(repository, build) for build in copy.builds]
    try:
        rows = rows_of(path, builds[0].name).encode()
        sums = {ROWS: hashlib.sha256(rows).hexdigest()} if rows else {}
        if sums != {name: file.sha256 for name, file in copy.shared.items()}:
            return None
        parts = generations_of_build(builds[0])
        if manifests != list(map(read_manifest, parts)):
            return None
        for part, build in zip(parts, copy.builds, strict=True):
            for name, file in (build.generation | build.log).items():
                if name != MANIFEST and sha256_of(part / name) != file.sha256:
                    return None
    except (IndexDamaged, FileNotFoundError):
        return None
    return builds[0]


def _is_free(repository: Repository, copy: IndexCopy, path: Path) -> bool:
    """Return whether a path is free, or has this copy already."""
    if not os.path.lexists(path) or is_unfinished(path) or is_abandoned(path):
        return True
    if build := named(path):
        return _has_documents(path / build, copy)
    return _completed(repository, copy, path) is not None


def _restore(repository: Repository, copy: IndexCopy, path: Path) -> None:
    """Restore an index that is not there, or finish a restore interrupted before its last step."""
    if name := named(path):
        if not _has_documents(path / name, copy):  # built meanwhile
            raise _exists(path)
    elif generation := _completed(repository, copy, path):
        rollback(path, generation.name)
    else:
        install(repository, copy, path)


def install(repository: Repository, copy: IndexCopy, path: Path) -> Path:
    """Restore a build with its log, and those of all partitions, then use it; return its folder."""
    build, *parts = copy.builds
    with new_generation(path) as generation:
        folders = partition_paths(generation, len(parts) - 1)
        for folder, part in zip(folders, parts, strict=False):  # without partitions no terms either
            install(repository, IndexCopy(builds=[part], shared={}), folder)
        manifest = _fetch(repository, build, generation)
        replace_shared_files(repository, copy, path, generation.name)
        sync_files(generation)
        commit(generation, manifest)
    note_checked(generation, manifest)
    return generation


def _fetch(repository: Repository, copy: BuildCopy, generation: Path) -> Manifest:
    # Those that change come first: they may be gone before a long transfer ends.
    for name, file in (*copy.log.items(), *copy.generation.items()):
        if name != MANIFEST:
            (generation / name).parent.mkdir(exist_ok=True)
            repository.fetch(file, generation / name)
    return _manifest(repository, copy)


def _manifest(repository: Repository, copy: BuildCopy) -> Manifest:
    content = repository.content(copy.generation[MANIFEST], MANIFEST)
    manifest = parse_manifest(content, Path(repository.target, MANIFEST))
    if build_id(manifest) != copy.build:
        raise StoreError(f"a backup at `{repository.target}` is inconsistent; use another backup")
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
    replace_rows(path, repository.content(rows, ROWS).decode() if rows else "", build)


def _exists(path: Path) -> IndexExists:
    return IndexExists(
        f"`{path}` exists with other content; restore to another index directory or name, or "
        "delete it first"
    )
