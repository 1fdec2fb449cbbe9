"""A repository of backups: all indexes of an index directory, in a directory or object storage.

    objects/<sha256>                    a piece of a file, named by its checksum, never changed
    backups/<number>-<sha256>.json      one backup: its indexes, their files and pieces, the aliases

A backup is written last, so a reader sees it as a whole or not at all. Pieces that are there are
not written again: an unchanged generation costs nothing, a growing log of writes its new pages.
A repository belongs to one index directory, whose ID is in each backup. One process at a time
writes to it, and removes what no kept backup uses; any number read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import StringConstraints, ValidationError

from klsa_search.core.parallel import map_in_order
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.manifest import FileName, Frozen, Manifest
from klsa_search.storage.names import NAME
from klsa_search.storage.objects import open_store

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
IndexName = Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]


ROWS: Final = "catalog.jsonl"
"""Name of the file with the rows of the catalogue: see `storage.catalog_entry.rows_of`."""


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

    id            see `replication_state.directory_id`
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


def build_id(manifest: Manifest) -> str:
    """Return a value that is the same for two copies of one build, and no other."""
    files = sorted((name, entry.sha256) for name, entry in manifest.files.items())
    return hashlib.sha256(repr((manifest.build.created, files)).encode()).hexdigest()


_BACKUPS: Final = "backups"
_OBJECTS: Final = "objects"
_BACKUP_NAME: Final = re.compile(r"([0-9]{6,})-([0-9a-f]{64})\.json")

LOG_PIECE: Final = 2**18
"""Bytes of a piece of the log, of which a batch of writes changes a few pages."""

PARALLEL: Final = 8
"""Pieces that are written or read at the same time."""


def number_of(name: str) -> int:
    """Return the number of a backup from its name."""
    return int(name.partition("-")[0])


class Repository:
    """The backups at a directory or URL. Keeps those that were read, as backups never change."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._store = open_store(target)
        self._read: dict[str, Backup] = {}

    def names(self) -> dict[int, str]:
        """Return the names of all backups by number, in order."""
        matches = map(_BACKUP_NAME.fullmatch, self._store.sizes(_BACKUPS))
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
            content = self._store.read(f"{_BACKUPS}/{name}")
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
        digest = hashlib.sha256()
        with ExitStack() as files:
            stream = files.enter_context(path.open("xb"))
            pool = files.enter_context(ThreadPoolExecutor(PARALLEL))
            offsets = {} if earlier is None else _offsets(earlier)
            read = partial(self._piece, earlier=earlier, offsets=offsets)
            for piece in map_in_order(partial(pool.submit, read), file.pieces, ahead=PARALLEL):
                digest.update(piece)
                stream.write(piece)
        if digest.hexdigest() != file.sha256:
            raise IndexDamaged(
                f"`{path.name}` of a backup at `{self.target}` is damaged; use another backup"
            )

    def _piece(self, name: str, *, earlier: Path | None, offsets: Mapping[str, int]) -> bytes:
        if earlier is not None and name in offsets:
            with earlier.open("rb") as stream:
                stream.seek(offsets[name])
                content = stream.read(LOG_PIECE)
        else:
            content = self._store.read(f"{_OBJECTS}/{name}")
        if hashlib.sha256(content).hexdigest() != name:
            raise IndexDamaged(
                f"`{self.target}/{_OBJECTS}/{name}` has changed since it was written; use a backup "
                "of another place"
            )
        return content

    def lock(self) -> AbstractContextManager[None]:
        """Return a context in which no other process writes; object storage has no locks."""
        return self._store.lock()

    def write_piece(self, name: str, content: bytes) -> None:
        """Write a piece, and read it back; StoreError if it differs."""
        self._write_verified(f"{_OBJECTS}/{name}", content)

    def stored_pieces(self) -> dict[str, int]:
        """Return the sizes of all objects by name."""
        return self._store.sizes(_OBJECTS)

    def write(self, number: int, backup: Backup) -> str:
        """Write a backup, and read it back; return its name. StoreError if it differs."""
        content = backup.model_dump_json().encode()
        name = f"{number:06d}-{hashlib.sha256(content).hexdigest()}.json"
        try:
            self._write_verified(f"{_BACKUPS}/{name}", content)
        except StoreError:
            self._store.remove(f"{_BACKUPS}/{name}")
            raise
        self._read[name] = backup
        return name

    def _write_verified(self, name: str, content: bytes) -> None:
        self._store.write(name, content)
        if self._store.read(name) != content:
            raise StoreError(
                f"`{self.target}/{name}` has other content than was written; check the storage, "
                "then back up again"
            )

    def remove(self, names: Iterable[str]) -> None:
        """Remove backups; `collect_garbage` then removes what only they used."""
        for name in names:
            self._store.remove(f"{_BACKUPS}/{name}")
            self._read.pop(name, None)

    def collect_garbage(self, stored: Mapping[str, int]) -> None:
        """Remove the objects that no backup uses, and those that interrupted backups left."""
        used: set[str] = set()
        for name in self.names().values():
            used |= self.read(name).pieces()
        for name in stored.keys() - used:
            self._store.remove(f"{_OBJECTS}/{name}")


def _offsets(log: Path) -> dict[str, int]:
    """Return where each piece of a log begins, by its name."""
    offsets, offset = {}, 0
    with log.open("rb") as stream:
        while piece := stream.read(LOG_PIECE):
            offsets[hashlib.sha256(piece).hexdigest()] = offset
            offset += len(piece)
    return offsets
