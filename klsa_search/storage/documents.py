"""Stored documents and their IDs.

    documents.npy         uint8  the records, concatenated: see `records`
    documents_starts.npy  int64  (N + 1,) start of each
    documents.db          SQLite: table `documents`, ID to doc id

Reading a document by its doc id takes no SQL. Plain sqlite3, because a search looks up IDs and
should not import sqlite-utils (0.1 s).
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.collection.model import Document
from klsa_search.errors import DocumentNotFound, IndexDamaged, StoreError
from klsa_search.storage.arrays import ArrayWriter, open_array, write_arrays
from klsa_search.storage.current import step_for
from klsa_search.storage.files import unreadable
from klsa_search.storage.records import Record, Records, RecordsPart, record_of


class Ids:
    """Looks up IDs in a file; safe to share between threads.

    The file is opened once, so it can be removed meanwhile. Raise IndexDamaged if the file cannot
    be opened or read, StoreError if it is closed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            self._connection: sqlite3.Connection | None = sqlite3.connect(
                address, uri=True, check_same_thread=False
            )
        except sqlite3.DatabaseError as error:
            raise self._damage(error) from error

    def doc_id(self, id: str) -> int | None:  # noqa: A002 - the field's own name
        """Return the doc id of an ID, or None."""
        statement = "select position from documents where id = ?"
        with self._lock:
            if self._connection is None:
                raise StoreError(f"`{self._path}` was closed; open the index again")
            try:
                rows = self._connection.execute(statement, [id]).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._damage(error) from error
        return int(rows[0][0]) if rows else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _damage(self, error: sqlite3.DatabaseError) -> IndexDamaged:
        step = f"check its permissions, or {step_for(self._path)}"
        return unreadable(self._path, error, step)


IDS = "documents.db"
RECORDS = "documents"
STARTS = "documents_starts"

# Without row ids: half the size, and one look-up fewer. sqlite-utils cannot create such a table,
# and inserts such short rows at half the speed.
_CREATE: Final = """
pragma journal_mode = off;
pragma synchronous = off;
pragma locking_mode = exclusive;
create table documents (id text primary key, position integer not null) without rowid;
"""


class RecordWriter(AbstractContextManager["RecordWriter"]):
    """Writes the records of documents in order, and the start of each. Use as a context manager.

    Raise OSError if they cannot be written. Memory: 8 bytes a document.
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self._starts = array("q", [0])
        self._records = ArrayWriter(generation, RECORDS, np.uint8)

    def extend(self, documents: Iterable[Document]) -> None:
        """Append the next documents, ideally some hundred at a time."""
        pieces: list[bytes] = []
        for document in documents:
            parts = record_of(document)
            pieces += parts
            self._starts.append(self._starts[-1] + sum(map(len, parts)))
        self._records.append(b"".join(pieces))

    def __exit__(self, *failure: object) -> None:
        """Write the start of each record, and close."""
        self._records.__exit__(*failure)
        if failure[0] is None:
            write_arrays(self._generation, {STARTS: np.frombuffer(self._starts, np.int64)})


class IdWriter(AbstractContextManager["IdWriter"]):
    """Writes the doc id of each ID. Use as a context manager; StoreError if SQLite fails."""

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

    def write(self, rows: Iterable[tuple[str, int]]) -> None:
        """Write IDs and doc ids; ascending IDs append at the end of the tree."""
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


class DocumentWriter(AbstractContextManager["DocumentWriter"]):
    """Writes documents in order; the first has doc id 0. Use as a context manager.

    Raise StoreError if SQLite cannot create or write its file, OSError if nothing can be written,
    for example on a full disk.
    Memory: the IDs, which the check for duplicates keeps as well, and 16 bytes a document.
    """

    def __init__(self, generation: Path) -> None:
        self._ids: list[str] = []
        self._id_writer = IdWriter(generation)
        try:
            self._records = RecordWriter(generation)
        except BaseException:
            self._id_writer.__exit__()
            raise

    def extend(self, documents: Sequence[Document]) -> None:
        """Append the next documents, ideally some hundred at a time."""
        self._records.extend(documents)
        self._ids += [document.id for document in documents]

    def __exit__(self, *failure: object) -> None:
        """Write the start of each record and the doc id of each ID, and close."""
        with self._id_writer:
            self._records.__exit__(*failure)
            if failure[0] is None:
                order = sorted(range(len(self._ids)), key=self._ids.__getitem__)
                self._id_writer.write((self._ids[doc_id], doc_id) for doc_id in order)


class DocumentReader:
    """Reads documents by doc id or ID; immutable, safe to share between threads until closed.

    All files are opened once, so a generation can be removed while a reader uses it. For errors
    see `Records` and `Ids`.
    """

    def __init__(self, generation: Path) -> None:
        part = RecordsPart(open_array(generation, RECORDS), open_array(generation, STARTS))
        self._records = Records([part], generation / f"{RECORDS}.npy")
        self._ids = Ids(generation / IDS)
        self._updated: Mapping[str, int | None] = MappingProxyType({})
        self._deleted: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Return the number of doc ids."""
        return len(self._records)

    @property
    def mean_size(self) -> int:
        """Return the mean size of a record in bytes, over all doc ids."""
        return self._records.size // max(len(self), 1)

    def size_of_longest(self, count: int) -> int:
        """Return the total bytes of the `count` longest documents, at most `MAX_LONGEST`.

        Cost: O(N) the first time, then of the documents written since.
        """
        return sum(self._records.longest[:count])

    def extended(
        self,
        part: RecordsPart,
        updated: Mapping[str, int | None],
        live: npt.NDArray[np.bool_],
    ) -> DocumentReader:
        """Return a reader of these and later documents, which closes with this one.

        part     their records
        updated  doc id of each ID that was written later, None if it was deleted
        live     (N,) whether a document is not deleted
        """
        reader = object.__new__(DocumentReader)
        reader._records = self._records.extended(part)
        reader._ids, reader._updated, reader._deleted = self._ids, updated, ~live
        return reader

    def restricted(self, live: npt.NDArray[np.bool_]) -> DocumentReader:
        """Return a reader that finds only some documents by ID, which closes with this one.

        live  (N,) whether a doc id has a document
        """
        reader = object.__new__(DocumentReader)
        reader._records, reader._ids = self._records, self._ids
        reader._updated, reader._deleted = self._updated, ~live
        return reader

    @property
    def native(self) -> _native.Records:
        """Return the records for compiled loops."""
        return self._records.native

    def records(self, doc_ids: Sequence[int]) -> list[Record]:
        """Return documents in the order of the doc ids, without reading their texts."""
        return self._records.heads(doc_ids)

    def titles(self, doc_ids: Iterable[int]) -> list[str]:
        """Return titles in the order of the doc ids."""
        return [self._records.title(int(doc_id)) for doc_id in doc_ids]

    def text(self, doc_id: int) -> str:
        """Return the text of a document."""
        return self._records.text(doc_id)

    def at(self, doc_ids: Iterable[int]) -> list[Document]:
        """Return documents in the order of the doc ids. Cost: 3 µs and the text each."""
        return [self._records.document(int(doc_id)) for doc_id in doc_ids]

    def ids(self, doc_ids: Iterable[int]) -> list[str]:
        """Return IDs in the order of the doc ids."""
        return [self._records.id(int(doc_id)) for doc_id in doc_ids]

    def live_doc_ids(self) -> Sequence[int]:
        """Return the doc ids of all live documents, in order."""
        if self._deleted is None:
            return range(len(self))
        doc_ids: list[int] = np.flatnonzero(~self._deleted).tolist()
        return doc_ids

    def live_documents(self) -> Iterator[Document]:
        """Yield all live documents, in order of their doc ids."""
        return map(self._records.document, self.live_doc_ids())

    def get(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document of an ID; DocumentNotFound."""
        return self._records.document(self._doc_id(id))

    def doc_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the doc ids of IDs, in their order; DocumentNotFound for the first missing one."""
        return [self._doc_id(id_) for id_ in ids]

    def find(self, id: str) -> int | None:  # noqa: A002 - the field's own name
        """Return the doc id of an ID, or None."""
        doc_id = self._updated[id] if id in self._updated else self._ids.doc_id(id)
        if doc_id is None or (self._deleted is not None and self._deleted[doc_id]):
            return None
        return doc_id

    def existing(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the doc ids of those IDs that exist: (n,) int64."""
        doc_ids = (self.find(id_) for id_ in ids)
        return np.array([doc_id for doc_id in doc_ids if doc_id is not None], np.int64)

    def is_record(self, doc_id: int, record: bytes) -> bool:
        """Return whether a document is stored as this record: see `records.record_of`."""
        return self._records.is_record(doc_id, record)

    def equals(self, doc_id: int, document: Document) -> bool:
        """Return whether the document of a doc id is stored with this title, text and metadata."""
        return self._records.equals(doc_id, document)

    def find_in_any_case(self, id: str) -> int | None:  # noqa: A002 - the field's own name
        """Return the doc id of an ID in this case of letters, else in upper or lower case, else
        with a capital first letter; or None.
        """
        for variant in dict.fromkeys((id, id.upper(), id.lower(), id.capitalize())):
            doc_id = self.find(variant)
            if doc_id is not None:
                return doc_id
        return None

    def close(self) -> None:
        """Close the table of IDs; the reader cannot be used afterwards."""
        self._ids.close()

    def damaged(self, error: object) -> IndexDamaged:
        """Return the error that the records cannot be read for that reason."""
        return self._records.damaged(error)

    def _doc_id(self, id: str) -> int:  # noqa: A002 - the field's own name
        doc_id = self.find(id)
        if doc_id is None:
            raise DocumentNotFound(
                f"no document {id!r} in the index; check the ID",
                field="id",
            )
        return doc_id
