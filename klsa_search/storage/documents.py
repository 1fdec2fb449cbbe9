"""Stored documents and their IDs.

Plain sqlite3, because a search looks up IDs and should not import sqlite-utils (0.1 s).

    documents.npy         uint8  the records, one after the other: see `records`
    documents_starts.npy  int64  (N + 1,) where each begins
    documents.db          SQLite: table `documents`, id -> position

To read one by its position takes no SQL.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.cached import lazy_property
from klsa_search.core.forks import lock_free_in_children
from klsa_search.errors import DocumentNotFound, IndexDamaged, StoreError
from klsa_search.storage.arrays import ArrayWriter, open_array, write_arrays
from klsa_search.storage.current import step_for
from klsa_search.storage.records import Record, Records, record_of


class Ids:
    """Looks ids up in a file; safe to share between threads.

    The file is opened once, so that it can be removed meanwhile. SQLite lets no connection be
    carried over a fork: a child opens its own when it first looks for an id, and needs the file for
    that. IndexDamaged where the file cannot be opened or read, StoreError where it is closed or not
    there for a child.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = lock_free_in_children()  # no thread is in SQLite while the process forks
        with self._lock:
            self._connection: sqlite3.Connection | None = self._connected()
            self._file = self._identity()

    def position(self, id: str) -> int | None:  # noqa: A002 - the field's own name
        """Position of the document of an id; None where there is none."""
        statement = "select position from documents where id = ?"
        with self._lock:
            connection = self._own()
            try:
                rows = connection.execute(statement, [id]).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._damage(error) from error
        return int(rows[0][0]) if rows else None

    def close(self) -> None:
        """Close the file; nothing can be looked up afterwards."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _own(self) -> sqlite3.Connection:
        """Return the connection of this process."""
        if self._connection is None:
            raise StoreError(f"`{self._path}` was closed; open the index again")
        if self._process != os.getpid():
            if self._identity() != self._file:
                raise StoreError(
                    f"`{self._path}` was removed or replaced since this process "
                    "was forked; open the index again"
                )
            self._connection.close()
            self._connection = self._connected()
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        self._process = os.getpid()
        try:
            return sqlite3.connect(address, uri=True, check_same_thread=False)
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
            f"cannot read `{self._path}` ({error}); check its permissions, or "
            f"{step_for(self._path)}"
        )


IDS = "documents.db"
RECORDS = "documents"
STARTS = "documents_starts"

# Without row ids: half the size, and one look-up less. sqlite-utils cannot create such a table, and
# takes twice as long to insert such short rows.
_CREATE: Final = """
pragma journal_mode = off;
pragma synchronous = off;
pragma locking_mode = exclusive;
create table documents (id text primary key, position integer not null) without rowid;
"""

LONGEST: Final = 20
"""Longest documents whose sizes are known."""


class RecordWriter:
    """Writes the records of documents in order, and where each begins. Use as a context manager.

    OSError where they cannot be written. Memory: 8 bytes a document.
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self._starts = array("q", [0])
        self._records = ArrayWriter(generation, RECORDS, np.uint8)

    def __enter__(self) -> RecordWriter:
        """Return itself."""
        return self

    def extend(self, documents: Iterable[Document]) -> None:
        """Append the next documents, at the best some hundred at a time."""
        pieces: list[bytes] = []
        for document in documents:
            parts = record_of(document)
            pieces += parts
            self._starts.append(self._starts[-1] + sum(map(len, parts)))
        self._records.append(b"".join(pieces))

    def __exit__(self, *failure: object) -> None:
        """Write where each record begins, and close."""
        self._records.__exit__(*failure)
        if failure[0] is None:
            write_arrays(self._generation, {STARTS: np.frombuffer(self._starts, np.int64)})


class IdWriter:
    """Writes where each id is. Use as a context manager; StoreError where SQLite cannot."""

    def __init__(self, generation: Path) -> None:
        self._path = generation / IDS
        with self._refusing():
            self._connection = sqlite3.connect(self._path)
            try:
                # The generation is synced once, when it is complete; an incomplete one is removed.
                self._connection.executescript(_CREATE)
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> IdWriter:
        """Return itself."""
        return self

    def write(self, rows: Iterable[tuple[str, int]]) -> None:
        """Write all ids and positions; in the order of ids each comes to the end of the tree."""
        with self._refusing():
            self._connection.executemany("insert into documents values (?, ?)", rows)
            self._connection.commit()

    def __exit__(self, *failure: object) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn errors of SQLite into StoreError; it does not always report a full disk."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"cannot write `{self._path}` ({error}); free disk space, or check "
                "the owner and permissions of its folder, then build again"
            ) from error


class DocumentWriter:
    """Writes documents in order; position 0 is the first. Use as a context manager.

    StoreError where SQLite cannot create or write its file, OSError where nothing can be written,
    such as on a full disk.
    Memory: the ids, which the check for repeated ones holds as well, and 16 bytes a document.
    """

    def __init__(self, generation: Path) -> None:
        self._ids: list[str] = []
        self._places = IdWriter(generation)
        try:
            self._records = RecordWriter(generation)
        except BaseException:
            self._places.__exit__()
            raise

    def __enter__(self) -> DocumentWriter:
        """Return itself."""
        return self

    def extend(self, documents: Sequence[Document]) -> None:
        """Append the next documents, at the best some hundred at a time."""
        self._records.extend(documents)
        self._ids += [document.id for document in documents]

    def __exit__(self, *failure: object) -> None:
        """Write where each record begins and where each id is, and close."""
        with self._places:
            self._records.__exit__(*failure)
            if failure[0] is None:
                order = sorted(range(len(self._ids)), key=self._ids.__getitem__)
                self._places.write((self._ids[position], position) for position in order)


class DocumentReader:
    """Reads documents by position or id; immutable, safe to share between threads until closed.

    Everything is opened once, so that a generation can be removed under a reader that holds it. See
    `Records` and `Ids` for what it raises.

    content  uint8, the records
    starts   (N + 1,) where each begins
    """

    def __init__(self, generation: Path) -> None:
        content, starts = open_array(generation, RECORDS), open_array(generation, STARTS)
        self._records = Records(content, starts, generation / f"{RECORDS}.npy")
        self._ids = Ids(generation / IDS)
        self._moved: Mapping[str, int | None] = MappingProxyType({})
        self._gone: npt.NDArray[np.bool_] | None = None

    @lazy_property
    def mean_size(self) -> int:
        """Bytes of a document, on average over all positions."""
        return int(self.starts[-1]) // max(len(self.starts) - 1, 1)

    def size_of_longest(self, count: int) -> int:
        """Return the bytes of so many of the longest documents, `LONGEST` at most.

        Cost: O(positions) the first time.
        """
        return self._sizes[min(count, len(self._sizes) - 1)]

    @lazy_property
    def _sizes(self) -> list[int]:
        sizes = np.diff(self.starts)
        longest = np.sort(
            np.partition(sizes, -LONGEST)[-LONGEST:] if len(sizes) > LONGEST else sizes
        )
        return [0, *np.cumsum(longest[::-1]).tolist()]

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

    def live_doc_ids(self) -> Sequence[int]:
        """Return the doc ids of all live documents, in order."""
        if self._gone is None:
            return range(len(self.starts) - 1)
        doc_ids: list[int] = np.flatnonzero(~self._gone).tolist()
        return doc_ids

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents, in order of their doc ids."""
        return map(self._records.document, self.live_doc_ids())

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
                f"no document {id!r} in the index; check the ID",
                field="id",
            )
        return position
