"""`documents.db`: the documents as they came, in SQLite through sqlite-utils."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from klsa_search.collection import Document
from klsa_search.errors import DocumentNotFound, IndexDamaged, StoreError
from klsa_search.forks import lock_free_in_children

DOCUMENTS = "documents.db"


class DocumentWriter:
    """Writes documents in order; position 0 is the first. Use as a context manager.

    StoreError where SQLite cannot create or write the file, such as on a full disk.
    """

    def __init__(self, generation: Path) -> None:
        self._path = generation / DOCUMENTS
        self._count = 0
        with self._refusing():
            connection = sqlite3.connect(self._path)
            try:
                self._database = _created(connection)
            except BaseException:
                connection.close()
                raise

    def __enter__(self) -> DocumentWriter:
        """Return itself."""
        return self

    def extend(self, documents: Iterable[Document]) -> None:
        """Append the next documents, at the best some hundred at a time."""
        rows = [
            (position, document.id, document.title, document.text, _written(document.metadata))
            for position, document in enumerate(documents, start=self._count)
        ]
        self._count += len(rows)
        with self._refusing():
            # Plain SQL: sqlite-utils' own insert takes twice as long for such short rows.
            self._database.conn.executemany("insert into documents values (?, ?, ?, ?, ?)", rows)

    def __exit__(self, *failure: object) -> None:
        """Write the index of ids, and close."""
        try:
            if failure[0] is None:
                with self._refusing():
                    self._database.table("documents").create_index(["id"], unique=True)
                    self._database.conn.commit()
        finally:
            self._database.conn.close()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn what SQLite says into StoreError; it tells a full disk only now and then."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{self._path} cannot be written ({error}): make room on its disk, or check who "
                "owns its folder and what the mode allows, then build again"
            ) from error


def _created(connection: sqlite3.Connection) -> Database:
    """Make the empty table."""
    # The whole generation is synced once, at its end; a half-written one is thrown away.
    connection.execute("pragma journal_mode = off")
    connection.execute("pragma synchronous = off")
    connection.execute("pragma locking_mode = exclusive")
    database = Database(connection)
    database.table("documents").create(
        {"position": int, "id": str, "title": str, "text": str, "metadata": str},
        pk="position",
        not_null={"id", "title", "text", "metadata"},
    )
    return database


class DocumentReader:
    """Reads documents by position or id; safe to share between threads.

    One connection, opened once, so that a generation can be removed under a reader that holds it.
    SQLite lets none be carried over a fork: a child opens its own when it first reads, and needs
    the file for that. IndexDamaged where the file cannot be opened or read, StoreError where it is
    closed or not there for a child.
    """

    def __init__(self, generation: Path) -> None:
        self._path = generation / DOCUMENTS
        self._lock = lock_free_in_children()  # nobody is within SQLite while the process forks
        with self._lock:
            self._database: Database | None = self._connected()
            self._file = self._identity()

    def at(self, positions: Iterable[int]) -> list[Document]:
        """Documents at the positions, in their order. Cost: one look-up each."""
        wanted = [int(position) for position in positions]
        rows = self._rows("position, id, title, text, metadata", wanted)
        return [_document(rows[position][1:]) for position in wanted]

    def ids(self, positions: Iterable[int]) -> list[str]:
        """Ids of the documents at the positions, in their order."""
        wanted = [int(position) for position in positions]
        rows = self._rows("position, id", wanted)
        return [rows[position][1] for position in wanted]

    def all_ids(self) -> list[str]:
        """All ids in document order."""
        return [row[0] for row in self._fetch("select id from documents order by position", [])]

    def get(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Document of that id; DocumentNotFound."""
        rows = self._fetch("select id, title, text, metadata from documents where id = ?", [id])
        if not rows:
            raise _not_found(id)
        return _document(rows[0])

    def positions(self, ids: Iterable[str]) -> list[int]:
        """Positions of the documents of these ids, in their order; DocumentNotFound for the first
        that is not there.
        """
        return [self._position(each) for each in ids]

    def _position(self, id: str) -> int:  # noqa: A002 - the field's own name
        rows = self._fetch("select position from documents where id = ?", [id])
        if not rows:
            raise _not_found(id)
        return int(rows[0][0])

    def close(self) -> None:
        """Close the connection; the reader is of no use afterwards."""
        with self._lock:
            if self._database is not None:
                self._database.conn.close()
                self._database = None

    def _rows(self, columns: str, positions: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        rows: dict[int, tuple[Any, ...]] = {}
        for begin in range(0, len(positions), 500):
            some = positions[begin : begin + 500]
            marks = ",".join("?" * len(some))
            statement = f"select {columns} from documents where position in ({marks})"  # noqa: S608 - marks only
            rows |= {row[0]: row for row in self._fetch(statement, some)}
        return rows

    def _fetch(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            database = self._own()
            try:
                return list(database.execute(statement, values).fetchall())
            except sqlite3.DatabaseError as error:
                raise self._damage(error) from error

    def _own(self) -> Database:
        """Return the connection of this process."""
        if self._database is None:
            raise StoreError(f"{self._path} was closed: open the index again")
        if self._process != os.getpid():
            if self._identity() != self._file:
                raise StoreError(
                    f"{self._path} was removed or replaced since this process was forked: "
                    "open the index again"
                )
            self._database.conn.close()
            self._database = self._connected()
        return self._database

    def _connected(self) -> Database:
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        self._process = os.getpid()
        try:
            return Database(sqlite3.connect(address, uri=True, check_same_thread=False))
        except sqlite3.DatabaseError as error:
            raise self._damage(error) from error

    def _identity(self) -> tuple[int, ...] | None:
        """Tell the file from any other that may stand in its place; None where there is none."""
        try:
            file = self._path.stat()
        except OSError:
            return None
        return file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns

    def _damage(self, error: sqlite3.DatabaseError) -> IndexDamaged:
        return IndexDamaged(
            f"{self._path} cannot be read ({error}): check its mode, or rebuild the index with "
            "klsa-index build"
        )


def _not_found(id: str) -> DocumentNotFound:  # noqa: A002 - the field's own name
    return DocumentNotFound(f"there is no document {id!r} in the index", field="id")


def _written(metadata: Mapping[str, Any]) -> str:
    # Most documents have none.
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else "{}"


def _document(row: Sequence[str]) -> Document:
    identifier, title, text, metadata = row
    return Document(id=identifier, title=title, text=text, metadata=json.loads(metadata))
