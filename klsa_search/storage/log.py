"""The write-ahead log of an index: an SQLite file of batches of writes.

Plain sqlite3, as it needs read-only and immutable connections, its own transactions and error
codes, and because a search, which reads the log, should not import sqlite-utils.

    WriteLog(generation)                    to read it, whether there is one or not
    log.last() -> Last                      how far it goes now; for who follows it
    log.rows(after, last) -> Write...       the writes behind a row, up to that
    log.kept(before) -> int                 the row up to which what was read then still holds
    log.batches() -> [Batch]                every batch there ever was, the undone ones too
    log.check(), log.copy_to(generation)

It is the file WRITES of a generation, SQLite with a write-ahead log next to it, and `log_writing`
writes it. Rows are only ever added, numbered from 1 without a gap: who undoes a batch marks it as
undone by a turn, so that what was so at any `Last` can be read later as well. Each row has a sum of
what it holds, as SQLite has none.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection.intake import document_fault, text_fault
from klsa_search.collection.model import Document
from klsa_search.core.forks import lock_free_in_children
from klsa_search.errors import BadDocument, IndexDamaged, StoreError
from klsa_search.storage import files
from klsa_search.storage.current import last_resort
from klsa_search.storage.files import is_exhausted, read_regular, write_fresh
from klsa_search.storage.names import BEGUN, WRITES

APPLICATION: Final = 0x4B4C5357  # "KLSW", in the head of the file
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


DECODER: Final = json.JSONDecoder(parse_constant=lambda _: None)
"""Reads metadata as it is kept. Version 0.2 also kept NaN and infinite numbers, which JSON does not
have: they are null."""

MOST_ID: Final = 512
"""Bytes of an id."""

MOST_DOCUMENT: Final = 10 * 2**20
"""Bytes of a document as JSON."""


class Write(NamedTuple):
    """One write: the document that was put there, or None where that of the id was deleted."""

    seq: int
    id: str
    document: Document | None


class Batch(NamedTuple):
    """Writes that became durable together; `undone` is the turn that undid them, if one has.

    last  the seq of its last row
    time  ISO 8601, UTC
    """

    number: int
    time: str
    puts: int
    deletes: int
    last: int
    undone: int | None


class LogPosition(NamedTuple):
    """How far a log goes: its last row that is not undone, and how often something was undone."""

    seq: int = 0
    turns: int = 0


def last_of(connection: sqlite3.Connection) -> LogPosition:
    """Tell how far the log goes, as the connection sees it."""
    [(turns,)] = connection.execute("select max(undone) from batches where undone is not null")
    found = connection.execute(
        "select * from batches where undone is null order by number desc limit 1"
    ).fetchone()
    return LogPosition(batch_of(found).last if found else 0, turns or 0)


def batch_of(row: tuple[Any, ...]) -> Batch:
    """Make a batch of a row with its sum; ValueError where they do not agree."""
    *values, known = row
    if known != sum_of(tuple(values)):
        raise ValueError(f"batch {row[0]} has changed since it was written")
    return Batch(*values)


def has_rows(connection: sqlite3.Connection, path: Path) -> bool:
    """Say whether something was written to the log at a path; DatabaseError if it is none of ours.

    Before the first row WRITES-wal is written, with the number of the log. So a log that is
    missing, or that of another index, differs from one that was not begun.
    """
    [(application,)] = connection.execute("pragma application_id")
    if application != APPLICATION:
        raise sqlite3.DatabaseError("it is not a log of writes")
    if not connection.execute("select 1 from batches").fetchone():
        return False
    [(number,)] = connection.execute("pragma user_version")
    if number_beside(path) != str(number):
        raise sqlite3.DatabaseError(f"{BEGUN} does not belong to this log")
    return True


def number_beside(path: Path) -> str | None:
    """Read the number of the log that was begun at a path; None if none was, IndexDamaged."""
    try:
        return read_regular(path.with_name(BEGUN), 100).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        if is_exhausted(error):
            raise
        raise damaged(path.with_name(BEGUN), error.strerror) from error


def copy_database(connection: sqlite3.Connection, path: Path) -> None:
    """Copy a database, as the connection sees it, to one file; StoreError if it has no room."""
    with closing(sqlite3.connect(path)) as target:
        try:
            connection.backup(target)
            target.execute("pragma journal_mode = delete")
        except sqlite3.Error as error:
            raise StoreError(
                f"cannot write `{path}` ({error}); free disk space, then try again"
            ) from error


def sum_of(row: tuple[Any, ...]) -> int:
    """Sum of what a row holds."""
    return zlib.crc32(repr(row).encode())


def checked_id(id_: str) -> str:
    """Return an id that can be kept; BadDocument for any other."""
    fault = text_fault(id_) if isinstance(id_, str) else f"is of type {type(id_).__name__}, not str"
    if fault is None and len(id_.encode()) > MOST_ID:
        fault = f"has {len(id_.encode()):,} bytes, {MOST_ID} are allowed"
    if fault:
        raise BadDocument(f"the id {str(id_)[:60]!r} {fault}; choose another", field="id")
    return id_


def document_as_json(document: Document) -> str:
    """Write a document as JSON, without its id and what is empty; BadDocument."""
    fault = document_fault(document)
    if fault:
        where = document.origin or f"document {str(document.id)[:60]!r}"
        raise BadDocument(f"{where}: {fault}; correct it and write again")
    checked_id(document.id)
    parts = {
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
    }
    written = json.dumps(
        {name: part for name, part in parts.items() if part}, ensure_ascii=False, allow_nan=False
    )
    size = len(written.encode())
    if size > MOST_DOCUMENT:
        raise BadDocument(
            f"document {document.id[:60]!r} has {size:,} bytes as JSON, more than "
            f"the limit of {MOST_DOCUMENT:,}; split it",
            field="text",
        )
    return written


def document_of(id_: str, written: str) -> Document:
    """Make a document of its id and what `document_as_json` wrote."""
    return Document(id=id_, **DECODER.decode(written))


def damaged(path: Path, fact: object) -> IndexDamaged:
    """Say that a log cannot be read for that reason."""
    return IndexDamaged(f"cannot read `{path}` ({fact}); {last_resort(path.parent.parent)}")


_NO_WAL: Final = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
)
_FOREVER: Final = 2**62
"""More than any number of rows, or of turns."""
_PIECE: Final = 2**24
"""Characters of documents that are read at a time, about."""


class WriteLog:
    """Reads the log of a generation. Safe to share between threads, and to carry over a fork.

    Each look is a connection of its own, 0.3 ms, and sees one state, whatever is written meanwhile.
    It needs no right to write. IndexDamaged where the file is no such log, or a row is not what was
    written; StoreError where it cannot be opened, or the generation is gone.
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self.path = generation / WRITES
        self._lock = lock_free_in_children()  # no thread is in SQLite while the process forks

    def last(self) -> LogPosition:
        """Tell how far the log goes. Cost: some pages, however long it is."""
        with self._look() as look:
            return last_of(look) if look else LogPosition()

    def rows(self, after: int = 0, last: LogPosition | None = None) -> Iterator[Write]:
        """Yield the writes behind row `after` that held at `last`, in order, by default at present.

        Memory: 16 MiB of text, or one document.
        """
        last = last or self.last()
        while after < last.seq:
            piece = self._piece(after, last)
            if not piece:
                raise damaged(self.path, f"rows {after + 1} to {last.seq} are missing")
            yield from piece
            after = piece[-1].seq

    def kept(self, before: LogPosition) -> int:
        """Tell up to which row what was read at `before` still holds: `before.seq` if nothing of it
        was undone since.
        """
        with self._look() as look:
            if look is None:
                return 0
            [(first,)] = look.execute(
                "select min(last - puts - deletes) from batches where undone > ?", [before.turns]
            )
        return before.seq if first is None else min(first, before.seq)

    def readable_rows(self) -> Iterator[Write]:
        """Yield the writes that hold at present and can be read, in order, whatever is damaged.

        For a log that `check` refuses: what cannot be read is left out without a word.
        """
        with self._lock, suppress(sqlite3.Error), closing(self._connected()) as connection:
            # What is no UTF-8 any more does not have its sum either.
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            for row in connection.execute(_VISIBLE, [0, _FOREVER, _FOREVER]):
                with suppress(IndexDamaged, ValueError, TypeError):
                    yield self._write(row)

    def batches(self) -> list[Batch]:
        """Every batch, oldest first."""
        with self._look() as look:
            if look is None:
                return []
            return list(map(batch_of, look.execute("select * from batches order by number")))

    def check(self) -> int:
        """Compare everything with its sum; return how many writes there are, undone ones too.

        What SQLite's own check finds, a row that has changed, one that is missing: IndexDamaged.
        Only a loss of the last batches from WRITES-wal cannot be distinguished from a time
        at which they were not written yet. Cost: reading the file.
        """
        with self._look() as look:
            if look is None:
                return 0
            [(found,)] = look.execute("pragma integrity_check(1)")
            if found != "ok":
                raise damaged(self.path, found)
            rows = look.execute("select * from writes order by seq")
            seq = 0
            for seq, row in enumerate(rows, 1):
                if row[0] != seq:
                    raise damaged(self.path, f"row {seq} is missing")
                self._write(row)
            end = 0
            for batch in map(batch_of, look.execute("select * from batches order by number")):
                end += batch.puts + batch.deletes
                if batch.last != end:
                    raise damaged(self.path, f"batch {batch.number} does not end at row {end}")
            if seq != end:
                raise damaged(self.path, f"it has {seq} rows, its batches {end}")
        return seq

    def copy_to(self, generation: Path) -> None:
        """Copy the log, as it is at this moment, into another generation; nothing if there is none.

        It may be written meanwhile. StoreError where there is no room.
        """
        with self._look() as look:
            if look is None:
                return
            write_fresh(generation / BEGUN, number_beside(self.path) or "")
            copy_database(look, generation / WRITES)

    def _piece(self, after: int, last: LogPosition) -> list[Write]:
        found, size = [], 0
        with self._look() as look:
            for row in look.execute(_VISIBLE, [after, last.seq, last.turns]) if look else ():
                found.append(self._write(row))
                size += len(row[3] or "") + 100
                if size > _PIECE:
                    break
        return found

    def _write(self, row: tuple[Any, ...]) -> Write:
        seq, _, id_, document, known = row
        if known != sum_of(row[:-1]):
            raise damaged(self.path, f"row {seq} has changed since it was written")
        return Write(seq, id_, None if document is None else document_of(id_, document))

    @contextmanager
    def _look(self) -> Iterator[sqlite3.Connection | None]:
        """Give a connection, of one state; None where nothing was written yet."""
        with self._lock:
            begun = number_beside(self.path)
            if not self.path.exists():
                if not self._generation.is_dir():
                    raise StoreError(f"`{self._generation}` was removed; open the index again")
                if begun is not None:
                    raise damaged(self.path, "it is missing")
                yield None
                return
            connection = None
            try:
                connection = self._connected()
                yield connection if has_rows(connection, self.path) else None
            except sqlite3.OperationalError as error:
                raise StoreError(
                    f"cannot read `{self.path}` ({error}); check its owner, its "
                    "permissions and free disk space, then try again"
                ) from error
            except (sqlite3.DatabaseError, ValueError, TypeError) as error:
                raise damaged(self.path, error) from error
            finally:
                if connection is not None:
                    connection.close()

    def _connected(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        if kind := files.network_file_system(self._generation):
            # Memory for WRITES-wal would be shared with processes of this machine alone.
            if self._is_written():
                raise StoreError(
                    f"cannot read `{self.path}`: another machine is writing to it, "
                    f"or left `{WRITES}-wal`, and this machine sees it through a "
                    f"network file system ({kind}); copy the index to a local disk "
                    "with `klsa-index backup` there"
                )
            return sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
        try:
            connection.execute("begin")
            connection.execute("select 1 from sqlite_master").fetchall()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF not in _NO_WAL or self._is_written():
                raise
            # No process writes, all is in the one file, and we may not create the others.
            connection = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_written(self) -> bool:
        """Return whether WRITES-wal has content, as while a process writes."""
        try:
            return self.path.with_name(f"{WRITES}-wal").stat().st_size > 0
        except FileNotFoundError:
            return False


_VISIBLE: Final = """
select seq, batch, id, document, writes.sum from writes join batches on batches.number = batch
where seq > ? and seq <= ? and (undone is null or undone > ?) order by seq
"""
