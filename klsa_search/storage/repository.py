"""A repository of backups: all indexes of an index directory, in a directory or object storage.

    objects/<sha256>                    a piece of a file, named by its checksum, never changed
    backups/<number>-<sha256>.json      one backup: its indexes, their files and pieces, the aliases

A backup is written last, so a reader sees it as a whole or not at all. Pieces that are there are
not written again: an unchanged generation costs nothing, a growing log of writes its new pages.
A repository belongs to one index directory, whose ID is in each backup. One process at a time
writes to it, and removes what no kept backup uses; any number read.

An index directory has its ID, and the last backup that it wrote or follows (`ReplicationState`), in
its catalogue.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal
from uuid import uuid4

from pydantic import StringConstraints, TypeAdapter, ValidationError

from klsa_search.core.parallel import map_in_order
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.catalog import change_catalog, read_catalog
from klsa_search.storage.manifest import FileName, Frozen, Manifest
from klsa_search.storage.names import NAME
from klsa_search.storage.objects import open_store

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
IndexName = Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]

_BACKUPS: Final = "backups"
_OBJECTS: Final = "objects"
_BACKUP_NAME: Final = re.compile(r"([0-9]{6,})-([0-9a-f]{64})\.json")

LOG_PIECE: Final = 2**18
"""Bytes of a piece of the log, of which a batch of writes changes a few pages."""

PARALLEL: Final = 8
"""Pieces that are written or read at the same time."""

ROWS: Final = "catalog.jsonl"
"""Name of the file with the rows of the catalogue: see `storage.catalog_entry.rows_of`."""

Work = Literal["backup", "follow"]
"""Whether a directory writes backups or follows them; a follower's directory belongs to it."""


class FileCopy(Frozen):
    """A file in a repository.

    pieces  names of the objects that are its content, in order
    """

    bytes: int
    sha256: Sha256
    pieces: tuple[Sha256, ...]


class BuildCopy(Frozen):
    """A generation in a repository, with what was written to it.

    build       identity of the build: see `build_id`
    log_state   state of the log of writes: see `WriteLog.state_id`
    generation  files of the generation, with its manifest
    log         files of its log; none if nothing was written
    """

    build: Sha256
    log_state: str
    generation: dict[FileName, FileCopy]
    log: dict[FileName, FileCopy]


class IndexCopy(Frozen):
    """An index in a repository.

    builds  its generation, and those of its partitions and of their terms, in order
    shared  other files that change: rows of the catalogue
    """

    builds: list[BuildCopy]
    shared: dict[FileName, FileCopy]

    def files(self) -> Iterator[FileCopy]:
        """Yield all files."""
        for build in self.builds:
            yield from (*build.generation.values(), *build.log.values())
        yield from self.shared.values()


class Owner(Frozen):
    """The index directory that a repository belongs to.

    id            see `directory_id`
    location      its host and path, for messages
    predecessors  IDs of the directories from which it took the repository over, oldest first
    """

    id: str
    location: str
    predecessors: tuple[str, ...] = ()

    def continues(self, directory: str) -> bool:
        """Return whether this is a directory, or took the repository over from it."""
        return directory in (self.id, *self.predecessors)

    def __str__(self) -> str:
        """Return its location, and the first digits of its ID."""
        return f"`{self.location}` (ID {self.id[:8]})"


class Backup(Frozen):
    """One backup.

    created  time at which reading the indexes began: UTC, ISO 8601
    aliases  index of each alias
    """

    format_version: Literal[2] = 2
    package_version: str
    owner: Owner
    created: str
    indexes: dict[IndexName, IndexCopy]
    aliases: dict[IndexName, IndexName]

    def bytes(self) -> int:
        """Return the size of all files."""
        return sum(file.bytes for copy in self.indexes.values() for file in copy.files())

    def pieces(self) -> set[str]:
        """Return the names of all objects that it uses."""
        copies = self.indexes.values()
        return {piece for copy in copies for file in copy.files() for piece in file.pieces}


@dataclass(frozen=True, slots=True)
class ReplicationState:
    """The backup that an index directory was last written to, or made equal to.

    repository  directory or URL
    backup      name of the backup, and `number` its number; None before the first
    created     time of its content: UTC, ISO 8601
    newest      number of the newest backup of the repository that was seen
    directory   ID of the index directory that wrote the backup: see `directory_id`
    ignored     number of the newest backup if an index directory that is not followed wrote it
    """

    repository: str
    backup: str | None = None
    number: int | None = None
    created: str | None = None
    newest: int | None = None
    directory: str | None = None
    ignored: int | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds since the content of the backup was read; None before the first."""
        if self.created is None:
            return None
        return max(0.0, datetime.now(UTC).timestamp() - self.timestamp())

    def timestamp(self) -> float:
        """Return the time of the content in seconds since 1970; 0 before the first backup."""
        return datetime.fromisoformat(self.created).timestamp() if self.created else 0.0


_STATE: Final = TypeAdapter(ReplicationState)


def build_id(manifest: Manifest) -> str:
    """Return a value that is the same for two copies of one build, and no other."""
    files = sorted((name, entry.sha256) for name, entry in manifest.files.items())
    return hashlib.sha256(repr((manifest.build.created, files)).encode()).hexdigest()


def number_of(name: str) -> int:
    """Return the number of a backup from its name."""
    return int(name.partition("-")[0])


class Repository:
    """The backups at a directory or URL, which is opened as `store`.

    It keeps those that were read, as backups never change.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.store = open_store(target)
        self._read: dict[str, Backup] = {}

    def names(self) -> dict[int, str]:
        """Return the names of all backups by number, in order."""
        matches = map(_BACKUP_NAME.fullmatch, self.store.sizes(_BACKUPS))
        return dict(sorted((int(match[1]), match[0]) for match in matches if match))

    def find(self, number: int | None = None) -> str:
        """Return the name of a backup, by default the newest; IndexNotFound."""
        names = self.names()
        if not names:
            raise IndexNotFound(f"no backup at `{self.target}`; check the path", field="source")
        if number is None:
            number = max(names)
        if number not in names:
            choices = f"{min(names)} to {max(names)}"
            raise IndexNotFound(
                f"no backup {number} at `{self.target}`; choose from {choices}", field="number"
            )
        return names[number]

    def read(self, name: str) -> Backup:
        """Return a backup; IndexDamaged if it has changed since it was written."""
        if name not in self._read:
            content = self.store.read(f"{_BACKUPS}/{name}")
            if hashlib.sha256(content).hexdigest() not in name:
                raise IndexDamaged(
                    f"`{self.target}/{_BACKUPS}/{name}` has changed since it was written; remove "
                    "it, and use another backup"
                )
            try:
                self._read[name] = Backup.model_validate_json(content)
            except ValidationError as error:
                raise StoreError(
                    f"cannot read `{self.target}/{_BACKUPS}/{name}`: another version of "
                    f"klsa-search wrote it ({error.errors()[0]['msg']}); install that version"
                ) from error
        return self._read[name]

    def fetch(self, file: FileCopy, path: Path, earlier: Path | None = None) -> None:
        """Write a file to a new path, and compare its checksums.

        earlier  an earlier version of a log: pieces that it has are not read from the repository
        The caller syncs it. IndexDamaged if a piece has changed; StoreError if it is missing.
        """
        with path.open("xb") as stream:
            stream.writelines(self._pieces(file, path.name, earlier))

    def content(self, file: FileCopy, name: str) -> bytes:
        """Return the content of a small file of this name: see `fetch`."""
        return b"".join(self._pieces(file, name))

    def _pieces(self, file: FileCopy, name: str, earlier: Path | None = None) -> Iterator[bytes]:
        digest = hashlib.sha256()
        with ThreadPoolExecutor(PARALLEL) as pool:
            offsets = {} if earlier is None else _offsets(earlier)
            read = partial(self._piece, earlier=earlier, offsets=offsets)
            for piece in map_in_order(partial(pool.submit, read), file.pieces, ahead=PARALLEL):
                digest.update(piece)
                yield piece
        if digest.hexdigest() != file.sha256:
            raise IndexDamaged(
                f"`{name}` of a backup at `{self.target}` is damaged; use another backup"
            )

    def _piece(self, name: str, *, earlier: Path | None, offsets: Mapping[str, int]) -> bytes:
        if earlier is not None and name in offsets:
            with earlier.open("rb") as stream:
                stream.seek(offsets[name])
                content = stream.read(LOG_PIECE)
        else:
            content = self.store.read(f"{_OBJECTS}/{name}")
        if hashlib.sha256(content).hexdigest() != name:
            raise IndexDamaged(
                f"`{self.target}/{_OBJECTS}/{name}` has changed since it was written; use a backup "
                "of another place"
            )
        return content

    def stored_pieces(self) -> dict[str, int]:
        """Return the sizes of all objects by name."""
        return self.store.sizes(_OBJECTS)

    def write_piece(self, name: str, content: bytes) -> None:
        """Write a piece, and read it back; StoreError if it differs."""
        self._write_verified(f"{_OBJECTS}/{name}", content)

    def write(self, number: int, backup: Backup) -> str:
        """Write a backup, and read it back; return its name. StoreError if it differs."""
        content = backup.model_dump_json().encode()
        name = f"{number:06d}-{hashlib.sha256(content).hexdigest()}.json"
        try:
            self._write_verified(f"{_BACKUPS}/{name}", content)
        except StoreError:
            self.store.remove(f"{_BACKUPS}/{name}")
            raise
        self._read[name] = backup
        return name

    def _write_verified(self, name: str, content: bytes) -> None:
        self.store.write(name, content)
        if self.store.read(name) != content:
            raise StoreError(
                f"`{self.target}/{name}` has other content than was written; check the storage, "
                "then back up again"
            )

    def remove(self, names: Iterable[str]) -> None:
        """Remove backups; `collect_garbage` then removes what only they used."""
        for name in names:
            self.store.remove(f"{_BACKUPS}/{name}")
            self._read.pop(name, None)

    def collect_garbage(self, stored: Mapping[str, int]) -> None:
        """Remove the objects that no backup uses, and those that interrupted backups left."""
        used: set[str] = set()
        for name in self.names().values():
            used |= self.read(name).pieces()
        for name in stored.keys() - used:
            self.store.remove(f"{_OBJECTS}/{name}")


def _offsets(log: Path) -> dict[str, int]:
    offsets, offset = {}, 0
    with log.open("rb") as stream:
        while piece := stream.read(LOG_PIECE):
            offsets[hashlib.sha256(piece).hexdigest()] = offset
            offset += len(piece)
    return offsets


def directory_id(home: Path) -> str:
    """Return the ID of an index directory, which is random and made at the first call.

    A copy of the directory gets an ID of its own: the row of the ID also has the inode number of
    the catalogue and the location of the directory, one of which a directory keeps that is moved,
    or mounted elsewhere. Raise IndexBusy, IndexDamaged or StoreError.
    """
    with change_catalog(home) as catalog:
        inode, location = catalog.file.stat().st_ino, location_of(home)
        for id_, *stored in catalog.rows("directory"):
            if inode == stored[0] or location == stored[1]:
                return str(id_)
        fresh = uuid4().hex
        catalog.delete("directory", "1", [])
        catalog.insert("directory", [(fresh, inode, location)])
        return fresh


def location_of(home: Path) -> str:
    """Return host and path of an index directory; `?` for bytes that are not UTF-8."""
    return f"{platform.node()}:{home.absolute()}".encode(errors="replace").decode()


def read_state(home: Path, work: Work) -> ReplicationState | None:
    """Return the state of a work in an index directory; None before its first attempt.

    Raise IndexBusy, IndexDamaged or StoreError.
    """
    with read_catalog(home) as catalog:
        for _, state in catalog.rows("replication", "work = ?", [work]):
            return _STATE.validate_json(state)
    return None


def write_state(
    home: Path, work: Work, state: ReplicationState, *, ends_following: bool = False
) -> None:
    """Replace the state of a work in an index directory.

    ends_following  whether the directory follows no backups from now on
    """
    with change_catalog(home) as catalog:
        if ends_following:
            catalog.delete("replication", "work = 'follow'", [])
        catalog.insert("replication", [(work, _STATE.dump_json(state).decode())])
