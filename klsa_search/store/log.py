"""The log of writes: what was put into an index and deleted from it since its generation was built.

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

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.forks import lock_free_in_children
from klsa_search.store import file_system
from klsa_search.store.files import write_fresh
from klsa_search.store.log_format import (
    Batch,
    Last,
    Write,
    batch_of,
    copy_database,
    damaged,
    document_of,
    has_rows,
    last_of,
    number_beside,
    sum_of,
)
from klsa_search.store.names import BEGUN, WRITES

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

    def last(self) -> Last:
        """Tell how far the log goes. Cost: some pages, however long it is."""
        with self._look() as look:
            return last_of(look) if look else Last()

    def rows(self, after: int = 0, last: Last | None = None) -> Iterator[Write]:
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

    def kept(self, before: Last) -> int:
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

    def _piece(self, after: int, last: Last) -> list[Write]:
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
        if kind := file_system.network_file_system(self._generation):
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
