"""Vectors of the documents of a generation, by space; the manifest lists the spaces.

    vectors_<n>.npy            int8     (R, dimension) vectors of the n-th space
    vectors_<n>_documents.npy  int32    (R,) doc id of each, ascending
    vectors_<n>_scales.npy     float32  (R,) 1 / length of each

They follow from the documents, whose records contain them too. Vectors that an embedder computed
are in the SQLite database EMBEDDINGS until a generation has them: an interrupted computation
continues with it; a damaged one is removed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import check_dimensions, vectors_of
from klsa_search.core.array_types import DocumentMask, Numbers
from klsa_search.errors import IndexBusy
from klsa_search.kernels.vector_space import VectorRows, VectorSpace, VectorSpaces, scales_of
from klsa_search.storage.arrays import ArrayWriter, open_array, write_arrays
from klsa_search.storage.database import unusable
from klsa_search.storage.files import writable
from klsa_search.storage.manifest import SpaceEntry
from klsa_search.storage.names import EMBEDDING_FILES


class VectorsWriter(AbstractContextManager["VectorsWriter"]):
    """Writes the vectors of documents, in order. Use as a context manager.

    BadDocument for a vector of another dimension than the first of its space.
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        self._stack = ExitStack()
        self._files: dict[str, list[ArrayWriter]] = {}
        self._dimensions: dict[str, int] = {}
        self._vectors, self._documents = Counter[str](), Counter[str]()
        self._count = 0

    def extend(self, documents: Sequence[Document]) -> None:
        """Append the next documents."""
        for doc_id, document in enumerate(documents, self._count):
            vectors = vectors_of(document)
            check_dimensions(document, vectors, self._dimensions)
            for name, rows in vectors.items():
                if name not in self._files:
                    self._files[name] = self._opened(len(self._files), rows.shape[1])
                doc_ids = np.full(len(rows), doc_id, np.int32)
                arrays: tuple[npt.NDArray[Any], ...] = rows, doc_ids, scales_of(rows)
                for file, array in zip(self._files[name], arrays, strict=True):
                    file.append(array)
                self._vectors[name] += len(rows)
                self._documents[name] += 1
        self._count += len(documents)

    def entries(self) -> list[SpaceEntry]:
        """Return what the manifest says about the spaces."""
        vectors, documents = self._vectors, self._documents
        return [
            SpaceEntry(name=n, dimension=size, vectors=vectors[n], documents=documents[n])
            for n, size in self._dimensions.items()
        ]

    def __exit__(self, *failure: object) -> None:
        """Close the files."""
        self._stack.close()

    def _opened(self, number: int, dimension: int) -> list[ArrayWriter]:
        kinds = (np.int8, np.int32, np.float32)
        return [
            self._stack.enter_context(ArrayWriter(self._generation, name, kind, columns))
            for name, kind, columns in zip(
                _names(number), kinds, (dimension, None, None), strict=True
            )
        ]


def write_vectors(
    generation: Path, spaces: VectorSpaces, live: DocumentMask, numbers: Numbers
) -> None:
    """Write the vectors of live documents: of each space, in order.

    numbers  (N,) new doc ids
    """
    for number, space in enumerate(spaces.values()):
        parts = []
        for part in space.parts:
            is_live = live[part.documents]
            arrays = part.rows[is_live], part.documents[is_live], part.scales[is_live]
            parts.append(VectorRows(*arrays))
        merged = replace(space, parts=tuple(parts)).merged()
        documents = numbers[merged.documents].astype(np.int32)
        merged_arrays = merged.rows, documents, merged.scales
        write_arrays(generation, dict(zip(_names(number), merged_arrays, strict=True)))


def open_vectors(generation: Path, entries: Sequence[SpaceEntry]) -> VectorSpaces:
    """Map the vectors of a generation into memory."""
    spaces = {}
    for number, entry in enumerate(entries):
        part = VectorRows(*(open_array(generation, name) for name in _names(number)))
        spaces[entry.name] = VectorSpace(entry.name, entry.dimension, (part,))
    return spaces


def _names(number: int) -> tuple[str, str, str]:
    """Return the names of the arrays of a space: vectors, their documents and scales."""
    return f"vectors_{number}", f"vectors_{number}_documents", f"vectors_{number}_scales"


_SCHEMA = "create table if not exists vectors (key blob primary key, row blob) without rowid"


class ComputedVectors:
    """Computed vectors by the fingerprint of the embedder and the text; for one process.

    IndexBusy while another process computes vectors for the index.
    """

    def __init__(self, index: Path) -> None:
        self._files = [index / name for name in EMBEDDING_FILES]
        with writable(index):
            try:
                self._database = self._connect()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise unusable(self._files[0], error) from error
                raise IndexBusy(
                    f"vectors of index `{index}` are being computed by another process; wait for "
                    "it to finish, then try again"
                ) from None
            except sqlite3.DatabaseError:
                self._unlink()
                self._database = self._connect()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._files[0], timeout=0, check_same_thread=False)
        try:
            database.execute("pragma locking_mode = exclusive")
            database.execute("begin exclusive")
            database.execute(_SCHEMA)
            database.commit()
        except BaseException:
            database.close()
            raise
        return database

    def rows(self, fingerprint: str, texts: Sequence[str]) -> list[npt.NDArray[np.int8] | None]:
        """Return the vector of each text, None for those that are not computed yet."""
        rows: list[npt.NDArray[np.int8] | None] = []
        for text in texts:
            row = self._database.execute(
                "select row from vectors where key = ?", [_key(fingerprint, text)]
            ).fetchone()
            rows.append(None if row is None else np.frombuffer(row[0], np.int8))
        return rows

    def add(self, fingerprint: str, texts: Sequence[str], rows: npt.NDArray[np.int8]) -> None:
        """Store the vectors of texts durably."""
        pairs = zip(texts, rows, strict=True)
        with self._database:
            self._database.executemany(
                "insert or replace into vectors values (?, ?)",
                [(_key(fingerprint, text), row.tobytes()) for text, row in pairs],
            )

    def close(self) -> None:
        """Close the file, which stays."""
        self._database.close()

    def remove(self) -> None:
        """Remove the file."""
        self._database.close()
        self._unlink()

    def _unlink(self) -> None:
        for file in self._files:
            file.unlink(missing_ok=True)


def _key(fingerprint: str, text: str) -> bytes:
    return hashlib.sha256(f"{fingerprint}\0{text}".encode()).digest()
