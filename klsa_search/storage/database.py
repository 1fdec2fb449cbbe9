"""SQLite databases with a write-ahead log: read also where nothing may be written; checksums.

SQLite keeps an index of the write-ahead log in shared memory, which readers create too. Without
permission to do so, and while no process writes, all data is in the one file, which is read as
immutable. Two machines do not share memory: each would overwrite what the other wrote, or read half
of it. So nothing is written on a network file system.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from klsa_search.core.parallel import mounts
from klsa_search.errors import StoreError, WritingRefused
from klsa_search.storage.files import stamp_of, status_of

_NO_WAL: Final = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
)

MOUNTS: Final = Path("/proc/self/mountinfo")

_NETWORK: Final = frozenset(
    {
        "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs",
        "fuse.afs", "fuse.ceph", "fuse.ceph-fuse", "fuse.cephfs", "fuse.davfs", "fuse.gcsfuse",
        "fuse.geesefs", "fuse.glusterfs", "fuse.goofys", "fuse.juicefs", "fuse.moosefs",
        "fuse.mfs", "fuse.rclone", "fuse.s3fs", "fuse.seaweedfs", "fuse.sshfs",
    }
)  # fmt: skip
"""Types in /proc/self/mountinfo of file systems that several machines can write to.

Not 9p and virtiofs, through which virtual machines and sandboxes see a disk of their host.
"""


def row_checksum(row: tuple[Any, ...]) -> int:
    """Return the checksum of the values of a row, as SQLite has none."""
    return zlib.crc32(repr(row).encode())


@contextmanager
def opened_to_read(path: Path, timeout: float = 5.0) -> Iterator[sqlite3.Connection]:
    """Open a database, within a transaction. Cost: 0.3 ms.

    timeout  seconds to wait while another process recovers it
    sqlite3.Error; StoreError if another machine writes to it, or if another process began to write
    to one that is read as immutable: what was read then may look damaged.
    """
    kind = network_file_system(path.parent)
    if kind and _is_written(path):
        raise StoreError(
            f"cannot read `{path}`: another machine is writing to it, or left "
            f"`{path.name}-wal`, and this machine sees it through a network file system "
            f"({kind}); copy the index to a local disk with `klsa-index backup` there"
        )
    if not kind and (connection := _begun(path, timeout)):
        with closing(connection):
            yield connection
        return
    # It changes when the write-ahead log is merged into the database.
    stamp = stamp_of(path), _is_written(path)
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
        try:
            yield connection
        except (sqlite3.Error, StoreError, ValueError, TypeError) as error:
            if stamp == (stamp_of(path), _is_written(path)):
                raise
            raise StoreError(
                f"cannot read `{path}`: another process wrote to it meanwhile; try again"
            ) from error


def _begun(path: Path, timeout: float) -> sqlite3.Connection | None:
    """Return a connection within a transaction; None if there is no permission for a log's index.

    None only while no process writes, so that all data is in the one file.
    """
    address = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=timeout)
    try:
        connection.execute("begin")
        connection.execute("select 1 from sqlite_master").fetchall()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in _NO_WAL or _is_written(path):
            raise
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def unusable(path: Path, error: Exception, verb: str = "use") -> StoreError:
    """Return the error for a database that SQLite cannot use, or read."""
    return StoreError(
        f"cannot {verb} `{path}` ({error}); check its owner, its permissions and free disk space, "
        "then try again"
    )


def refuse_network(path: Path) -> None:
    """Raise WritingRefused for a database on a network file system, which machines share."""
    if path.parent.is_dir() and (kind := network_file_system(path.parent)):
        raise WritingRefused(
            f"cannot write `{path}`: it is on a network file system ({kind}), where SQLite's "
            "write-ahead log does not work; keep the index on a local disk of the machine that "
            "writes, and copy it to others with `klsa-index backup`"
        )


def use_wal(connection: sqlite3.Connection) -> None:
    """Make commits of a connection durable, in a write-ahead log."""
    connection.execute("pragma synchronous = full")
    connection.execute("pragma fullfsync = on")  # macOS: down to the disk, not to its cache
    [(mode,)] = connection.execute("pragma journal_mode = wal")
    if mode != "wal":
        raise sqlite3.OperationalError("its file system does not let processes share memory")


def copy_database(connection: sqlite3.Connection, path: Path) -> None:
    """Copy a database, as the connection sees it, to one file; StoreError if the disk is full."""
    with closing(sqlite3.connect(path)) as target:
        try:
            connection.backup(target)
            target.execute("pragma journal_mode = delete")
        except sqlite3.Error as error:
            raise StoreError(
                f"cannot write `{path}` ({error}); free disk space, then try again"
            ) from error


def _is_written(path: Path) -> bool:
    """Return whether the write-ahead log has content, as it does while a process writes."""
    log = status_of(path.with_name(f"{path.name}-wal"))
    return log is not None and log.st_size > 0


def network_file_system(path: Path) -> str | None:
    """Return the type of the network file system of an existing path; None for any other.

    None also if the system does not report it. Cost: 0.1 ms the first time for a device.
    """
    real = os.path.realpath(path)
    kind = kind_of_file_system(real, os.stat(real).st_dev)
    return kind if kind in _NETWORK else None


@lru_cache(maxsize=256)
def kind_of_file_system(path: str, device: int) -> str | None:
    """Return the type of the file system of a real path; `device` changes with what is mounted."""
    around = [
        mount
        for mount in mounts(MOUNTS)
        if path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
    ]
    # Of two at the same mount point the later one is on top.
    deepest = max(reversed(around), key=lambda mount: len(mount.point), default=None)
    return None if deepest is None else deepest.kind
