"""Restore indexes from a repository of backups, once or again whenever there is a newer backup.

    restore_index(repository, name, path, number)     one index, under a new name
    restore_all(repository, home, number)             all indexes and aliases
    restore_partition(repository, path, build)        one partition, on the machine that serves it
    follow(repository, home) -> ReplicationState      make a directory equal to the newest backup
    follow_partition(repository, generation, build)   replace its log by that of the newest backup

A generation is committed when all its files and its log are complete. A later log of the same
generation replaces the earlier one in one step, so readers see the documents of an index as one
backup has them. Query settings, synonyms, rules, judgements and aliases follow, each as a whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from klsa_search.errors import IndexDamaged, IndexExists, IndexNotFound, StoreError
from klsa_search.storage import names
from klsa_search.storage.aliases import aliases_in, replace_aliases
from klsa_search.storage.catalog_entry import replace_rows, rows_of
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_abandoned, is_unfinished, mark_index
from klsa_search.storage.files import exclusive_lock, sync
from klsa_search.storage.generations import (
    commit,
    committed_generations,
    named,
    new_generation,
    sync_files,
    writing,
)
from klsa_search.storage.maintenance import delete_index, indexes_in, rollback
from klsa_search.storage.manifest import Manifest, parse_manifest, read_manifest, sha256_of
from klsa_search.storage.partitions import generations_of_build, partition_paths
from klsa_search.storage.repository import (
    ROWS,
    Backup,
    BuildCopy,
    IndexCopy,
    ReplicationState,
    Repository,
    build_id,
    number_of,
    read_state,
    write_state,
)
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import create_log

_LOCK: Final = ".follower.lock"
_UNLIMITED: Final = -1  # seconds to wait for a lock
_PATIENCE: Final = 10.0  # seconds to wait while other partitions of the machine follow


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
    if os.path.lexists(path / names.CURRENT) or not _is_free(repository, copy, path):
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
        path = names.index_path(home, name)
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
    if generation := _generation_of_build(path, build):
        return generation
    home = path.parents[1]
    home.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(home / _LOCK, timeout=_UNLIMITED):
        if generation := _generation_of_build(path, build):
            return generation
        copy = _partition_copy(repository, path, build)
        path.parent.mkdir(exist_ok=True)
        mark_index(path.parent)
        return _install(repository, IndexCopy(builds=[copy], shared={}), path)


def _generation_of_build(path: Path, build: str) -> Path | None:
    """Return the generation in use of a partition if it is of this build."""
    with suppress(StoreError):  # none, or damaged
        generation = current_generation(path)
        if build_id(read_manifest(generation)) == build:
            return generation
    return None


def _partition_copy(repository: Repository, path: Path, build: str) -> BuildCopy:
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


def _is_same_build(generation: Path, copy: IndexCopy) -> bool:
    """Return whether a generation is the build of a copy; their logs may differ."""
    with suppress(StoreError):  # damaged
        builds = [build_id(read_manifest(part)) for part in generations_of_build(generation)]
        return builds == [part.build for part in copy.builds]
    return False


def _has_documents(generation: Path, copy: IndexCopy) -> bool:
    if not _is_same_build(generation, copy):
        return False
    states = [WriteLog(part).state_id() for part in generations_of_build(generation)]
    return states == [part.log_state for part in copy.builds]


def _completed(repository: Repository, copy: IndexCopy, path: Path) -> Path | None:
    """Return the generation that an interrupted restore completed and did not yet use, or None.

    An index whose CURRENT was lost, or whose deletion was interrupted, looks similar. So all files
    and rows must be those of the copy: then nothing is lost. Cost: reading all files.
    """
    if os.path.lexists(path / names.CURRENT) or os.path.lexists(path / names.DELETED):
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
                if name != names.MANIFEST and sha256_of(part / name) != file.sha256:
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
        _install(repository, copy, path)


def _install(repository: Repository, copy: IndexCopy, path: Path) -> Path:
    """Restore a build with its log, and those of all partitions, then use it; return its folder."""
    build, *parts = copy.builds
    with new_generation(path) as generation:
        folders = partition_paths(generation, len(parts) - 1)
        for folder, part in zip(folders, parts, strict=False):  # without partitions no terms either
            _install(repository, IndexCopy(builds=[part], shared={}), folder)
        manifest = _fetch(repository, build, generation)
        _replace_shared_files(repository, copy, path, generation.name)
        sync_files(generation)
        commit(generation, manifest)
    note_checked(generation, manifest)
    return generation


def _fetch(repository: Repository, copy: BuildCopy, generation: Path) -> Manifest:
    # Those that change come first: they may be gone before a long transfer ends.
    for name, file in (*copy.log.items(), *copy.generation.items()):
        if name != names.MANIFEST:
            (generation / name).parent.mkdir(exist_ok=True)
            repository.fetch(file, generation / name)
    return _manifest(repository, copy)


def _manifest(repository: Repository, copy: BuildCopy) -> Manifest:
    content = repository.content(copy.generation[names.MANIFEST], names.MANIFEST)
    manifest = parse_manifest(content, Path(repository.target, names.MANIFEST))
    if build_id(manifest) != copy.build:
        raise StoreError(f"a backup at `{repository.target}` is inconsistent; use another backup")
    return manifest


def _replace_shared_files(repository: Repository, copy: IndexCopy, path: Path, build: str) -> None:
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


def follow(repository: Repository, home: Path) -> ReplicationState:
    """Make an index directory equal to the newest backup, unless it is; return its state.

    The directory belongs to the follower: an index that is not in the backup is deleted. So it
    must be empty the first time; StoreError otherwise, and if the repository cannot be read: then
    the directory stays as it is. It follows the index directory that wrote its first backup, and
    those that took the repository over from it; StoreError if the newest backup is of another,
    after following the newest of its own. IndexBusy while another process does the same.
    """
    home.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(home / _LOCK):
        state = read_state(home, "follow")
        if state is None:
            if indexes := [path.name for path in indexes_in(home)]:
                raise StoreError(
                    f"`{home}` has an index that was not restored from `{repository.target}` "
                    f"({indexes[0]}); follow with an empty index directory",
                    field="follow",
                )
            state = ReplicationState(repository.target)
            write_state(home, "follow", state)
        newest = repository.find()
        if newest == state.backup:
            return state
        number = number_of(newest)
        leader = state.directory
        of_leader = (
            backup
            for backup in reversed(repository.names().values())
            if leader is None or repository.read(backup).owner.continues(leader)
        )
        name = next(of_leader, None)
        ignored = None if name == newest else number
        seen = replace(state, newest=number, ignored=ignored)
        if seen != state:
            write_state(home, "follow", seen)
        if name is not None and name != state.backup:
            backup = repository.read(name)
            _make_equal(repository, backup, home)
            seen = ReplicationState(
                repository.target,
                backup=name,
                number=number_of(name),
                created=backup.created,
                newest=number,
                directory=backup.owner.id,
                ignored=ignored,
            )
            write_state(home, "follow", seen)
        if ignored is not None:
            raise StoreError(
                f"ignored backup {ignored} at `{repository.target}`: the index directory "
                f"{repository.read(newest).owner} wrote it, and `{home}` follows the one with ID "
                f"{(seen.directory or '')[:8]}; let one directory back up there, or follow the "
                "other with an empty index directory",
                field="follow",
            )
        return seen


def _make_equal(repository: Repository, backup: Backup, home: Path) -> None:
    """Make the indexes and aliases of a directory equal to a backup.

    Aliases move, all at once, when their new indexes are there, and before others are deleted.
    """
    aliases = {
        name: index for name, index in aliases_in(home).items() if name not in backup.indexes
    }
    replace_aliases(home, aliases)  # the name of an alias may be that of an index now
    faults = []
    for name, copy in sorted(backup.indexes.items()):
        path = names.index_path(home, name)
        try:
            # The logs of partitions follow one another.
            build = named(path)
            if (
                build
                and _is_same_build(path / build, copy)
                and all(
                    _replace_log(repository, part, generation)
                    for part, generation in zip(
                        copy.builds, generations_of_build(path / build), strict=True
                    )
                )
            ):
                _replace_shared_files(repository, copy, path, build)
            else:
                _install(repository, copy, path)
        except StoreError as fault:  # the others can still follow
            faults.append(fault)
    if faults:
        raise faults[0]
    replace_aliases(home, backup.aliases)
    for name in {path.name for path in indexes_in(home)} - backup.indexes.keys():
        delete_index(home / name)


def follow_partition(repository: Repository, generation: Path, build: str) -> None:
    """Replace the log of a partition by that of the newest backup of its build.

    It stays as it is if no backup has a later state. IndexBusy while another process copies here;
    IndexNotFound if no backup has this build; IndexDamaged, StoreError.
    """
    path = generation.parent
    with exclusive_lock(path.parents[1] / _LOCK, timeout=_PATIENCE):
        if _generation_of_build(path, build) == generation:
            _replace_log(repository, _partition_copy(repository, path, build), generation)


def _replace_log(repository: Repository, copy: BuildCopy, generation: Path) -> bool:
    """Replace the log of a generation in use by that of a copy of the same build.

    Return False if it is not a later state of the log, as after the source was restored.
    """
    path, log = generation.parent, WriteLog(generation)
    if log.state_id() == copy.log_state:
        return True
    if not copy.log or (generation / f"{names.WRITE_LOG}-wal").exists():  # left by another program
        return False
    fresh = path / f".{generation.name}.{names.NEW}"
    with suppress(FileNotFoundError):  # left by a process that died
        shutil.rmtree(fresh)
    fresh.mkdir()
    try:
        for name, file in copy.log.items():
            earlier = log.path if name == names.WRITE_LOG and log.path.exists() else None
            repository.fetch(file, fresh / name, earlier)
            sync(fresh / name)
        with writing(path):
            later = WriteLog(fresh)
            if later.state_id() != copy.log_state or not later.continues(log):
                return False
            if not log.path.exists():
                create_log(log.path)
            if not log.state_id():  # readers need the ID only for a log with rows
                (fresh / names.LOG_ID).replace(generation / names.LOG_ID)
            (fresh / names.WRITE_LOG).replace(log.path)
            sync(generation)
    finally:
        shutil.rmtree(fresh)
    return True
