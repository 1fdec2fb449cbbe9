"""The log of writes of an index: an SQLite file of batches.

    WriteLog(generation)                    reads the log, if there is one
    log.last() -> LogPosition               its end
    log.rows(after, last) -> Write...       writes after a row, up to a position
    log.valid_until(position) -> int        last row read up to a position that is still valid
    log.batches() -> [Batch]                all batches, undone ones included
    log.check(), log.copy_to(generation)

It is the file WRITES of a generation, in SQLite's WAL mode; `write_log_writer` writes it. Rows are
only ever added, numbered from 1 without gaps. Undoing a batch marks it with the number of the undo,
so that the state at any `LogPosition` can be read later. Each row has a checksum, as SQLite has
none.

Plain sqlite3, because the log needs read-only and immutable connections, explicit transactions and
error codes, and a search, which reads the log, should not import sqlite-utils.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection.model import Document, document_of
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.current import last_resort
from klsa_search.storage.database import copy_database, opened_to_read, row_checksum, unusable
from klsa_search.storage.files import read_regular, unreadable, write_fresh
from klsa_search.storage.names import LOG_ID, WRITE_LOG

APPLICATION: Final = 0x4B4C5357  # "KLSW", in the file header
SCHEMA: Final = """
create table batches (
    number integer primary key, time text not null, puts integer not null,
    deletes integer not null, last integer not null, undone integer, sum integer not null
);
create index undone on batches (undone) where undone is not null;
create table writes (
    seq integer primary key, batch integer not null, id text not null, document text,
    sum integer not null
);
"""


class Write(NamedTuple):
    """One write: the document that was put, or None if the ID was deleted."""

    seq: int
    id: str
    document: Document | None


class Batch(NamedTuple):
    """Writes that became durable together.

    time    ISO 8601, UTC
    last    seq of its last row
    undone  number of the undo that undid it, or None
    """

    number: int
    time: str
    puts: int
    deletes: int
    last: int
    undone: int | None


class LogPosition(NamedTuple):
    """End of a log: the last row that is not undone, and the number of undos so far."""

    seq: int = 0
    undos: int = 0


def log_end(connection: sqlite3.Connection) -> LogPosition:
    """Return the end of the log, as the connection sees it."""
    [(undos,)] = connection.execute("select max(undone) from batches where undone is not null")
    row = connection.execute(
        "select * from batches where undone is null order by number desc limit 1"
    ).fetchone()
    return LogPosition(parse_batch(row).last if row else 0, undos or 0)


def parse_batch(row: tuple[Any, ...]) -> Batch:
    """Return the batch of a row; ValueError if its checksum does not match."""
    *values, sum_ = row
    if sum_ != row_checksum(tuple(values)):
        raise ValueError(f"batch {row[0]} has changed since it was written")
    return Batch(*values)


def has_rows(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the log at a path has rows; DatabaseError if it is not a log of ours.

    Before the first row the log ID is written to a file of its own. So a missing log, or that of
    another index, differs from one that was not begun.
    """
    [(application,)] = connection.execute("pragma application_id")
    if application != APPLICATION:
        raise sqlite3.DatabaseError("it is not a log of writes")
    if not connection.execute("select 1 from batches").fetchone():
        return False
    [(log_id,)] = connection.execute("pragma user_version")
    if read_log_id(path) != str(log_id):
        raise sqlite3.DatabaseError(f"{LOG_ID} does not belong to this log")
    return True


def read_log_id(path: Path) -> str | None:
    """Return the ID of the log that was begun at a path; None if none was, IndexDamaged."""
    try:
        return read_regular(path.with_name(LOG_ID), 100).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise damaged(path.with_name(LOG_ID), error) from error


def damaged(path: Path, fact: object) -> IndexDamaged:
    """Return the error that a log cannot be read for that reason."""
    return unreadable(path, fact, last_resort(path.parent.parent))


_FOREVER: Final = 2**62
"""More than any number of rows or undos."""
READ_CHARACTERS: Final = 2**24
"""Characters of documents read at a time, approximately."""


class WriteLog:
    """Reads the log of a generation. Safe to share between threads.

    Each read opens a connection, 0.3 ms, and sees one state whatever is written meanwhile. It needs
    no write permission. Raise IndexDamaged if the file is not such a log or a row has changed;
    StoreError if it cannot be opened or the generation is gone.
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self.path = generation / WRITE_LOG

    def last(self) -> LogPosition:
        """Return the end of the log. Cost: reading some pages, for any length."""
        with self._read() as connection:
            return log_end(connection) if connection else LogPosition()

    def rows(self, after: int = 0, last: LogPosition | None = None) -> Iterator[Write]:
        """Yield the writes after row `after` that are visible at `last`, by default at present.

        Memory: 16 MiB of text, or one document.
        """
        last = last or self.last()
        while after < last.seq:
            batch = self._read_rows(after, last)
            if not batch:
                raise damaged(self.path, f"rows {after + 1} to {last.seq} are missing")
            yield from batch
            after = batch[-1].seq

    def valid_until(self, position: LogPosition) -> int:
        """Return the last row read up to `position` that is still valid.

        This is `position.seq` unless some of those rows were undone since.
        """
        with self._read() as connection:
            if connection is None:
                return 0
            [(first,)] = connection.execute(
                "select min(last - puts - deletes) from batches where undone > ?", [position.undos]
            )
        return position.seq if first is None else min(first, position.seq)

    def readable_rows(self) -> list[Write]:
        """Return the visible writes that can be read, in order; skip damaged ones silently.

        For a log that `check` rejects. Memory: all of them.
        """
        writes: list[Write] = []
        with suppress(sqlite3.Error), opened_to_read(self.path) as connection:
            # Invalid UTF-8 does not match its checksum either.
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            for row in connection.execute(_VISIBLE, [0, _FOREVER, _FOREVER]):
                with suppress(IndexDamaged, ValueError, TypeError):
                    writes.append(self._write(row))
        return writes

    def state_id(self) -> str:
        """Return a value that every write and undo changes; empty if nothing was written."""
        with self._read() as connection:
            if connection is None:
                return ""
            [(log_id,)] = connection.execute("pragma user_version")
            [(row,)] = connection.execute("select sum from writes order by seq desc limit 1")
            [(batch,)] = connection.execute("select sum from batches order by number desc limit 1")
            end = log_end(connection)
            return f"{log_id}-{end.seq}-{end.undos}-{row}-{batch}"

    def continues(self, earlier: WriteLog) -> bool:
        """Return whether this is a later state of the same log, or an equal one."""
        with self._read() as connection, earlier._read() as before:
            if before is None or connection is None:
                return before is None
            log_id = "pragma user_version"
            if before.execute(log_id).fetchone() != connection.execute(log_id).fetchone():
                return False
            last = before.execute("select seq, sum from writes order by seq desc").fetchone()
            same = connection.execute("select seq, sum from writes where seq = ?", last[:1])
            if same.fetchone() != last:
                return False
            old = [parse_batch(row) for row in before.execute(_BATCHES)]
            new = [parse_batch(row) for row in connection.execute(_BATCHES)][: len(old)]
            if [batch._replace(undone=None) for batch in old] != [
                batch._replace(undone=None) for batch in new
            ]:
                return False
            return all(a.undone in (None, b.undone) for a, b in zip(old, new, strict=True))

    def batches(self) -> list[Batch]:
        """Return all batches, oldest first."""
        with self._read() as connection:
            if connection is None:
                return []
            return list(map(parse_batch, connection.execute(_BATCHES)))

    def check(self) -> int:
        """Compare all checksums; return the number of writes, undone ones included.

        Raise IndexDamaged for faults that SQLite reports, changed rows and missing rows. Only a
        loss of the last batches from WRITES-wal cannot be told from a time before they were
        written. Cost: reading the file.
        """
        with self._read() as connection:
            if connection is None:
                return 0
            [(result,)] = connection.execute("pragma integrity_check(1)")
            if result != "ok":
                raise damaged(self.path, result)
            rows = connection.execute("select * from writes order by seq")
            seq = 0
            for seq, row in enumerate(rows, 1):
                if row[0] != seq:
                    raise damaged(self.path, f"row {seq} is missing")
                self._write(row)
            batches = map(parse_batch, connection.execute(_BATCHES))
            end = sum(batch.puts + batch.deletes for batch in batches)
            if seq != end:
                raise damaged(self.path, f"it has {seq} rows, its batches {end}")
        return seq

    def copy_to(self, generation: Path) -> None:
        """Copy the log, as it is at this moment, into another generation, if there is one.

        It may be written meanwhile. Raise StoreError if the disk is full.
        """
        with self._read() as connection:
            if connection is None:
                return
            write_fresh(generation / LOG_ID, read_log_id(self.path) or "")
            copy_database(connection, generation / WRITE_LOG)

    def _read_rows(self, after: int, last: LogPosition) -> list[Write]:
        writes, size = [], 0
        with self._read() as connection:
            if connection is None:
                return []
            for row in connection.execute(_VISIBLE, [after, last.seq, last.undos]):
                writes.append(self._write(row))
                size += len(row[3] or "") + 100
                if size > READ_CHARACTERS:
                    break
        return writes

    def _write(self, row: tuple[Any, ...]) -> Write:
        seq, _, id_, document, sum_ = row
        if sum_ != row_checksum(row[:-1]):
            raise damaged(self.path, f"row {seq} has changed since it was written")
        return Write(seq, id_, None if document is None else document_of(id_, document))

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection | None]:
        """Yield a connection that sees one state; None if nothing was written yet."""
        log_id = read_log_id(self.path)
        if not self.path.exists():
            if not self._generation.is_dir():
                raise StoreError(f"`{self._generation}` was removed; open the index again")
            if log_id is not None:
                raise damaged(self.path, "it is missing")
            yield None
            return
        try:
            with opened_to_read(self.path) as connection:
                yield connection if has_rows(connection, self.path) else None
        except sqlite3.OperationalError as error:
            raise unusable(self.path, error, "read") from error
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise damaged(self.path, error) from error


_BATCHES: Final = "select * from batches order by number"
_VISIBLE: Final = """
select seq, batch, id, document, writes.sum from writes join batches on batches.number = batch
where seq > ? and seq <= ? and (undone is null or undone > ?) order by seq
"""
