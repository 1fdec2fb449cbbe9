"""What a log of writes is on disk: an SQLite file of two tables, and its rows as values.

Plain sqlite3, as it needs read-only and immutable connections, its own transactions and error
codes, and because a search, which reads the log, should not import sqlite-utils.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection import Document
from klsa_search.collection.intake import document_fault, text_fault
from klsa_search.errors import BadDocument, IndexDamaged, StoreError
from klsa_search.store.current import last_resort
from klsa_search.store.files import is_exhausted, read_regular
from klsa_search.store.names import BEGUN

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


class Last(NamedTuple):
    """How far a log goes: its last row that is not undone, and how often something was undone."""

    seq: int = 0
    turns: int = 0


def last_of(connection: sqlite3.Connection) -> Last:
    """Tell how far the log goes, as the connection sees it."""
    [(turns,)] = connection.execute("select max(undone) from batches where undone is not null")
    found = connection.execute(
        "select * from batches where undone is null order by number desc limit 1"
    ).fetchone()
    return Last(batch_of(found).last if found else 0, turns or 0)


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
