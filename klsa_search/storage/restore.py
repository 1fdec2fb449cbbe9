"""Restore indexes from a repository of backups, once or again and again.

    restore_index(repository, name, path, number)     one index, under a new name
    restore_all(repository, home, number)             all indexes and aliases
    follow(repository, home) -> ReplicationState      make a directory equal to the newest backup
    restore_partition(repository, path, build)        one partition, on the machine that serves it
    follow_partition(repository, generation, build)   replace its log by that of the newest backup

A generation is committed when all its files and its log are complete, and a later log of the same
generation replaces the earlier one in one step. So readers see the documents of an index as one
backup has them. Query settings, synonyms, rules, judgements and aliases follow, each as a whole.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from klsa_search.errors import IndexExists, IndexNotFound, StoreError
from klsa_search.storage.aliases import aliases_in, remove_alias, set_alias
from klsa_search.storage.backup_format import Backup, IndexCopy
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_unfinished, mark_index, next_number
from klsa_search.storage.files import sync
from klsa_search.storage.generations import (
    commit,
    index_lock,
    new_generation,
    sync_files,
    writing,
)
from klsa_search.storage.locks import exclusive_lock
from klsa_search.storage.log import WriteLog
from klsa_search.storage.log_writer import create_log
from klsa_search.storage.maintenance import (
    delete_index,
    indexes_in,
    remove_partitions,
    use_partitions,
)
from klsa_search.storage.manifest import Manifest, read_manifest, sha256_of
from klsa_search.storage.names import (
    LOG_ID,
    MANIFEST,
    NEW,
    PARTITIONS,
    SETTINGS,
    SHARED_FILES,
    WRITES,
    index_path,
)
from klsa_search.storage.partitions import (
    PartitionSet,
    is_partitioned,
    read_partitions,
    write_partitions,
)
from klsa_search.storage.replication_state import (
    FOLLOWER_STATE,
    ReplicationState,
    read_state,
    write_state,
)
from klsa_search.storage.repository import (
    Repository,
    build_id,
    generations_in_use,
    number_of,
)

_LOCK: Final = ".follower.lock"
_UNLIMITED: Final = -1  # seconds to wait for a lock
_PATIENCE: Final = 10.0  # seconds to wait while other partitions of the machine follow


def restore_index(repository: Repository, name: str, path: Path, number: int | None = None) -> str:
    """Restore an index of a backup, by default the newest, to a new path; return its backup.

    An interrupted restore can be repeated. IndexNotFound, IndexExists, IndexDamaged, StoreError.
    """
    found = repository.find(number)
    backup = repository.read(found)
    if name not in backup.indexes:
        choices = ", ".join(sorted(backup.indexes)) or "none"
        raise IndexNotFound(
            f"no index `{name}` in the backup; choose from {choices}", field="index"
        )
    copy = backup.indexes[name]
    if os.path.lexists(path) and not is_unfinished(path):
        raise _exists(path)
    _install(repository, copy, path)
    return found


def restore_all(repository: Repository, home: Path, number: int | None = None) -> str:
    """Restore all indexes and aliases of a backup, by default the newest; return its name.

    If an index or alias of the backup exists with other content, nothing is restored; what is equal
    stays. So an interrupted restore can be repeated. IndexExists, IndexDamaged, StoreError.
    """
    found = repository.find(number)
    backup = repository.read(found)
    own = aliases_in(home)
    for name, copy in backup.indexes.items():
        path = index_path(home, name)
        if os.path.lexists(path) and not is_unfinished(path) and not _is_equal(path, copy):
            raise _exists(path)
    for name, index in backup.aliases.items():
        if os.path.lexists(home / name) and own.get(name) != index:
            raise _exists(home / name)
    for name, copy in backup.indexes.items():
        if not _is_equal(home / name, copy):
            _install(repository, copy, home / name)
    for name, index in backup.aliases.items():
        set_alias(home, name, index)
    return found


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
        file = home / FOLLOWER_STATE
        state = read_state(file)
        if state is None:
            if names := [path.name for path in indexes_in(home)]:
                raise StoreError(
                    f"`{home}` has an index that was not restored from `{repository.target}` "
                    f"({names[0]}); follow with an empty index directory",
                    field="follow",
                )
            state = ReplicationState(repository.target)
            write_state(file, state)
        newest = repository.find()
        if newest == state.backup:
            return state
        number = number_of(newest)
        name = _newest_of_leader(repository, state.directory)
        ignored = None if name == newest else number
        seen = replace(state, newest=number, ignored=ignored)
        if seen != state:
            write_state(file, seen)
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
            write_state(file, seen)
        if ignored is not None:
            raise StoreError(
                f"ignored backup {ignored} at `{repository.target}`: the index directory "
                f"{repository.read(newest).owner} wrote it, and `{home}` follows the one with ID "
                f"{(seen.directory or '')[:8]}; let one directory back up there, or follow the "
                "other with an empty index directory",
                field="follow",
            )
        return seen


def _newest_of_leader(repository: Repository, leader: str | None) -> str | None:
    """Return the newest backup of an index directory, or of one that took over from it.

    leader  its ID; None for the directory that wrote the newest backup
    """
    return next(
        (
            name
            for name in reversed(repository.names().values())
            if leader is None or repository.read(name).owner.continues(leader)
        ),
        None,
    )


def restore_partition(repository: Repository, path: Path, build: str) -> Path:
    """Restore one partition of an index, unless it is there; return the folder of its generation.

    The terms of all partitions are restored in the same way.

    path   its folder
    build  see `repository.build_id`
    Processes of one machine wait for each other, and use what the first restored. An interrupted
    restore is repeated. IndexNotFound if no backup has this build; IndexDamaged, StoreError.
    """
    if found := _generation_of(path, build):
        return found
    home = path.parents[1]
    home.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(home / _LOCK, timeout=_UNLIMITED):
        if found := _generation_of(path, build):
            return found
        copy = _copy_of_partition(repository, path, build)
        path.parent.mkdir(exist_ok=True)
        mark_index(path.parent)
        return _install_partition(repository, copy, path)


def follow_partition(repository: Repository, generation: Path, build: str) -> None:
    """Replace the log of a partition by that of the newest backup of its build.

    It stays as it is if no backup has a later state. IndexBusy while another process copies here;
    IndexNotFound if no backup has this build; IndexDamaged, StoreError.
    """
    path = generation.parent
    with exclusive_lock(path.parents[1] / _LOCK, timeout=_PATIENCE):
        if _generation_of(path, build) == generation:
            _replace_log(repository, _copy_of_partition(repository, path, build), path)


def _generation_of(path: Path, build: str) -> Path | None:
    """Return the generation in use of a partition if it is of this build."""
    with suppress(StoreError):  # none, or damaged
        generation = current_generation(path)
        if build_id(read_manifest(generation)) == build:
            return generation
    return None


def _copy_of_partition(repository: Repository, path: Path, build: str) -> IndexCopy:
    """Return the copy of a partition in the newest backup that has its build; IndexNotFound."""
    index = path.parent.name
    for name in reversed(repository.names().values()):
        if copy := repository.read(name).indexes.get(index):
            for own in copy.partitions.values():
                if own.build == build:
                    return own
    raise IndexNotFound(
        f"no backup at `{repository.target}` has partition `{path.name}` of index `{index}` as it "
        "is served; back the index up, or wait until the service follows a newer backup",
        field="follow",
    )


def _make_equal(repository: Repository, backup: Backup, home: Path) -> None:
    """Make the indexes and aliases of a directory equal to a backup.

    An alias moves when its new index is there, and before its old one is deleted.
    """
    for name in aliases_in(home):
        if name in backup.indexes:
            remove_alias(home, name)
    faults = []
    for name, copy in sorted(backup.indexes.items()):
        path = index_path(home, name)
        try:
            if _is_same_build(path, copy) and _follow_log(repository, copy, path):
                if copy.partitions:
                    _follow_partitions(repository, copy, path)
                else:
                    _replace_shared(repository, copy, path, current_generation(path))
            else:
                _install(repository, copy, path)
        except StoreError as fault:  # the others can still follow
            faults.append(fault)
    if faults:
        raise faults[0]
    gone = {path.name for path in indexes_in(home)} - backup.indexes.keys()
    for name in gone & backup.aliases.keys():
        delete_index(home / name)
    own = aliases_in(home)
    for name, index in backup.aliases.items():
        if own.get(name) != index:
            set_alias(home, name, index)
    for name in own.keys() - backup.aliases.keys():
        remove_alias(home, name)
    for name in gone - backup.aliases.keys():
        delete_index(home / name)


def _is_same_build(path: Path, copy: IndexCopy) -> bool:
    """Return whether the build in use is that of the copy; its logs may differ."""
    with suppress(StoreError):  # none, or damaged
        builds = [build_id(read_manifest(each)) for each in generations_in_use(path)]
        return builds == [each.build for each in _parts(copy)]
    return False


def _parts(copy: IndexCopy) -> list[IndexCopy]:
    """Return the copies of the partitions of an index; its own if it has one."""
    return list(copy.partitions.values()) or [copy]


def _is_equal(path: Path, copy: IndexCopy) -> bool:
    """Return whether an index has the documents of a copy."""
    if not _is_same_build(path, copy):
        return False
    states = [WriteLog(each).state_id() for each in generations_in_use(path)]
    return states == [each.log_state for each in _parts(copy)]


def _follow_log(repository: Repository, copy: IndexCopy, path: Path) -> bool:
    """Replace the logs of the build in use by those of a copy: see `_replace_log`.

    Those of partitions follow one another.
    """
    if not copy.partitions:
        return _replace_log(repository, copy, path)
    names = read_partitions(path).all_folders
    return all(
        _replace_log(repository, own, path / name)
        for name, own in zip(names, copy.partitions.values(), strict=True)
    )


def _install(repository: Repository, copy: IndexCopy, path: Path) -> None:
    """Restore a build with its log, or those of all partitions, then use it."""
    if copy.partitions:
        _install_partitions(repository, copy, path)
        return
    fresh, manifest = _install_generation(repository, copy, path)
    if is_partitioned(path):  # a follower whose source has one partition now
        with index_lock(path):
            (path / PARTITIONS).unlink()
            remove_partitions(path)
    note_checked(fresh, manifest)


def _install_partitions(repository: Repository, copy: IndexCopy, path: Path) -> None:
    """Restore all partitions under a new number, then use them, in one step."""
    path.mkdir(parents=True, exist_ok=True)
    with index_lock(path):
        mark_index(path)
        number = next_number(path)
        folders = [f"{number:06d}-{part}" for part in range(len(copy.partitions) - 1)]
        found = _partitions_of(repository, copy, folders)
        for name, own in zip(found.all_folders, copy.partitions.values(), strict=True):
            _install_partition(repository, own, path / name)
        _replace_shared(repository, copy, path, None)
        use_partitions(path, found)


def _install_partition(repository: Repository, copy: IndexCopy, path: Path) -> Path:
    """Restore a partition with its log, then use it; return the folder of its generation."""
    fresh, manifest = _install_generation(repository, copy, path)
    note_checked(fresh, manifest)
    return fresh


def _partitions_of(repository: Repository, copy: IndexCopy, folders: list[str]) -> PartitionSet:
    """Return the description of the partitions of a copy, in these folders."""
    with TemporaryDirectory(prefix="klsa-restore-") as folder:
        repository.fetch(copy.shared[PARTITIONS], Path(folder, PARTITIONS))
        return read_partitions(Path(folder)).model_copy(update={"folders": folders})


def _install_generation(
    repository: Repository, copy: IndexCopy, path: Path
) -> tuple[Path, Manifest]:
    """Restore a generation with its log, then use it."""
    with new_generation(path) as fresh:
        # Those that change come first: they may be gone before a long transfer ends.
        for name, file in (*copy.log.items(), *copy.generation.items()):
            if name != MANIFEST:
                (fresh / name).parent.mkdir(exist_ok=True)
                repository.fetch(file, fresh / name)
        with TemporaryDirectory(prefix="klsa-restore-") as folder:
            repository.fetch(copy.generation[MANIFEST], Path(folder, MANIFEST))
            manifest = read_manifest(Path(folder))
        if build_id(manifest) != copy.build:
            raise StoreError(f"the backup of `{path.name}` is inconsistent; use another backup")
        _replace_shared(repository, copy, path, fresh)
        sync_files(fresh)
        commit(fresh, manifest)
    return fresh, manifest


def _replace_log(repository: Repository, copy: IndexCopy, path: Path) -> bool:
    """Replace the log of the generation in use by that of a copy of the same build.

    Return False if it is not a later state of the log, as after the source was restored.
    """
    generation = current_generation(path)
    own = WriteLog(generation)
    if own.state_id() == copy.log_state:
        return True
    if not copy.log or (generation / f"{WRITES}-wal").exists():  # left by another program
        return False
    fresh = path / f".{generation.name}.{NEW}"
    with suppress(FileNotFoundError):  # left by a process that died
        shutil.rmtree(fresh)
    fresh.mkdir()
    try:
        for name, file in copy.log.items():
            known = own.path if name == WRITES and own.path.exists() else None
            repository.fetch(file, fresh / name, known)
            sync(fresh / name)
        with writing(path):
            later = WriteLog(fresh)
            if later.state_id() != copy.log_state or not later.continues(own):
                return False
            if not own.path.exists():
                create_log(own.path)
            if not own.state_id():  # readers need the ID only for a log with rows
                (fresh / LOG_ID).replace(generation / LOG_ID)
            (fresh / WRITES).replace(own.path)
            sync(generation)
    finally:
        shutil.rmtree(fresh)
    return True


def _replace_shared(
    repository: Repository, copy: IndexCopy, path: Path, generation: Path | None
) -> None:
    """Replace the changing files of an index besides the log, each in one step.

    generation  that has the query settings; None if they are in PARTITIONS, which stays
    """
    if unknown := sorted(copy.shared.keys() - {*SHARED_FILES, SETTINGS, PARTITIONS}):
        raise StoreError(
            f"the backup of `{path.name}` has a file `{unknown[0]}` that this version does not "
            "know; install the version of klsa-search that wrote it"
        )
    targets = [path / name for name in SHARED_FILES]
    targets += [] if generation is None else [generation / SETTINGS]
    for target in targets:
        name = target.name
        file = copy.shared.get(name)
        if file is None:
            target.unlink(missing_ok=True)
        elif not target.exists() or sha256_of(target) != file.sha256:
            fresh = target.with_name(f".{name}.{NEW}")
            fresh.unlink(missing_ok=True)
            repository.fetch(file, fresh)
            sync(fresh)
            fresh.replace(target)
        sync(target.parent)


def _follow_partitions(repository: Repository, copy: IndexCopy, path: Path) -> None:
    """Replace the changing files of an index in partitions besides their logs."""
    _replace_shared(repository, copy, path, None)
    with writing(path):
        found = _partitions_of(repository, copy, read_partitions(path).folders)
        if found != read_partitions(path):
            write_partitions(path, found)


def _exists(path: Path) -> IndexExists:
    return IndexExists(
        f"`{path}` exists with other content; restore to another index directory or name, or "
        "delete it first"
    )
