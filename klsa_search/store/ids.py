"""Where each id is: a table of SQLite, `id` -> `position`.

Plain sqlite3, because a search looks up IDs and should not import sqlite-utils (0.1 s).
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.forks import lock_free_in_children
from klsa_search.store.current import step_for


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
