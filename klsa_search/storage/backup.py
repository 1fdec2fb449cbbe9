"""Write a backup of all indexes of an index directory to a repository."""

from __future__ import annotations

import hashlib
import io
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from klsa_search.core.installation import __version__
from klsa_search.core.parallel import map_in_order
from klsa_search.errors import IndexNotFound, KlsaError, StoreError
from klsa_search.storage.aliases import aliases_in
from klsa_search.storage.catalog_entry import rows_of
from klsa_search.storage.checksums import check_sizes
from klsa_search.storage.current import changed_file_error
from klsa_search.storage.files import exclusive_lock, explain
from klsa_search.storage.maintenance import copy_logs, indexes_in
from klsa_search.storage.manifest import FileName, read_manifest
from klsa_search.storage.names import MANIFEST
from klsa_search.storage.partitions import generations_in_use
from klsa_search.storage.repository import (
    LOG_PIECE,
    PARALLEL,
    ROWS,
    Backup,
    BuildCopy,
    FileCopy,
    IndexCopy,
    Owner,
    ReplicationState,
    Repository,
    build_id,
    directory_id,
    location_of,
    write_state,
)
from klsa_search.storage.write_log import WriteLog

_PIECE: Final = 2**23
"""Bytes of a piece of a file of a generation."""

_LOCK: Final = ".backup.lock"
_TIMEOUT: Final = 60.0
"""Seconds to wait for another backup of the same index directory."""


@dataclass(frozen=True)
class BackupResult:
    """Result of a backup.

    number   number of the backup
    indexes  number of its indexes
    written  bytes of the pieces that were not in the repository before
    faults   why an index could not be read, by its name; its last backup is kept in this one
    """

    number: int
    created: str
    indexes: int
    written: int
    faults: Mapping[str, str] = field(default_factory=dict)


def back_up(
    repository: Repository, home: Path, keep: int | None = None, *, take_over: bool = False
) -> BackupResult:
    """Back up all indexes and aliases of an index directory, which may be in use.

    keep       number of backups to keep; by default all
    take_over  whether to write to a repository of another directory, which then belongs to
               this one, and to follow none any more
    Everything written is read back and compared. A backup that is equal to the previous one
    replaces it. An index that cannot be read keeps its last backup, and is in
    `BackupResult.faults`. IndexBusy while another backup of the directory or to a directory
    runs; StoreError, also if the repository belongs to another directory.
    """
    if not home.is_dir():
        raise IndexNotFound(f"no index directory `{home}`; check the path", field="home")
    with exclusive_lock(home / _LOCK, timeout=_TIMEOUT), repository.store.lock():
        names = repository.names()
        last = names[max(names)] if names else None
        before = repository.read(last) if last else None
        owner = _owner(repository, home, before, take_over=take_over)
        writer = IndexCopier(repository, before)
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        writer.copy(indexes_in(home))
        aliases = aliases_in(home)  # later, as an alias moves to an index that was just built
        writer.copy(home / name for name in set(aliases.values()))
        indexes, faults = writer.copies, writer.faults
        aliases = {name: index for name, index in aliases.items() if index in indexes}
        backup = Backup(
            package_version=__version__,
            owner=owner,
            created=created,
            indexes=indexes,
            aliases=aliases,
        )
        number = max(names, default=0) + 1
        if repository.names() != names:  # object storage has no locks
            raise StoreError(
                f"cannot back up to `{repository.target}`: another process wrote to it meanwhile; "
                "let one index directory back up to one target"
            )
        name = repository.write(number, backup)
        is_same = before is not None and (before.indexes, before.aliases) == (indexes, aliases)
        equal = [last] if is_same and last else []
        kept = [name for name in names.values() if name not in equal]
        outdated = [] if keep is None else kept[: max(0, len(kept) + 1 - keep)]
        repository.remove(equal + outdated)
        repository.collect_garbage(writer.stored)
        state = ReplicationState(repository.target, name, number, created, number, owner.id)
        write_state(home, "backup", state, ends_following=take_over)
        return BackupResult(number, created, len(indexes), writer.written, faults)


class IndexCopier:
    """Copies indexes to a repository for one backup.

    copies   copied indexes by name
    faults   why an index could not be read, by its name; its last copy is in `copies`
    stored   sizes of all objects of the repository by name
    written  bytes that were not there before
    """

    def __init__(self, repository: Repository, before: Backup | None) -> None:
        self._repository = repository
        self._before = before.indexes if before else {}
        self.copies: dict[str, IndexCopy] = {}
        self.faults: dict[str, str] = {}
        self.stored = repository.stored_pieces()
        self.written = 0
        self._lock = threading.Lock()  # of the previous two
        self._failure: StoreError | None = None  # of the repository
        self._stored = {
            file.sha256: file
            for copy in self._before.values()
            for file in copy.files()
            if self.stored.keys() >= set(file.pieces)
        }

    def copy(self, paths: Iterable[Path]) -> None:
        """Copy the indexes at these paths that were not copied yet."""
        for path in paths:
            if path.name in self.copies or path.name in self.faults:
                continue
            try:
                self.copies[path.name] = self._copy(path)
            except IndexNotFound:  # deleted meanwhile
                continue
            except (KlsaError, OSError) as fault:
                if self._failure is not None:
                    raise self._failure from fault
                step = "check its owner and permissions"
                self.faults[path.name] = (
                    fault.message if isinstance(fault, KlsaError) else explain(fault, path, step)
                )
                if path.name in self._before:
                    self.copies[path.name] = self._before[path.name]

    def _copy(self, path: Path) -> IndexCopy:
        """Copy the build in use, with the writes to it."""
        while True:
            generations = generations_in_use(path)
            try:
                return self._copy_build(path, generations)
            except (KlsaError, OSError):
                if generations_in_use(path) == generations:
                    raise  # else it was replaced meanwhile

    def _copy_build(self, path: Path, generations: Sequence[Path]) -> IndexCopy:
        files = list(map(self._copy_generation, generations))
        builds = [build_id(read_manifest(generation)) for generation in generations]
        before = self._before.get(path.name)
        by_build = {copy.build: copy for copy in before.builds} if before else {}
        logs, states = self._copy_logs(path, generations, list(map(by_build.get, builds)))
        rows = rows_of(path, generations[0].name).encode()
        shared = {ROWS: self._store(io.BytesIO(rows), LOG_PIECE)} if rows else {}
        parts = zip(builds, states, files, logs, strict=True)
        copies = [
            BuildCopy(build=build, log_state=state, generation=generation, log=log)
            for build, state, generation, log in parts
        ]
        return IndexCopy(builds=copies, shared=shared)

    def _copy_generation(self, generation: Path) -> dict[FileName, FileCopy]:
        manifest = read_manifest(generation)
        check_sizes(generation, manifest)
        files = {}
        for name, entry in manifest.files.items():
            files[name] = self._stored.get(entry.sha256) or self._store_file(generation / name)
            if files[name].sha256 != entry.sha256:
                raise changed_file_error(generation / name)
        files[MANIFEST] = self._store_file(generation / MANIFEST)
        return files

    def _copy_logs(
        self, path: Path, generations: Sequence[Path], before: Sequence[BuildCopy | None]
    ) -> tuple[list[dict[FileName, FileCopy]], list[str]]:
        """Copy the logs of an index, as they are at one moment; return files and states.

        before  last copies of the builds; logs that have not changed since are not copied again
        """
        states = [WriteLog(generation).state_id() for generation in generations]
        logs = [
            copy.log
            for copy, state in zip(before, states, strict=True)
            if copy and copy.log_state == state
        ]
        if len(logs) == len(states) and (
            len(logs) == 1  # otherwise one may have changed while another was read
            or states == [WriteLog(generation).state_id() for generation in generations]
        ):
            return logs, states
        with tempfile.TemporaryDirectory(prefix="klsa-backup-") as folder:
            targets = [Path(folder, f"{number}") for number in range(len(generations))]
            for target in targets:
                target.mkdir()
            copy_logs(path, generations, targets)
            states = [WriteLog(target).state_id() for target in targets]
            files = [
                {file.name: self._store_file(file, LOG_PIECE) for file in sorted(target.iterdir())}
                for target in targets
            ]
            return files, states

    def _store_file(self, path: Path, size: int = _PIECE) -> FileCopy:
        with path.open("rb") as stream:
            return self._store(stream, size)

    def _store(self, stream: BinaryIO, size: int) -> FileCopy:
        digest = hashlib.sha256()

        def pieces() -> Iterator[bytes]:
            while piece := stream.read(size):
                digest.update(piece)
                yield piece

        with ThreadPoolExecutor(PARALLEL) as pool:
            stored = map_in_order(
                lambda piece: pool.submit(self._store_piece, piece), pieces(), ahead=PARALLEL
            )
            names = tuple(stored)
        count = sum(self.stored[name] for name in names)
        return FileCopy(bytes=count, sha256=digest.hexdigest(), pieces=names)

    def _store_piece(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        with self._lock:
            if self.stored.get(name) == len(content):
                return name
            self.stored[name] = len(content)
            self.written += len(content)
        try:
            self._repository.write_piece(name, content)
        except StoreError as failure:
            self._failure = failure
            raise
        return name


def _owner(repository: Repository, home: Path, last: Backup | None, *, take_over: bool) -> Owner:
    """Return an index directory as the owner; StoreError if the last backup has another."""
    owner = Owner(id=directory_id(home), location=location_of(home))
    if last is None:
        return owner
    if last.owner.id == owner.id:
        return owner.model_copy(update={"predecessors": last.owner.predecessors})
    if not take_over:
        raise StoreError(
            f"cannot back up {owner} to `{repository.target}`: it has the backups of {last.owner}; "
            "use another target, or take this one over if that directory is no longer backed up: "
            f"klsa-index backup --all {repository.target} --take-over"
        )
    earlier = dict.fromkeys((*last.owner.predecessors, last.owner.id))
    earlier.pop(owner.id, None)
    return owner.model_copy(update={"predecessors": tuple(earlier)})
