"""What one backup of a repository has: indexes, their files and pieces, and the owner."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from klsa_search.storage.manifest import FileName, Frozen, Manifest
from klsa_search.storage.names import NAME, PARTITION

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PartitionName = Annotated[str, StringConstraints(pattern=f"^{PARTITION.pattern}$")]
IndexName = Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]


ROWS: Final = "catalog.jsonl"
"""Name of the file with the rows of the catalogue: see `catalog.rows_of`."""


class FileCopy(Frozen):
    """A file in a repository.

    pieces  names of the objects that are its content, in order
    """

    bytes: int
    sha256: Sha256
    pieces: tuple[Sha256, ...]


class IndexCopy(Frozen):
    """An index in a repository.

    build       identity of the build: see `build_id`
    log_state   state of the log of writes: see `WriteLog.state_id`
    generation  files of the generation, with its manifest
    log         files of its log; none if nothing was written
    shared      other files that change: rows of the catalogue, judgements, PARTITIONS
    partitions  of the index and their terms, by folder, in order; none if it has one: then the
                files are its own
    """

    build: Sha256
    log_state: str
    generation: dict[FileName, FileCopy]
    log: dict[FileName, FileCopy]
    shared: dict[FileName, FileCopy]
    partitions: dict[PartitionName, IndexCopy] = Field(
        default_factory=dict, exclude_if=lambda copies: not copies
    )

    def files(self) -> Iterator[FileCopy]:
        """Yield all files."""
        for part in (self.generation, self.log, self.shared):
            yield from part.values()
        for copy in self.partitions.values():
            yield from copy.files()


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

    format_version: Literal[1] = 1
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
