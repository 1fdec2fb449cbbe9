"""Writes the log: a batch is stored completely or not at all, and durable when the call returns.

with LogWriter(generation) as writer:
    writer.append(puts, deletes) -> LogPosition
    with writer.batch(puts, deletes) as end: ...        stored if the block raises nothing
    writer.undo(batches) -> LogPosition
    writer.last(), writer.rows(after)       reads as `WriteLog` does, by the same connection
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from klsa_search.collection.model import Document, checked_id, document_as_json
from klsa_search.core.wording import counted
from klsa_search.errors import StoreError
from klsa_search.storage.database import refuse_network, row_checksum, use_wal
from klsa_search.storage.files import is_real, sync, write_fresh
from klsa_search.storage.names import LOG_ID, NEW_WRITE_LOG
from klsa_search.storage.write_log import (
    APPLICATION,
    SCHEMA,
    LogPosition,
    WriteLog,
    damaged,
    has_rows,
    log_end,
    read_log_id,
)


class LogWriter(WriteLog, AbstractContextManager["LogWriter"]):
    """Reads the log of a generation and appends to it; the first write creates it.

    Use as a context manager: it keeps one connection, which a `WriteLog` opens for each read. The
    caller has the lock of the log (`generations.writing`) and has checked that CURRENT names
    the generation. For one thread at a time. Raise WritingRefused on a network file system;
    StoreError if writing fails: then nothing of the batch is stored, and reading still works.
    """

    def __init__(self, generation: Path) -> None:
        super().__init__(generation)
        self._connection: sqlite3.Connection | None = None

    def __exit__(self, *failure: object) -> None:
        """Close the log; SQLite merges it into one file unless a reader has it open."""
        self._close()

    def append(
        self, puts: Iterable[Document] = (), deletes: Iterable[str] = (), time: str | None = None
    ) -> LogPosition:
        """Write a batch, deletions before documents, and return the new end of the log.

        time  as of `write_time`; batches of one write to several partitions have the same
        The batch is durable on return. Deleting a missing ID is allowed; an empty batch is not
        stored. Raise BadDocument, with nothing written, for an invalid document: above 10 MiB as
        JSON, an ID above 512 bytes, metadata that is not JSON, text that is not Unicode.
        Cost: 1 ms, depending on the disk, and 35 µs a document. Memory: the batch as JSON.
        """
        with self.batch(puts, deletes, time) as end:
            return end

    @contextmanager
    def batch(
        self, puts: Iterable[Document] = (), deletes: Iterable[str] = (), time: str | None = None
    ) -> Iterator[LogPosition]:
        """Write a batch as `append` does if the block raises nothing, which can read it before.

        Yield the new end of the log. No other process sees the batch before the block ends.
        """
        deleted = [(checked_id(id_), None) for id_ in deletes]
        written = [(document.id, document_as_json(document)) for document in puts]
        with self._connected() as connection, self._rolled_back(connection):
            _begin(connection)
            if deleted or written:
                _insert(connection, [*deleted, *written], len(deleted), time or write_time())
            end = log_end(connection)
        # Errors of the block are not those of SQLite, which `_connected` translates.
        with self._rolled_back(connection):
            yield end
        with self._connected() as connection:
            self._commit(connection)

    def undo(self, batches: int = 1) -> LogPosition:
        """Undo the last batches that are not undone, and return the new end of the log.

        They stay on the disk and in `WriteLog.batches`, marked as undone. Raise StoreError if there
        are fewer.
        """
        with self._connected() as connection:
            with self._rolled_back(connection):
                _begin(connection)
                rows = connection.execute(
                    "select number, time, puts, deletes, last from batches where undone is null "
                    "order by number desc limit ?",
                    [batches],
                ).fetchall()
                if len(rows) < batches or batches < 1:
                    raise StoreError(
                        f"`{self.path}` has {counted(len(rows), 'batch', 'batches')} of writes to "
                        f"undo, not {batches:,}; give a smaller number",
                        field="batches",
                    )
                undo = log_end(connection).undos + 1
                connection.executemany(
                    "update batches set undone = ?, sum = ? where number = ?",
                    [(undo, row_checksum((*row, undo)), row[0]) for row in rows],
                )
                end = log_end(connection)
            self._commit(connection)
        return end

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection | None]:
        if not os.path.lexists(self.path):
            with super()._read() as none:
                yield none
            return
        with self._connected() as connection:
            if connection.in_transaction:  # in the block of a batch
                yield connection
                return
            connection.execute("begin")
            try:
                yield connection if connection.execute("select 1 from batches").fetchone() else None
            finally:
                connection.execute("rollback")

    def _commit(self, connection: sqlite3.Connection) -> None:
        with self._rolled_back(connection):
            connection.execute("commit")
        if self._identity() != self._file:
            raise StoreError(
                f"`{self.path}` was removed or replaced while it was being "
                "written; open the index again, then write again"
            )

    @contextmanager
    def _rolled_back(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Remove all traces of a transaction if the block fails.

        If syncing failed, all of it may be in WRITES-wal, where a recovery would find it: another
        transaction overwrites its beginning.
        """
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # the first failure is reported
                if connection.in_transaction:
                    connection.execute("rollback")
                _write_log_id(connection)
            raise

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; errors of SQLite become those of the index."""
        try:
            yield self._opened()
        except (sqlite3.DatabaseError, OSError, ValueError) as error:
            self._close()
            if not isinstance(error, sqlite3.OperationalError | OSError):
                raise damaged(self.path, error) from error
            raise StoreError(
                f"cannot write `{self.path}` ({error}), so nothing of the batch was kept; free "
                "disk space, or check the owner and permissions of its folder, then write again"
            ) from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            refuse_network(self.path)
            if not os.path.lexists(self.path):
                create_log(self.path)
            elif not is_real(self.path, stat.S_IFREG):
                raise StoreError(
                    f"`{self.path}` does not belong to the index; move it away, then write again"
                )
            self._connection = _opened(self.path)
            self._file = self._identity()
        return self._connection

    def _identity(self) -> tuple[int, int] | None:
        try:
            file = self.path.stat()
        except OSError:
            return None
        return file.st_dev, file.st_ino

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def create_log(path: Path) -> None:
    """Create a log without rows, atomically."""
    if read_log_id(path) is not None:
        raise damaged(path, "it is missing")
    fresh = path.with_name(NEW_WRITE_LOG)
    for name in (fresh, fresh.with_name(f"{NEW_WRITE_LOG}-journal")):
        name.unlink(missing_ok=True)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        log_id = secrets.randbits(31)
        connection.executescript(
            f"begin; {SCHEMA} pragma application_id = {APPLICATION}; "
            f"pragma user_version = {log_id}; commit;"
        )
    sync(fresh)
    fresh.rename(path)
    sync(path.parent)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        begun = has_rows(connection, path)
        use_wal(connection)
        if not begun:
            [(log_id,)] = connection.execute("pragma user_version")
            path.with_name(LOG_ID).unlink(missing_ok=True)  # left incomplete by another process
            write_fresh(path.with_name(LOG_ID), str(log_id))
            sync(path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(connection: sqlite3.Connection) -> None:
    connection.execute("begin immediate")
    _write_log_id(connection)


def _write_log_id(connection: sqlite3.Connection) -> None:
    """Write the log ID within a transaction, so that WRITES-wal identifies its log."""
    [(log_id,)] = connection.execute("pragma user_version")
    connection.execute(f"pragma user_version = {log_id}")


def write_time() -> str:
    """Return the present time as batches have it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _insert(
    connection: sqlite3.Connection, rows: list[tuple[str, str | None]], deletes: int, time: str
) -> None:
    [(seq,)] = connection.execute("select coalesce(max(seq), 0) from writes")
    [(batch,)] = connection.execute("select coalesce(max(number), 0) + 1 from batches")
    row = (batch, time, len(rows) - deletes, deletes, seq + len(rows), None)
    connection.execute("insert into batches values (?, ?, ?, ?, ?, ?, ?)", _with_checksum(row))
    connection.executemany(
        "insert into writes values (?, ?, ?, ?, ?)",
        (_with_checksum((number, batch, *row)) for number, row in enumerate(rows, seq + 1)),
    )


def _with_checksum(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row, row_checksum(row))
