"""What an index directory knows of its backups: its ID, and the last that it wrote or follows.

They are rows of its catalogue.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal
from uuid import uuid4

from pydantic import TypeAdapter

from klsa_search.storage.catalog import change_catalog, read_catalog

Work = Literal["backup", "follow"]
"""Whether a directory writes backups or follows them; a follower's directory belongs to it."""


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
