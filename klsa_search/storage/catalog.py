"""The catalogue of an index directory: what is small and changes, in one SQLite database.

    with read_catalog(home) as catalog: catalog.rows("aliases")
    with change_catalog(home) as catalog: catalog.insert("aliases", [("live", "reports-2")])

It is the file catalog.db of the directory, made by the first change. A change is one transaction,
durable on return; `catalog_entry` has the rows of one index. Readers and the writer do not wait for
each other. A connection lives for one transaction: none is carried into a forked process. Each row
has a checksum. Readers use plain sqlite3: importing sqlite-utils takes 0.1 s.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from klsa_search.errors import IndexBusy, IndexDamaged
from klsa_search.storage.database import (
    opened_to_read,
    refuse_network,
    row_checksum,
    unusable,
    use_wal,
)
from klsa_search.storage.files import sync, unreadable, writable
from klsa_search.storage.names import CATALOG, NEW

if TYPE_CHECKING:
    from sqlite_utils import Database


TIMEOUT: Final = 10.0
"""Seconds to wait for the transaction of another process or thread."""

_APPLICATION: Final = 0x4B4C5343  # "KLSC", in the file header
_VERSION: Final = 2

TABLES: Final[dict[str, dict[str, type]]] = {
    "indexes": {"id": str, "name": str},
    "aliases": {"name": str, "target": str},
    "directory": {"id": str, "inode": int, "location": str},
    "replication": {"work": str, "state": str},
    "jobs": {"id": int, "job": str},
    "ended_jobs": {"name": str, "outcome": str, "count": int},
    "settings": {"index": str, "build": str, "changes": str},
    "synonyms": {"index": str, "word": str, "synonyms": str},
    "rules": {"index": str, "id": str, "rule": str},
    "queries": {"index": str, "number": int, "text": str},
    "judgements": {"index": str, "query": int, "document": str, "grade": int},
}
"""Columns of each table, without the checksum: all but the last are its key.

Those of an index begin with its ID.
"""

Row = tuple[Any, ...]


class Catalog:
    """The catalogue of a directory within one transaction; without a connection, an empty one."""

    def __init__(self, home: Path, connection: sqlite3.Connection | None) -> None:
        self.file = home / CATALOG
        self._connection = connection

    def rows(
        self, table: str, where: str = "1", values: Sequence[object] = (), *, step: str = ""
    ) -> list[Row]:
        """Return rows in the order in which they were written, without their checksums.

        step  next step, for the message of IndexDamaged if one has changed since then
        """
        if self._connection is None:
            return []
        rows = []
        query = f'select * from "{table}" where {where} order by rowid'  # noqa: S608
        for *row, checksum in self._connection.execute(query, values):
            if checksum != row_checksum(tuple(row)):
                fact = f"a row of table `{table}` has changed since it was written"
                raise _damaged(self.file, fact, step)
            rows.append(tuple(row))
        return rows

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows, or replace those with the same key."""
        columns = (*TABLES[table], "sum")
        records = (dict(zip(columns, (*row, row_checksum(row)), strict=True)) for row in rows)
        self._database.table(table).insert_all(records, replace=True)

    def delete(self, table: str, where: str, values: Sequence[object]) -> None:
        """Delete rows."""
        self._database.table(table).delete_where(where, values)

    def check(self) -> None:
        """Raise DatabaseError for faults that SQLite finds. Cost: reading the file."""
        if self._connection is not None:
            [(result,)] = self._connection.execute("pragma integrity_check(1)")
            if result != "ok":
                raise sqlite3.DatabaseError(result)

    @property
    def _database(self) -> Database:
        from sqlite_utils import Database

        assert self._connection is not None
        return Database(self._connection, execute_plugins=False)


@contextmanager
def read_catalog(home: Path) -> Iterator[Catalog]:
    """Yield the catalogue of a directory as it is at one moment. Cost: 0.3 ms.

    It needs no write permission. IndexDamaged, IndexBusy, StoreError.
    """
    file = home / CATALOG
    if not os.path.lexists(file):
        yield Catalog(home, None)
        return
    with _translated_errors(file), opened_to_read(file, TIMEOUT) as connection:
        _check_kind(connection)
        yield Catalog(home, connection)


@contextmanager
def change_catalog(home: Path) -> Iterator[Catalog]:
    """Yield the catalogue of a directory; what the block changes becomes durable as a whole.

    Nothing changes if the block fails. IndexBusy if another change takes more than ten seconds;
    WritingRefused on a network file system; IndexDamaged, StoreError. Cost: some ms.
    """
    file = home / CATALOG
    with _translated_errors(file), writable(file):
        refuse_network(file)
        if not os.path.lexists(file):
            _create(file)
        with closing(sqlite3.connect(file, isolation_level=None, timeout=TIMEOUT)) as connection:
            _check_kind(connection)
            use_wal(connection)
            connection.execute("begin immediate")
            yield Catalog(home, connection)
            connection.execute("commit")


@contextmanager
def _translated_errors(file: Path) -> Iterator[None]:
    """Raise IndexBusy, IndexDamaged or StoreError in place of errors of SQLite."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:  # raised by Python for text that is not UTF-8
            raise _damaged(file, error) from error
        if code & 0xFF == sqlite3.SQLITE_BUSY:
            raise IndexBusy(
                f"`{file}` is being changed by another process or thread; try again"
            ) from None
        raise unusable(file, error) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(file, error) from error


def _create(file: Path) -> None:
    """Create an empty catalogue, in one step, unless there is one."""
    from sqlite_utils import Database

    fresh = file.with_name(f".{file.name}.{uuid4().hex}.{NEW}")
    try:
        with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            database = Database(connection, execute_plugins=False)
            for table, columns in TABLES.items():
                database.table(table).create({**columns, "sum": int}, pk=tuple(columns)[:-1])
            connection.execute(f"pragma application_id = {_APPLICATION}")
            connection.execute(f"pragma user_version = {_VERSION}")
            use_wal(connection)
        sync(fresh)
        with suppress(FileExistsError):  # another process has created it meanwhile
            os.link(fresh, file)
        sync(file.parent)
    finally:
        fresh.unlink(missing_ok=True)


def _check_kind(connection: sqlite3.Connection) -> None:
    [(application,)] = connection.execute("pragma application_id")
    [(version,)] = connection.execute("pragma user_version")
    if (application, version) != (_APPLICATION, _VERSION):
        raise sqlite3.DatabaseError("it is not a catalogue of this version")


def _damaged(file: Path, fact: object, step: str = "") -> IndexDamaged:
    step = step or (
        "restore the index directory from a backup, or move this file away: indexes then have the "
        "settings of their builds"
    )
    return unreadable(file, fact, step)
