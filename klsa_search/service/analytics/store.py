"""The file of analytics: recent searches one by one, earlier ones as counts by day.

Single searches and their events are kept until an hour after the end of their day (UTC). Then they
are added to counts of each query, and rare queries are added up without their text. All processes
of a service share the file, SQLite with a write-ahead log; a batch is one transaction.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

from klsa_search.errors import StoreError

FILE: Final = ".analytics.db"  # name of the file in the index directory
MAX_BYTES: Final = 2**30
"""Size of the file from which further searches are lost: some ten million searches in a day."""

ID_BITS: Final = 22
"""Random bits of the ID of a search; the others are the milliseconds of its time."""

TYPING: Final = 10.0
"""Seconds in which a longer query replaces one that it begins with: see `Store.settle`."""

_SETTLED: Final = 15.0
"""Seconds after which all searches of other processes near a search are stored."""

_SETTLE_SPAN: Final = 60.0  # seconds of searches that are settled at once
_GRACE: Final = timedelta(hours=1)
"""Time after the end of a day in which events of its searches are accepted."""

TIMEOUT: Final = 5.0  # seconds that a writer waits for another process
SCHEMA: Final = """
create table if not exists searches (
  id integer primary key, "index" text not null, query text not null, hits integer not null,
  good integer, corrected integer not null, expanded integer not null,
  microseconds integer not null, status text not null
);
create index if not exists typing on searches (id) where status = 'typing';
create table if not exists events (
  search integer, "index" text not null, type text, document text, position integer, next integer,
  primary key (search, type, document)
) without rowid;
create table if not exists queries (
  "index" text, day text, query text, searches integer, no_results integer, low_quality integer,
  corrected integer, expanded integer, microseconds integer, clicked integer, clicks integer,
  positions integer, conversions integer, primary key ("index", day, query)
) without rowid;
create table if not exists documents (
  "index" text, day text, query text, document text, clicks integer, conversions integer,
  primary key ("index", day, query, document)
) without rowid;
create table if not exists replacements (
  "index" text, day text, query text, next text, searches integer,
  primary key ("index", day, query, next)
) without rowid;
create table if not exists deletions ("index" text primary key, before integer) without rowid;
create view if not exists counted as
select id, searches."index", date((id >> 22) / 1000, 'unixepoch') as day, query, hits, good,
  corrected, expanded, microseconds, coalesce(clicks, 0) as clicks,
  coalesce(positions, 0) as positions, coalesce(conversions, 0) as conversions
from searches left join (
  select search, "index", sum(type = 'click') as clicks, sum(type = 'conversion') as conversions,
    sum(case when type = 'click' then position else 0 end) as positions
  from events group by search, "index"
) acts on search = id and acts."index" = searches."index"
where status = 'counted' or search is not null;
create view if not exists recent_queries as
select "index", day, query, count(*) as searches, sum(hits = 0) as no_results,
  sum(coalesce(good = 0, 0)) as low_quality, sum(corrected) as corrected,
  sum(expanded) as expanded, sum(microseconds) as microseconds, sum(clicks > 0) as clicked,
  sum(clicks) as clicks, sum(positions) as positions, sum(conversions) as conversions
from counted group by "index", day, query;
create view if not exists recent_documents as
select counted."index", day, query, document, sum(type = 'click') as clicks,
  sum(type = 'conversion') as conversions
from events join counted on id = search and counted."index" = events."index"
where type != 'later' group by counted."index", day, query, document;
create view if not exists recent_replacements as
select events."index", replaced.day, replaced.query, following.query as next,
  count(distinct search) as searches
from events join counted replaced on replaced.id = search and replaced."index" = events."index"
  join counted following on following.id = next and following."index" = events."index"
where type = 'later' and replaced.query != following.query group by 1, 2, 3, 4;
create view if not exists all_queries as
select * from queries union all select * from recent_queries;
create view if not exists all_documents as
select * from documents union all select * from recent_documents;
create view if not exists all_replacements as
select * from replacements union all select * from recent_replacements;
"""

_COUNTS: Final = ("queries", "documents", "replacements")
_TABLES: Final = ("searches", "events", *_COUNTS)


_ROWS: Final = 100
"""Rows of a statement: more of them parse no faster, and each statement takes the GIL again."""

SUMMED: Final = (
    "searches",
    "no_results",
    "low_quality",
    "corrected",
    "expanded",
    "microseconds",
    "clicked",
    "clicks",
    "positions",
    "conversions",
)
"""Columns of counts that are added up."""

_ROLL_UP: Final = f"""
insert into queries
select "index", day, iif(searches >= :least, query, '') as query,
  {", ".join(f"sum({name})" for name in SUMMED)}
from recent_queries where day < :today group by 1, 2, 3
on conflict do update set {", ".join(f"{name} = {name} + excluded.{name}" for name in SUMMED)}
"""  # noqa: S608
_ROLL_UP_DOCUMENTS: Final = """
insert into documents
select "index", day, iif(searches >= :least, query, '') as query, document,
  sum(recent_documents.clicks), sum(recent_documents.conversions)
from recent_documents join recent_queries using ("index", day, query)
where day < :today group by 1, 2, 3, 4
on conflict do update set clicks = clicks + excluded.clicks,
  conversions = conversions + excluded.conversions
"""
_ROLL_UP_REPLACEMENTS: Final = """
with frequent as materialized (
  select "index", day, query from recent_queries where day < :today and searches >= :least
)
insert into replacements
select found."index", found.day, found.query, next, searches from recent_replacements as found
  join frequent using ("index", day, query)
  join frequent as following on following."index" = found."index"
    and following.day = found.day and following.query = next
where true
on conflict do update set searches = searches + excluded.searches
"""

Status = Literal["counted", "typing", "page", "replaced"]
"""Whether a search counts: `typing` is not decided yet, `page` is a further page of hits, and
`replaced` was replaced by a longer query. One with an event counts in any case.
"""


class SearchRow(NamedTuple):
    """A search as stored.

    id         milliseconds since 1970 and random bits
    query      normalised text
    good       whether any hit was a good match, if quality was requested
    corrected  whether words were corrected
    expanded   whether synonyms were searched as well
    """

    id: int
    index_name: str
    query: str
    hits: int
    good: bool | None
    corrected: bool
    expanded: bool
    microseconds: int
    status: Status


class EventRow(NamedTuple):
    """An event as stored; type `later` is a click after another search replaced this one.

    next  ID of that search
    """

    search: int
    index_name: str
    type: Literal["click", "conversion", "later"]
    document: str
    position: int | None
    next: int | None = None


class Store:
    """The file of analytics of an index directory, opened at the first write.

    Not thread-safe. All methods raise StoreError if the file cannot be read or written.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def add(self, searches: Sequence[SearchRow], events: Sequence[EventRow]) -> None:
        """Store searches and events; an event that is stored already is ignored."""
        with self._transaction() as database:
            (used,) = database.execute(
                "select (page_count - freelist_count) * page_size from "
                "pragma_page_count, pragma_freelist_count, pragma_page_size"
            ).fetchone()
            if used > MAX_BYTES:
                raise StoreError(
                    f"`{self.path}` has its maximum size of {MAX_BYTES:,} bytes; it shrinks when "
                    "the day ends"
                )
            # Another process may have deleted those of an index while they waited here. A deletion
            # of the future was made before the clock was set back.
            past = 'select "index", before from deletions where before <= ?'
            deleted = dict(database.execute(past, (_span(time.time() + 1),)).fetchall())
            for table, rows in (("searches", searches), ("events", events)):
                # Both begin with the ID of a search, which has its time.
                _insert(database, table, [r for r in rows if r[0] >= deleted.get(r.index_name, 0)])

    def settle(self, now: float) -> bool:
        """Decide which searches while typing count.

        One is replaced if a longer query that begins with it was searched in the same index within
        `TYPING` seconds, before or after, or if the same query was searched whole, or once more.
        Return whether some are left, which are too recent.
        """
        with self._transaction() as database:
            (first,) = database.execute(
                "select min(id) from searches where status = 'typing'"
            ).fetchone()
            if first is None:
                return False
            end = min(first + _span(_SETTLE_SPAN), _span(now - _SETTLED))
            rows = database.execute(
                'select "index", query, id, status from searches '
                "where id between ? and ? and status != 'page' order by 1, 2, 3",
                (first - _span(TYPING), end + _span(TYPING)),
            ).fetchall()
            pending = [at for at, row in enumerate(rows) if row[3] == "typing" and row[2] <= end]
            replaced = [rows[at][2] for at in pending if _is_replaced(rows, at)]
            database.execute(
                "update searches set status = 'counted' where status = 'typing' and id <= ?", (end,)
            )
            database.execute(
                "update searches set status = 'replaced' "
                "where id in (select value from json_each(?))",
                (json.dumps(replaced),),
            )
            left = database.execute("select 1 from searches where status = 'typing' limit 1")
            return left.fetchone() is not None

    def roll_up(
        self, now: datetime, *, days: int, least: int, indexes: Collection[str] | None = None
    ) -> None:
        """Turn searches of ended days into counts, and delete what is too old.

        days     days of counts that are kept
        least    searches of a query in a day from which its text is kept
        indexes  names of the indexes whose rows stay; by default all
        """
        today = (now - _GRACE).date()
        with self._transaction() as database:
            oldest = (now.date() - timedelta(days=days)).isoformat()
            for table in _COUNTS:
                database.execute(f"delete from {table} where day < ?", (oldest,))  # noqa: S608
            kept = now.timestamp() - timedelta(days=days).total_seconds()
            database.execute("delete from deletions where before < ?", (_span(kept),))
            if indexes is not None:
                for table in _TABLES:
                    database.execute(
                        f'delete from {table} where "index" not in '  # noqa: S608
                        "(select value from json_each(?))",
                        (json.dumps(sorted(indexes)),),
                    )
            end = _span(datetime.combine(today, datetime.min.time(), UTC).timestamp())
            (first,) = database.execute("select min(id) from searches").fetchone()
            if first is not None and first < end:  # else all of today would be read for nothing
                values = {"least": least, "today": today.isoformat()}
                database.execute(_ROLL_UP_DOCUMENTS, values)
                database.execute(_ROLL_UP_REPLACEMENTS, values)
                database.execute(_ROLL_UP, values)
            database.execute("delete from events where search < ?", (end,))
            database.execute("delete from searches where id < ?", (end,))
        self._erase()

    def forget(self, index: str) -> None:
        """Delete all rows of an index, also those that wait in a process to be stored."""
        with self._transaction() as database:
            database.execute(
                "insert or replace into deletions values (?, ?)",
                (index, _span(time.time() + 0.001)),
            )
            for table in _TABLES:
                database.execute(f'delete from {table} where "index" = ?', (index,))  # noqa: S608
        self._erase()

    def _erase(self) -> None:
        """Remove deleted rows from the write-ahead log too, unless a reader still uses it."""
        if self._database is not None:
            self._database.execute("pragma wal_checkpoint(truncate)")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            database = self._opened()
            database.execute("begin immediate")
            try:
                yield database
            except BaseException:
                database.rollback()
                raise
            database.commit()
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StoreError(
                f"cannot write analytics to `{self.path}`: {error}; free disk space and check its "
                "owner and permissions, or remove it with its -wal file"
            ) from error

    def _opened(self) -> sqlite3.Connection:
        """Return the connection, to a new file if it was removed."""
        if self._database is not None and _inode(self.path) != self._inode:
            self.close()
        if self._database is None:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
            self._inode = _inode(self.path)
            database = sqlite3.connect(
                self.path, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
            )
            try:
                database.execute("pragma journal_mode = wal")
                database.execute("pragma synchronous = normal")
                database.execute("pragma secure_delete = on")  # deleted queries are overwritten
                database.executescript(SCHEMA)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[SearchRow | EventRow]) -> None:
    """Insert rows, except those that are there already."""
    for first in range(0, len(rows), _ROWS):
        some = rows[first : first + _ROWS]
        marks = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
        database.execute(
            f"insert or ignore into {table} values {marks}",  # noqa: S608
            tuple(chain.from_iterable(some)),
        )


def _is_replaced(rows: Sequence[tuple[str, str, int, str]], at: int) -> bool:
    """Return whether a search while typing is replaced, by rows sorted by index, query and ID."""
    index, query, id_, _ = rows[at]
    near = _span(TYPING)
    for other in range(at + 1, len(rows)):
        other_index, other_query, other_id, _ = rows[other]
        if other_index != index or not other_query.startswith(query):
            break
        if abs(other_id - id_) <= near:
            return True
    for other in range(at - 1, -1, -1):
        other_index, other_query, other_id, status = rows[other]
        if (other_index, other_query) != (index, query) or id_ - other_id > near:
            break
        if status == "counted":
            return True
    return False


def _span(seconds: float) -> int:
    """Return seconds in the unit of the IDs of searches."""
    return int(1000 * seconds) << ID_BITS


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
