"""Judgements: grades of documents for queries, stored outside all generations.

    Judgements(index).put(query, document, grade)
    Judgements(index).remove(query, document) -> int
    Judgements(index).queries() -> [JudgedQuery]

They are the file JUDGEMENTS of an index, SQLite with a rollback journal: of documents and queries,
and of no generation, so that builds, refits and rollbacks leave them as they are. Each change is a
transaction, on the disk when it returns; two who judge at once wait for each other. A query is
known by its text, and has a number that it keeps, by which files of judgements call it. SQL
writes the rows, because a judgement and its query are one transaction, with sums that SQL computes.
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
from klsa_search.core.forks import lock_free_in_children
from klsa_search.errors import IndexBusy, IndexDamaged, QueryError, StoreError
from klsa_search.storage.log import checked_id, copy_database, sum_of
from klsa_search.storage.names import JUDGEMENTS

if TYPE_CHECKING:
    from sqlite_utils import Database

MOST_GRADE: Final = 100
MOST_CHARACTERS: Final = 10_000
"""Of a query that is judged."""

_PATIENCE: Final = 10.0
"""Seconds that one who judges waits for another."""

_APPLICATION: Final = 0x4B4C534A
_VERSION: Final = 2
"""Rows have sums, as those of the log; in version 1 they had none."""

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
_UPGRADE: Final = """
alter table queries add column sum integer;
alter table judgements add column sum integer;
update queries set sum = row_sum(number, text);
update judgements set sum = row_sum(query, document, grade);
pragma user_version = 2;
"""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """One query and the grades its documents were given, by id; above 0 is relevant.

    number  by which files of judgements call it, from 1 in the order they were first judged
    """

    number: int
    text: str
    grades: Mapping[str, int]

    def judgements(self) -> list[Judgement]:
        """What is said of it, as collections have it; the query is called by its number."""
        return [
            Judgement(
                query_id=str(self.number), document_id=document, grade=grade, gain=max(grade, 0)
            )
            for document, grade in self.grades.items()
        ]

    def as_line(self) -> str:
        """Number, tab and text: a line of a file of queries."""
        return f"{self.number}\t{self.text}\n"


class Judgements:
    """The judgements of an index. Safe to share between threads, and to carry over a fork.

    Each call is a connection of its own, and sees one state: 0.2 ms to read, some ms to write.
    IndexDamaged where the file is none of judgements; IndexBusy where another writes for more than
    ten seconds; StoreError where it cannot be read or written.
    """

    def __init__(self, index: Path) -> None:
        self.path = index / JUDGEMENTS
        self._lock = lock_free_in_children()  # no thread is in SQLite while the process forks

    def put(self, query: str, document: str, grade: int) -> None:
        """Say how relevant a document is to a query, in the place of what was said before.

        QueryError for a blank query or a grade beyond -100 to 100; BadDocument for what is no id.
        """
        text, document = plain(query), checked_id(document)
        if not isinstance(grade, int) or isinstance(grade, bool) or abs(grade) > MOST_GRADE:
            raise QueryError(
                f"grade = {grade!r} is not a whole number from -{MOST_GRADE} to "
                f"{MOST_GRADE}; above 0 means relevant",
                field="grade",
            )
        with self._connected(writes=True, makes=True) as database:
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
        """Take back what was said of a document, or of all, for a query; return how many it was."""
        given = [plain(query), None if document is None else checked_id(document)]
        with self._connected(writes=True) as database:
            if database is None:
                return 0
            return database.execute(
                "delete from judgements where (?2 is null or document = ?2) "
                "and query = (select number from queries where text = ?1)",
                given,
            ).rowcount

    def queries(self, query: str | None = None) -> list[JudgedQuery]:
        """The queries that have judgements, or this one alone, in the order of their numbers;
        grades by id.
        """
        text = None if query is None else plain(query)
        with self._connected() as database:
            rows = [] if database is None else list(database.query(_GRADES, {"text": text}))
        found: dict[int, tuple[str, dict[str, int]]] = {}
        for row in rows:
            number, document, grade = row["number"], row["document"], row["grade"]
            if not isinstance(document, str) or not isinstance(grade, int):
                raise self._damaged(f"query {number} has {document!r} judged {grade!r}")
            found.setdefault(number, (row["text"], {}))[1][document] = grade
        return [JudgedQuery(number, text, grades) for number, (text, grades) in found.items()]

    def check(self) -> None:
        """Compare all with their sums; IndexDamaged. Version 1 has none. Cost: reading the file."""
        with self._connected() as database:
            if database is None:
                return
            [(found,)] = database.execute("pragma integrity_check(1)")
            if found != "ok":
                raise self._damaged(found)
            if _version(database) < _VERSION:
                return
            for statement in _CHANGED:
                if database.execute(statement).fetchone():
                    raise self._damaged("a row has changed since it was written")
        self.queries()

    def copy_to(self, index: Path) -> None:
        """Copy them, as they are at this moment, into another index; nothing if there are none.

        StoreError where there is no room.
        """
        with self._connected() as database:
            if database is None:
                return
            copy_database(database.conn, index / JUDGEMENTS)

    @contextmanager
    def _connected(self, *, writes: bool = False, makes: bool = False) -> Iterator[Database | None]:
        """Give the database, in a transaction that is kept if the block ends well.

        writes  whether others that write have to wait
        makes   the file; else None where there are no judgements yet
        """
        from sqlite_utils import Database

        with self._lock:
            if not makes and not self.path.exists():
                yield None
                return
            # Not "ro" to read: what one that died had begun is taken back first.
            address = f"{self.path.absolute().as_uri()}?mode={'rwc' if makes else 'rw'}"
            connection = None
            try:
                connection = sqlite3.connect(
                    address, uri=True, isolation_level=None, timeout=_PATIENCE
                )
                # Extra: a journal whose removal is not on the disk would undo the change.
                connection.execute("pragma synchronous = extra")
                connection.create_function("row_sum", -1, lambda *row: sum_of(row))
                connection.execute("begin immediate" if writes else "begin")
                database = Database(connection)
                there = self._has_tables(database, make=writes)
                if writes and there and _version(database) < _VERSION:
                    for statement in filter(str.strip, _UPGRADE.split(";")):
                        connection.execute(statement)
                yield database if there else None
                connection.execute("commit")
            except sqlite3.OperationalError as error:
                code = getattr(error, "sqlite_errorcode", None)
                if code is None:  # of Python: a text that is not UTF-8
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
                    connection.close()  # which takes back what was not committed

    def _has_tables(self, database: Database, *, make: bool) -> bool:
        """Whether the tables are there; they are made in a file of nothing, as one leaves
        that dies before its first judgement. IndexDamaged where something else is there.
        """
        [(application,)] = database.execute("pragma application_id")
        tables = database.table_names()
        if (application, len(tables)) == (_APPLICATION, 2) and 1 <= _version(database) <= _VERSION:
            return True
        if application or tables:
            raise self._damaged("it is another kind of file")
        if make:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                database.execute(statement)
        return make

    def _damaged(self, reason: object) -> IndexDamaged:
        return IndexDamaged(
            f"cannot read judgements from `{self.path}` ({reason}); restore it "
            "from a backup, or move it away"
        )


def _version(database: Database) -> int:
    [(version,)] = database.execute("pragma user_version")
    return int(version)


def plain(query: str) -> str:
    """The text by which a query is known: white space is one space, and none at its ends.

    QueryError for what is no text, a blank one, and one of more than 10,000 characters.
    """
    if not isinstance(query, str):
        raise QueryError(f"query = {query!r} is not a text; give a string", field="query")
    text = " ".join(query.split())
    if fault := text_fault(text):
        raise QueryError(f"query {fault}; judge another query", field="query")
    if not 1 <= len(text) <= MOST_CHARACTERS:
        raise QueryError(
            f"query has {len(text):,} characters; give 1 to {MOST_CHARACTERS:,}",
            field="query",
        )
    return text
