"""The documents as they came: records of bytes, mapped into memory, and where each id is.

    documents.npy         uint8  the records, one after the other
    documents_starts.npy  int64  (N + 1,) where each begins
    documents.db          SQLite, through sqlite-utils: table `documents`, id -> position

A record is the bytes of id, title and metadata, each a uint32, then id, title, metadata as JSON
(nothing for none) and text, in UTF-8. To read one by its position takes no SQL.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlite_utils import Database

from klsa_search.collection import Document
from klsa_search.compiled import compiled
from klsa_search.errors import DocumentNotFound, IndexDamaged, StoreError
from klsa_search.forks import lock_free_in_children
from klsa_search.store.arrays import ArrayWriter, open_array, write_arrays

IDS = "documents.db"
_RECORDS = "documents"
_STARTS = "documents_starts"

_SIZES: Final = struct.Struct("<3I")
_HEAD: Final = _SIZES.size


class Record(NamedTuple):
    """A document without its text, which is between two places of the records."""

    id: str
    title: str
    metadata: Mapping[str, Any]
    begin: int
    end: int


class DocumentWriter:
    """Writes documents in order; position 0 is the first. Use as a context manager.

    StoreError where SQLite cannot create or write its file, OSError where nothing can be written,
    such as on a full disk.
    Memory: the ids, which whoever refuses repeated ones holds as well, and 16 bytes a document.
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self._starts = array("q", [0])
        self._ids: list[str] = []
        with self._refusing():
            connection = sqlite3.connect(generation / IDS)
            try:
                self._database = _created(connection)
                self._records = ArrayWriter(generation, _RECORDS, np.uint8)
            except BaseException:
                connection.close()
                raise

    def __enter__(self) -> DocumentWriter:
        """Return itself."""
        return self

    def extend(self, documents: Iterable[Document]) -> None:
        """Append the next documents, at the best some hundred at a time."""
        pieces: list[bytes] = []
        for document in documents:
            parts = _written(document)
            pieces += parts
            self._ids.append(document.id)
            self._starts.append(self._starts[-1] + sum(map(len, parts)))
        self._records.append(b"".join(pieces))

    def __exit__(self, *failure: object) -> None:
        """Write where each record begins and where each id is, and close."""
        try:
            self._records.__exit__(*failure)
            if failure[0] is None:
                write_arrays(self._generation, {_STARTS: np.frombuffer(self._starts, np.int64)})
                with self._refusing():
                    self._write_ids()
        finally:
            self._database.conn.close()

    def _write_ids(self) -> None:
        # In the order of the tree, each is written at its end.
        order = sorted(range(len(self._ids)), key=self._ids.__getitem__)
        rows = ((self._ids[position], position) for position in order)
        # Plain SQL: sqlite-utils' own insert takes twice as long for such short rows.
        self._database.conn.executemany("insert into documents values (?, ?)", rows)
        self._database.conn.commit()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn what SQLite says into StoreError; it tells a full disk only now and then."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{self._generation / IDS} cannot be written ({error}): make room on its disk, or "
                "check who owns its folder and what the mode allows, then build again"
            ) from error


def _created(connection: sqlite3.Connection) -> Database:
    """Make the empty table."""
    # The whole generation is synced once, at its end; a half-written one is thrown away.
    connection.execute("pragma journal_mode = off")
    connection.execute("pragma synchronous = off")
    connection.execute("pragma locking_mode = exclusive")
    # Without the numbers that SQLite gives to rows: half the size, and one look-up less.
    connection.execute(
        "create table documents (id text primary key, position integer not null) without rowid"
    )
    return Database(connection)


class DocumentReader:
    """Reads documents by position or id; safe to share between threads.

    Everything is opened once, so that a generation can be removed under a reader that holds it.
    SQLite lets no connection be carried over a fork: a child opens its own when it first looks for
    an id, and needs the file for that. IndexDamaged where a file cannot be opened or read,
    StoreError where that of ids is closed or not there for a child.

    content  uint8, the records
    starts   (N + 1,) where each begins
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self._path = generation / IDS
        self.content: npt.NDArray[np.uint8] = open_array(generation, _RECORDS)
        self.starts: npt.NDArray[np.int64] = open_array(generation, _STARTS)
        # As views of memory: to take a number or a string out of one costs half of NumPy's time.
        self._bytes, self._starts = self.content.data, self.starts.data
        self._lock = lock_free_in_children()  # nobody is within SQLite while the process forks
        with self._lock:
            self._database: Database | None = self._connected()
            self._file = self._identity()

    def records(self, positions: Iterable[int]) -> list[Record]:
        """Documents at the positions, in their order, their texts left where they are."""
        return [self._record(int(position)) for position in positions]

    def text(self, position: int) -> str:
        """Text of the document at a position."""
        return self._text(self._record(position))

    def _text(self, record: Record) -> str:
        try:
            return str(self._bytes[record.begin : record.end], "utf-8")
        except ValueError as error:
            raise self.damaged(error) from error

    def at(self, positions: Iterable[int]) -> list[Document]:
        """Documents at the positions, in their order. Cost: 3 µs and the text each."""
        return [self._document(int(position)) for position in positions]

    def ids(self, positions: Iterable[int]) -> list[str]:
        """Ids of the documents at the positions, in their order."""
        return [self._record(int(position)).id for position in positions]

    def all_ids(self) -> list[str]:
        """All ids in document order."""
        return self.ids(range(len(self._starts) - 1))

    def get(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Document of that id; DocumentNotFound."""
        return self._document(self._position(id))

    def positions(self, ids: Iterable[str]) -> list[int]:
        """Positions of the documents of these ids, in their order; DocumentNotFound for the first
        that is not there.
        """
        return [self._position(each) for each in ids]

    def close(self) -> None:
        """Close the table of ids; the reader is of no use afterwards."""
        with self._lock:
            if self._database is not None:
                self._database.conn.close()
                self._database = None

    def _position(self, id: str) -> int:  # noqa: A002 - the field's own name
        statement = "select position from documents where id = ?"
        with self._lock:
            database = self._own()
            try:
                rows = database.execute(statement, [id]).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._damage(error) from error
        if not rows:
            raise DocumentNotFound(f"there is no document {id!r} in the index", field="id")
        return int(rows[0][0])

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

    def _document(self, position: int) -> Document:
        record = self._record(position)
        return Document(
            id=record.id, title=record.title, text=self._text(record), metadata=record.metadata
        )

    def _record(self, position: int) -> Record:
        begin, end = self._starts[position], self._starts[position + 1]
        content = self._bytes
        try:
            id_size, title_size, metadata_size = _SIZES.unpack_from(content, begin)
            title = begin + _HEAD + id_size
            metadata = title + title_size
            text = metadata + metadata_size
            if not 0 <= begin < text <= end <= len(content):
                raise ValueError("a record is longer than its place")
            return Record(
                str(content[title - id_size : title], "utf-8"),
                str(content[title:metadata], "utf-8"),
                json.loads(content[metadata:text].tobytes()) if metadata_size else {},
                text,
                end,
            )
        except (struct.error, ValueError) as error:
            raise self.damaged(error) from error

    def damaged(self, error: object) -> IndexDamaged:
        """Say that the records cannot be read for that reason."""
        path = self._generation / f"{_RECORDS}.npy"
        return IndexDamaged(
            f"{path} cannot be read ({error}): rebuild the index with klsa-index build"
        )


@compiled
def text_at(
    content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], position: int
) -> tuple[int, int]:
    """Where the text of a document begins and ends; both 0 where its record is damaged."""
    begin, end = starts[position], starts[position + 1]
    text = begin + _HEAD
    if begin < 0 or text > end or end > len(content):
        return 0, 0
    for i in range(_HEAD):
        text += np.int64(content[begin + i]) << (8 * (i % 4))
    return (text, end) if text <= end else (0, 0)


def _written(document: Document) -> tuple[bytes, ...]:
    identifier, title, text = document.id.encode(), document.title.encode(), document.text.encode()
    # Most documents have none.
    metadata = (
        json.dumps(dict(document.metadata), ensure_ascii=False).encode()
        if document.metadata
        else b""
    )
    sizes = _SIZES.pack(len(identifier), len(title), len(metadata))
    return sizes, identifier, title, metadata, text
