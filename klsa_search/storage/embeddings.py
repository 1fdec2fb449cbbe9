"""Vectors that an embedder has computed for an index, until a generation has them.

The file EMBEDDINGS in the folder of the index, an SQLite database: an interrupted computation
continues with it. It is a cache, so a damaged one is removed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from klsa_search.errors import IndexBusy
from klsa_search.storage.files import writable
from klsa_search.storage.names import EMBEDDING_FILES

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
            except sqlite3.OperationalError:
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
