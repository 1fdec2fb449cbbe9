"""Keep an index directory equal to the newest backup of a repository.

    follow(repository, home) -> ReplicationState      make a directory equal to the newest backup
    follow_partition(repository, generation, build)   replace its log by that of the newest backup

A later log of the same generation replaces the earlier one in one step, so readers see the
documents of an index as one backup has them. Query settings, synonyms, rules, judgements and
aliases follow, each as a whole.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from klsa_search.errors import StoreError
from klsa_search.storage.catalog import aliases_in, replace_aliases
from klsa_search.storage.files import exclusive_lock, sync
from klsa_search.storage.generations import named, writing
from klsa_search.storage.maintenance import delete_index, indexes_in
from klsa_search.storage.names import LOG_ID, NEW, WRITE_LOG, index_path
from klsa_search.storage.partitions import generations_of_build
from klsa_search.storage.repository import (
    Backup,
    BuildCopy,
    ReplicationState,
    Repository,
    number_of,
    read_state,
    write_state,
)
from klsa_search.storage.restore import (
    FOLLOWER_LOCK,
    generation_of_build,
    install,
    is_same_build,
    partition_copy,
    replace_shared_files,
)
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import create_log

_PATIENCE: Final = 10.0  # seconds to wait while other partitions of the machine follow


def follow(repository: Repository, home: Path) -> ReplicationState:
    """Make an index directory equal to the newest backup, unless it is; return its state.

    The directory belongs to the follower: an index that is not in the backup is deleted. So it
    must be empty the first time; StoreError otherwise, and if the repository cannot be read: then
    the directory stays as it is. It follows the index directory that wrote its first backup, and
    those that took the repository over from it; StoreError if the newest backup is of another,
    after following the newest of its own. IndexBusy while another process does the same.
    """
    home.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(home / FOLLOWER_LOCK):
        state = read_state(home, "follow")
        if state is None:
            if names := [path.name for path in indexes_in(home)]:
                raise StoreError(
                    f"`{home}` has an index that was not restored from `{repository.target}` "
                    f"({names[0]}); follow with an empty index directory",
                    field="follow",
                )
            state = ReplicationState(repository.target)
            write_state(home, "follow", state)
        newest = repository.find()
        if newest == state.backup:
            return state
        number = number_of(newest)
        name = _newest_of_leader(repository, state.directory)
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
        path = index_path(home, name)
        try:
            # The logs of partitions follow one another.
            build = named(path)
            if (
                build
                and is_same_build(path / build, copy)
                and all(
                    _replace_log(repository, part, generation)
                    for part, generation in zip(
                        copy.builds, generations_of_build(path / build), strict=True
                    )
                )
            ):
                replace_shared_files(repository, copy, path, build)
            else:
                install(repository, copy, path)
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
    with exclusive_lock(path.parents[1] / FOLLOWER_LOCK, timeout=_PATIENCE):
        if generation_of_build(path, build) == generation:
            _replace_log(repository, partition_copy(repository, path, build), generation)


def _replace_log(repository: Repository, copy: BuildCopy, generation: Path) -> bool:
    """Replace the log of a generation in use by that of a copy of the same build.

    Return False if it is not a later state of the log, as after the source was restored.
    """
    path, log = generation.parent, WriteLog(generation)
    if log.state_id() == copy.log_state:
        return True
    if not copy.log or (generation / f"{WRITE_LOG}-wal").exists():  # left by another program
        return False
    fresh = path / f".{generation.name}.{NEW}"
    with suppress(FileNotFoundError):  # left by a process that died
        shutil.rmtree(fresh)
    fresh.mkdir()
    try:
        for name, file in copy.log.items():
            earlier = log.path if name == WRITE_LOG and log.path.exists() else None
            repository.fetch(file, fresh / name, earlier)
            sync(fresh / name)
        with writing(path):
            later = WriteLog(fresh)
            if later.state_id() != copy.log_state or not later.continues(log):
                return False
            if not log.path.exists():
                create_log(log.path)
            if not log.state_id():  # readers need the ID only for a log with rows
                (fresh / LOG_ID).replace(generation / LOG_ID)
            (fresh / WRITE_LOG).replace(log.path)
            sync(generation)
    finally:
        shutil.rmtree(fresh)
    return True
