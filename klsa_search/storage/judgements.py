"""Judgements: grades of documents for queries, stored outside all generations.

    Judgements(index).put(query, document, grade)
    Judgements(index).remove(query, document) -> int
    Judgements(index).queries() -> [JudgedQuery]

They are the file JUDGEMENTS of an index, SQLite with a rollback journal. They belong to no
generation: builds, refits and rollbacks do not change them. Each change is a transaction, durable
on return; writers wait for each other. A query is identified by its text and keeps the number that
files of judgements use. SQL writes the rows, because a judgement and its query are one transaction,
with checksums computed in SQL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from klsa_search.collection.intake import text_fault
from klsa_search.collection.model import Judgement
from klsa_search.errors import IndexBusy, IndexDamaged, QueryError, StoreError
from klsa_search.storage.log import checked_id, copy_database, row_checksum
from klsa_search.storage.names import JUDGEMENTS

if TYPE_CHECKING:
    from sqlite_utils import Database

MAX_GRADE: Final = 100
MAX_QUERY_CHARACTERS: Final = 10_000
"""Length limit of a judged query."""

WRITE_TIMEOUT: Final = 10.0
"""Seconds that a writer waits for another."""

_APPLICATION: Final = 0x4B4C534A
_VERSION: Final = 1

_SCHEMA: Final = f"""
create table queries (number integer primary key, text text not null unique, sum integer);
create table judgements (
  query integer not null references queries, document text not null, grade integer not null,
  sum integer, primary key (query, document)
) without rowid;
pragma application_id = {_APPLICATION};
pragma user_version = {_VERSION};
"""
_CHANGED: Final = (
    "select 1 from queries where sum is not row_sum(number, text)",
    "select 1 from judgements where sum is not row_sum(query, document, grade)",
)
_GRADES: Final = """
select number, text, document, grade from judgements join queries on query = number
where :text is null or text = :text order by number, document
"""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """One query and the grades of its documents, by ID; above 0 is relevant.

    number  its name in files of judgements, from 1 in the order of their first judgements
    """

    number: int
    text: str
    grades: Mapping[str, int]

    def judgements(self) -> list[Judgement]:
        """Return its judgements in the form of collections; the query is named by its number."""
        return [
            Judgement(
                query_id=str(self.number), document_id=document, grade=grade, gain=max(grade, 0)
            )
            for document, grade in self.grades.items()
        ]

    def as_line(self) -> str:
        """Return number, tab and text: a line of a file of queries."""
        return f"{self.number}\t{self.text}\n"


class Judgements:
    """The judgements of an index. Safe to share between threads.

    Each call opens a connection and sees one state: 0.2 ms to read, some ms to write.
    Raise IndexDamaged if the file is not one of judgements; IndexBusy if another writer takes more
    than ten seconds; StoreError if it cannot be read or written.
    """

    def __init__(self, index: Path) -> None:
        self.path = index / JUDGEMENTS

    def put(self, query: str, document: str, grade: int) -> None:
        """Set the grade of a document for a query, replacing any earlier one.

        Raise QueryError for a blank query or a grade beyond -100 to 100; BadDocument for an
        invalid ID.
        """
        text, document = plain(query), checked_id(document)
        if not isinstance(grade, int) or isinstance(grade, bool) or abs(grade) > MAX_GRADE:
            raise QueryError(
                f"grade = {grade!r} is not a whole number from -{MAX_GRADE} to "
                f"{MAX_GRADE}; above 0 means relevant",
                field="grade",
            )
        with self._connected(writes=True, create=True) as database:
            assert database is not None
            database.execute("insert or ignore into queries (text) values (?)", [text])
            database.execute(
                "update queries set sum = row_sum(number, text) where text = ? and sum is null",
                [text],
            )
            database.execute(
                "insert or replace into judgements "
                "select number, ?1, ?2, row_sum(number, ?1, ?2) from queries where text = ?3",
                [document, grade, text],
            )

    def remove(self, query: str, document: str | None = None) -> int:
        """Remove the judgement of a document, or all, of a query; return how many were removed."""
        parameters = [plain(query), None if document is None else checked_id(document)]
        with self._connected(writes=True) as database:
            if database is None:
                return 0
            return database.execute(
                "delete from judgements where (?2 is null or document = ?2) "
                "and query = (select number from queries where text = ?1)",
                parameters,
            ).rowcount

    def queries(self, query: str | None = None) -> list[JudgedQuery]:
        """Return all judged queries, or this one, in the order of their numbers; grades by ID."""
        text = None if query is None else plain(query)
        with self._connected() as database:
            rows = [] if database is None else list(database.query(_GRADES, {"text": text}))
        queries: dict[int, tuple[str, dict[str, int]]] = {}
        for row in rows:
            number, document, grade = row["number"], row["document"], row["grade"]
            if not isinstance(document, str) or not isinstance(grade, int):
                raise self._damaged(f"query {number} has {document!r} judged {grade!r}")
            queries.setdefault(number, (row["text"], {}))[1][document] = grade
        return [JudgedQuery(number, text, grades) for number, (text, grades) in queries.items()]

    def check(self) -> None:
        """Compare all checksums; IndexDamaged. Cost: reading the file."""
        with self._connected() as database:
            if database is None:
                return
            [(result,)] = database.execute("pragma integrity_check(1)")
            if result != "ok":
                raise self._damaged(result)
            for statement in _CHANGED:
                if database.execute(statement).fetchone():
                    raise self._damaged("a row has changed since it was written")
        self.queries()

    def copy_to(self, index: Path) -> None:
        """Copy all judgements, as they are at this moment, into another index, if there are any.

        Raise StoreError if the disk is full.
        """
        with self._connected() as database:
            if database is None:
                return
            copy_database(database.conn, index / JUDGEMENTS)

    @contextmanager
    def _connected(
        self, *, writes: bool = False, create: bool = False
    ) -> Iterator[Database | None]:
        """Yield the database, in a transaction that is committed if the block succeeds.

        writes  lock out other writers
        create  create the file; else yield None if there are no judgements yet
        """
        from sqlite_utils import Database

        if not create and not self.path.exists():
            yield None
            return
        # Not "ro" for reading: SQLite first rolls back what an interrupted writer left.
        address = f"{self.path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
        connection = None
        try:
            connection = sqlite3.connect(
                address, uri=True, isolation_level=None, timeout=WRITE_TIMEOUT
            )
            # Extra: a journal whose removal is not durable would undo the change.
            connection.execute("pragma synchronous = extra")
            connection.create_function("row_sum", -1, lambda *row: row_checksum(row))
            connection.execute("begin immediate" if writes else "begin")
            database = Database(connection)
            has_tables = self._has_tables(database, create=writes)
            yield database if has_tables else None
            connection.execute("commit")
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None:  # raised by Python for text that is not UTF-8
                raise self._damaged(error) from error
            if code & 0xFF == sqlite3.SQLITE_BUSY:
                raise IndexBusy(
                    f"`{self.path}` is being written by another process; try again"
                ) from None
            raise StoreError(
                f"cannot {'write' if writes else 'read'} `{self.path}` "
                f"({error}); check its owner, its permissions and free disk "
                "space, then try again"
            ) from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error
        finally:
            if connection is not None:
                connection.close()  # rolls back what was not committed

    def _has_tables(self, database: Database, *, create: bool) -> bool:
        """Return whether the tables exist; create them in an empty file, as left by a process
        that died before the first judgement. Raise IndexDamaged for any other content.
        """
        [(application,)] = database.execute("pragma application_id")
        tables = database.table_names()
        if (application, len(tables)) == (_APPLICATION, 2) and _version(database) == _VERSION:
            return True
        if application or tables:
            raise self._damaged("it is another kind of file")
        if create:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                database.execute(statement)
        return create

    def _damaged(self, reason: object) -> IndexDamaged:
        return IndexDamaged(
            f"cannot read judgements from `{self.path}` ({reason}); restore it "
            "from a backup, or move it away"
        )


def _version(database: Database) -> int:
    [(version,)] = database.execute("pragma user_version")
    return int(version)


def plain(query: str) -> str:
    """Return the text that identifies a query: white space is one space, and stripped at the ends.

    Raise QueryError for anything but a string, a blank one, and one of more than 10,000 characters.
    """
    if not isinstance(query, str):
        raise QueryError(f"query = {query!r} is not a text; give a string", field="query")
    text = " ".join(query.split())
    if fault := text_fault(text):
        raise QueryError(f"query {fault}; judge another query", field="query")
    if not 1 <= len(text) <= MAX_QUERY_CHARACTERS:
        raise QueryError(
            f"query has {len(text):,} characters; give 1 to {MAX_QUERY_CHARACTERS:,}",
            field="query",
        )
    return text
