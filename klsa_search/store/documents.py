"""`documents.db`: the documents as they came, in SQLite through sqlite-utils."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from klsa_search.collection.model import Document
from klsa_search.errors import DocumentNotFound, IndexDamaged, StoreError

DOCUMENTS = "documents.db"
_BATCH = 2000


class DocumentWriter:
    """Writes documents in order; position 0 is the first. Use as a context manager.

    StoreError where SQLite cannot write, such as on a full disk.
    """

    def __init__(self, generation: Path) -> None:
        self._path = generation / DOCUMENTS
        connection = sqlite3.connect(self._path)
        # The whole generation is synced once, at its end; a half-written one is thrown away.
        connection.execute("pragma journal_mode = off")
        connection.execute("pragma synchronous = off")
        self._database = Database(connection)
        self._table = self._database.table("documents")
        self._table.create(
            {"position": int, "id": str, "title": str, "text": str, "metadata": str},
            pk="position",
            not_null={"id", "title", "text", "metadata"},
        )
        self._pending: list[dict[str, object]] = []
        self._count = 0

    def __enter__(self) -> DocumentWriter:
        """Return itself."""
        return self

    def add(self, document: Document) -> None:
        """Append the next document."""
        self._pending.append(
            {
                "position": self._count,
                "id": document.id,
                "title": document.title,
                "text": document.text,
                "metadata": json.dumps(dict(document.metadata), ensure_ascii=False),
            }
        )
        self._count += 1
        if len(self._pending) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        try:
            self._table.insert_all(self._pending, batch_size=_BATCH)
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{self._path} cannot be written ({error}): make room, then build again"
            ) from error
        self._pending.clear()

    def __exit__(self, *failure: object) -> None:
        """Write the rest and the index of ids, and close."""
        if failure[0] is None:
            self._flush()
            self._table.create_index(["id"], unique=True)
            self._database.conn.commit()
        self._database.conn.close()


class DocumentReader:
    """Reads documents by position or id; safe to share between threads.

    One connection, opened once, so that a generation can be removed under a reader that holds it.
    """

    def __init__(self, generation: Path) -> None:
        self._path = generation / DOCUMENTS
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        self._database = Database(connection)
        self._lock = threading.Lock()

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
            raise DocumentNotFound(f"there is no document {id!r} in the index", field="id")
        return _document(rows[0])

    def close(self) -> None:
        """Close the connection; the reader is of no use afterwards."""
        with self._lock:
            self._database.conn.close()

    def _rows(self, columns: str, positions: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        rows: dict[int, tuple[Any, ...]] = {}
        for begin in range(0, len(positions), 500):
            some = positions[begin : begin + 500]
            marks = ",".join("?" * len(some))
            statement = f"select {columns} from documents where position in ({marks})"  # noqa: S608 - marks only
            rows |= {row[0]: row for row in self._fetch(statement, some)}
        return rows

    def _fetch(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return list(self._database.execute(statement, values).fetchall())
        except sqlite3.DatabaseError as error:
            raise IndexDamaged(
                f"{self._path} cannot be read ({error}): rebuild the index with klsa-index build"
            ) from error


def _document(row: Sequence[str]) -> Document:
    identifier, title, text, metadata = row
    return Document(id=identifier, title=title, text=text, metadata=json.loads(metadata))
