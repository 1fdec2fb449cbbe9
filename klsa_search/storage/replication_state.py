"""Files of an index directory for its backups: its ID, and the state of backing up or following."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from klsa_search.errors import StoreError
from klsa_search.storage.files import read_regular, replace_file, sync, writable

BACKUP_STATE: Final = ".backup.json"
"""File of an index directory with the state of its last backup."""

FOLLOWER_STATE: Final = ".follower.json"
"""File of an index directory that follows a repository; marks it as belonging to the follower."""

DIRECTORY_ID: Final = ".directory-id"
"""File of an index directory with its ID."""


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

    def age(self) -> float | None:
        """Return the seconds since the content of the backup was read; None before the first."""
        if self.created is None:
            return None
        return max(0.0, datetime.now(UTC).timestamp() - self.timestamp())

    def timestamp(self) -> float:
        """Return the time of the content in seconds since 1970; 0 before the first backup."""
        return datetime.fromisoformat(self.created).timestamp() if self.created else 0.0


_STATE: Final = TypeAdapter(ReplicationState)


def directory_id(home: Path) -> str:
    """Return the ID of an index directory, which is random and made at the first call.

    A copy of the directory gets an ID of its own: the file of the ID also has its inode number and
    the location of the directory, one of which a directory keeps that is moved, or mounted
    elsewhere. The caller has the lock of the directory. StoreError if the ID cannot be read or
    written.
    """
    file = home / DIRECTORY_ID
    with writable(file):
        with suppress(FileNotFoundError):
            id_, inode, location = (
                *read_regular(file).decode(errors="replace").splitlines(),
                "",
                "",
                "",
            )[:3]
            if id_ and (inode == str(file.stat().st_ino) or location == location_of(home)):
                return id_
        replace_file(file, "")  # a new file, whose inode number is known then
        fresh = uuid4().hex
        file.write_text(f"{fresh}\n{file.stat().st_ino}\n{location_of(home)}\n")
        sync(file)
        return fresh


def location_of(home: Path) -> str:
    """Return host and path of an index directory; `?` for bytes that are not UTF-8."""
    return f"{platform.node()}:{home.absolute()}".encode(errors="replace").decode()


def read_state(file: Path) -> ReplicationState | None:
    """Return the state in a file; None if there is none, StoreError if it cannot be read.

    A damaged file has the state before the first backup: the next one replaces it.
    """
    try:
        return _STATE.validate_json(read_regular(file))
    except FileNotFoundError:
        return None
    except ValidationError:
        return ReplicationState("")
    except OSError as error:
        raise StoreError(f"cannot read `{file}`: {error}; correct its permissions") from error


def write_state(file: Path, state: ReplicationState) -> None:
    """Replace the state in a file. The caller has the lock of the directory."""
    replace_file(file, _STATE.dump_json(state).decode())
