"""The documents as they came: records of bytes, mapped into memory, and where each id is.

    documents.npy         uint8  the records, one after the other: see `records`
    documents_starts.npy  int64  (N + 1,) where each begins
    documents.db          SQLite, through sqlite-utils: table `documents`, id -> position

To read one by its position takes no SQL.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.collection import Document
from klsa_search.errors import DocumentNotFound, IndexDamaged, StoreError
from klsa_search.store.arrays import ArrayWriter, open_array, write_arrays
from klsa_search.store.ids import Ids
from klsa_search.store.records import Record, Records, record_of

if TYPE_CHECKING:
    from sqlite_utils import Database

IDS = "documents.db"
_RECORDS = "documents"
_STARTS = "documents_starts"


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
            parts = record_of(document)
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
    from sqlite_utils import Database

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
    """Reads documents by position or id; immutable, safe to share between threads until closed.

    Everything is opened once, so that a generation can be removed under a reader that holds it. See
    `Records` and `Ids` for what it raises.

    content  uint8, the records
    starts   (N + 1,) where each begins
    """

    def __init__(self, generation: Path) -> None:
        content, starts = open_array(generation, _RECORDS), open_array(generation, _STARTS)
        self._records = Records(content, starts, generation / f"{_RECORDS}.npy")
        self._ids = Ids(generation / IDS)
        self._moved: Mapping[str, int | None] = MappingProxyType({})
        self._gone: npt.NDArray[np.bool_] | None = None

    def grown(
        self,
        content: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        moved: Mapping[str, int | None],
        living: npt.NDArray[np.bool_],
    ) -> DocumentReader:
        """Return a reader of these and later documents, which closes with this one.

        content, starts  as here, the later records behind
        moved            position of each id that was written later, None for what was deleted
        living           (N,) which positions hold a document
        """
        reader = object.__new__(DocumentReader)
        reader._records = Records(content, starts, self._records.path)
        reader._ids, reader._moved, reader._gone = self._ids, moved, ~living
        return reader

    @property
    def content(self) -> npt.NDArray[np.uint8]:
        """The records: uint8."""
        return self._records.content

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each record begins: (N + 1,)."""
        return self._records.starts

    def records(self, positions: Iterable[int]) -> list[Record]:
        """Documents at the positions, in their order, their texts left where they are."""
        return [self._records.record(int(position)) for position in positions]

    def titles(self, positions: Iterable[int]) -> list[str]:
        """Titles at the positions, in their order, "" where there is no document."""
        return [self._records.title(int(position)) for position in positions]

    def text(self, position: int) -> str:
        """Text of the document at a position."""
        return self._records.text(self._records.record(position))

    def at(self, positions: Iterable[int]) -> list[Document]:
        """Documents at the positions, in their order. Cost: 3 µs and the text each."""
        return [self._records.document(int(position)) for position in positions]

    def ids(self, positions: Iterable[int]) -> list[str]:
        """Ids of the documents at the positions, in their order."""
        return [self._records.record(int(position)).id for position in positions]

    def all_ids(self) -> list[str]:
        """All ids in document order."""
        if self._gone is None:
            return self.ids(range(len(self.starts) - 1))
        return self.ids(np.flatnonzero(~self._gone).tolist())

    def get(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Document of that id; DocumentNotFound."""
        return self._records.document(self._position(id))

    def positions(self, ids: Iterable[str]) -> list[int]:
        """Positions of the documents of these ids, in their order; DocumentNotFound for the first
        that is not there.
        """
        return [self._position(each) for each in ids]

    def find(self, id: str) -> int | None:  # noqa: A002 - the field's own name
        """Position of the document of an id; None where there is none."""
        return self._moved[id] if id in self._moved else self._ids.position(id)

    def close(self) -> None:
        """Close the table of ids; the reader is of no use afterwards."""
        self._ids.close()

    def damaged(self, error: object) -> IndexDamaged:
        """Say that the records cannot be read for that reason."""
        return self._records.damaged(error)

    def _position(self, id: str) -> int:  # noqa: A002 - the field's own name
        position = self.find(id)
        if position is None:
            raise DocumentNotFound(
                f"there is no document {id!r} in the index: check the id, or search for it",
                field="id",
            )
        return position
