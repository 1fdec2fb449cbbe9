"""Writing the log: a batch is stored completely or not at all, and acknowledged when it is durable.

with LogWriter(generation) as writer:
    writer.append(puts, deletes) -> Last
    writer.undo(batches) -> Last
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from klsa_search.collection.model import Document
from klsa_search.core.forks import lock_free_in_children
from klsa_search.errors import StoreError, WritingRefused
from klsa_search.storage import files
from klsa_search.storage.files import is_real, sync, write_fresh
from klsa_search.storage.log import (
    APPLICATION,
    SCHEMA,
    LogPosition,
    checked_id,
    damaged,
    document_as_json,
    has_rows,
    last_of,
    number_beside,
    sum_of,
)
from klsa_search.storage.names import BEGUN, NEW_WRITES, WRITES


class LogWriter:
    """Appends to the log of a generation, which the first write makes. Use as a context manager.

    Who writes holds the lock of the index (`generations.alone`) and has seen that CURRENT names the
    generation. Not for a forked child. WritingRefused on a network file system; StoreError where
    nothing can be written: then nothing of the batch is there, and reading goes on.
    """

    def __init__(self, generation: Path) -> None:
        self.path = generation / WRITES
        self._lock = lock_free_in_children()  # no thread is in SQLite while the process forks
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()

    def __enter__(self) -> LogWriter:
        """Return itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Close the log, all of which is in one file again unless somebody reads it."""
        self._close()

    def append(self, puts: Iterable[Document] = (), deletes: Iterable[str] = ()) -> LogPosition:
        """Write a batch, the deletions before the documents, and return how far the log goes then.

        When this returns, the batch is on the disk. An id that is not there can be deleted. An
        empty batch is none. BadDocument, with nothing written, for a document that cannot be
        kept: above 10 MiB as JSON, an id above 512 bytes, metadata that is no JSON, text that is no
        Unicode. Cost: 1 ms, as the disk is, and 35 µs a document. Memory: the batch as JSON.
        """
        gone = [(checked_id(id_), None) for id_ in deletes]
        written = [(document.id, document_as_json(document)) for document in puts]
        with self._transaction() as connection:
            before = last_of(connection)
            if gone or written:
                _insert(connection, [*gone, *written], len(gone))
            return last_of(connection) if gone or written else before

    def undo(self, batches: int = 1) -> LogPosition:
        """Undo the last batches that are not undone, and return how far the log goes then.

        The next write starts from there. They stay on the disk and in `batches`, as undone.
        StoreError if there are fewer.
        """
        with self._transaction() as connection:
            rows = connection.execute(
                "select number, time, puts, deletes, last from batches where undone is null "
                "order by number desc limit ?",
                [batches],
            ).fetchall()
            if len(rows) < batches or batches < 1:
                raise StoreError(
                    f"`{self.path}` has {len(rows):,} batches of writes to undo, "
                    f"not {batches:,}; give a smaller number",
                    field="batches",
                )
            turn = last_of(connection).turns + 1
            connection.executemany(
                "update batches set undone = ?, sum = ? where number = ?",
                [(turn, sum_of((*row, turn)), row[0]) for row in rows],
            )
            return last_of(connection)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                connection = self._own()
                connection.execute("begin immediate")
                try:
                    _sign(connection)
                    yield connection
                    connection.execute("commit")
                except BaseException:
                    self._take_back(connection)
                    raise
                self._see_it_is_there()
            except sqlite3.OperationalError as error:
                self._close()
                raise StoreError(
                    f"cannot write `{self.path}` ({error}), so nothing of the "
                    "batch was kept; free disk space, or check the owner and "
                    "permissions, then write again"
                ) from error
            except OSError as error:
                self._close()
                raise StoreError(
                    f"cannot create `{self.path}` ({error}); free disk space, or "
                    "check the owner and permissions of its folder, then write "
                    "again"
                ) from error
            except (sqlite3.DatabaseError, ValueError) as error:
                self._close()
                raise damaged(self.path, error) from error

    def _own(self) -> sqlite3.Connection:
        """Return the connection of this process, to a log that has been begun."""
        if self._process != os.getpid():
            raise StoreError(
                f"`{self.path}` is being written by the process that this one was "
                "forked from; open the index again"
            )
        if self._connection is None:
            if kind := files.network_file_system(self.path.parent):
                raise WritingRefused(
                    f"cannot write `{self.path}`: it is on a network file system "
                    f"({kind}), where SQLite's write-ahead log does not work; keep "
                    "the index on a local disk of the machine that writes, and "
                    "copy it to others with `klsa-index backup`"
                )
            if not os.path.lexists(self.path):
                _begin(self.path)
            elif not is_real(self.path, stat.S_IFREG):
                raise StoreError(
                    f"`{self.path}` does not belong to the index; move it away, then write again"
                )
            self._connection = _opened(self.path)
            self._file = self._identity()
        return self._connection

    def _take_back(self, connection: sqlite3.Connection) -> None:
        """Leave nothing of a transaction that failed.

        Where syncing failed, all of it may be in WRITES-wal, and would be found there when
        all processes have died: another transaction is written over its beginning.
        """
        with suppress(sqlite3.Error):  # the first failure is reported
            if connection.in_transaction:
                connection.execute("rollback")
            _sign(connection)

    def _see_it_is_there(self) -> None:
        if self._identity() != self._file:
            raise StoreError(
                f"`{self.path}` was removed or replaced while it was being "
                "written; open the index again, then write again"
            )

    def _identity(self) -> tuple[int, int] | None:
        try:
            file = self.path.stat()
        except OSError:
            return None
        return file.st_dev, file.st_ino

    def _close(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
            self._connection = None


def _begin(path: Path) -> None:
    """Make a log without a row, whole or not at all."""
    if number_beside(path) is not None:
        raise damaged(path, "it is missing")
    fresh = path.with_name(NEW_WRITES)
    for name in (fresh, fresh.with_name(f"{NEW_WRITES}-journal")):
        name.unlink(missing_ok=True)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        number = secrets.randbelow(2**31 - 1) + 1
        connection.executescript(
            f"begin; {SCHEMA} pragma application_id = {APPLICATION}; "
            f"pragma user_version = {number}; commit;"
        )
    sync(fresh)
    fresh.rename(path)
    sync(path.parent)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        begun = has_rows(connection, path)
        connection.execute("pragma synchronous = full")
        connection.execute("pragma fullfsync = on")  # macOS: down to the disk, not to its cache
        [(mode,)] = connection.execute("pragma journal_mode = wal")
        if mode != "wal":
            raise sqlite3.OperationalError("its file system does not let processes share memory")
        if not begun:
            [(number,)] = connection.execute("pragma user_version")
            path.with_name(BEGUN).unlink(missing_ok=True)  # half of one, of a process that died
            write_fresh(path.with_name(BEGUN), str(number))
            sync(path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def _sign(connection: sqlite3.Connection) -> None:
    """Write the number of the log with a transaction: so WRITES-wal names its log."""
    [(number,)] = connection.execute("pragma user_version")
    connection.execute(f"pragma user_version = {number}")


def _insert(
    connection: sqlite3.Connection, rows: list[tuple[str, str | None]], deletes: int
) -> None:
    [(seq,)] = connection.execute("select coalesce(max(seq), 0) from writes")
    [(batch,)] = connection.execute("select coalesce(max(number), 0) + 1 from batches")
    time = datetime.now(UTC).isoformat(timespec="seconds")
    whole = (batch, time, len(rows) - deletes, deletes, seq + len(rows), None)
    connection.execute("insert into batches values (?, ?, ?, ?, ?, ?, ?)", _summed(whole))
    connection.executemany(
        "insert into writes values (?, ?, ?, ?, ?)",
        (_summed((number, batch, *row)) for number, row in enumerate(rows, seq + 1)),
    )


def _summed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row, sum_of(row))
