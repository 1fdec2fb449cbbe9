"""The rows of one index in the catalogue of its directory.

    with read_entry(path) as entry: entry.rows("synonyms")
    with change_entry(path) as entry: entry.replace("synonyms", [("tv", '["television"]')])

Rows belong to an ID, in the file CATALOG-ID of the index from its first row on. So an index keeps
them when its folder is renamed, and one that is built in its place has none. A folder that was
copied without its directory has an ID that no catalogue knows, so that this can be told. Until its
first rows are committed, an ID is marked: concurrent readers, and those after a crash, see no copy.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from klsa_search.errors import StoreError
from klsa_search.storage.catalog import (
    TABLES,
    UNCOMMITTED,
    Catalog,
    Row,
    change_catalog,
    read_catalog,
)
from klsa_search.storage.current import current_build
from klsa_search.storage.files import read_regular, replace_file, unreadable
from klsa_search.storage.names import CATALOG, CATALOG_ID

_OF_INDEXES: Final = tuple(name for name, columns in TABLES.items() if "index" in columns)

_STEPS: Final = {
    "settings": "return to the settings of the build with `klsa-index settings {name} --reset`, "
    "then set them again",
    "synonyms": "set the synonyms again with `klsa-index synonyms {name} FILE`, or remove them "
    "with --clear",
    "rules": "set the rules again with `klsa-index rules {name} FILE`, or remove them with --clear",
}
"""Next steps if a row of these tables is damaged: they are simple to write again."""

_TICK: Final = 10**9
"""Nanoseconds within which a file may change twice at the same time of modification."""

_log = logging.getLogger(__name__)

Stamp = tuple[int, ...]


class Entry:
    """The rows of one index within one transaction.

    is_known    whether the index has rows
    is_missing  whether it had rows, and the catalogue does not know it: its folder was copied
                without them
    """

    def __init__(self, catalog: Catalog, path: Path, mark: _Mark | None = None) -> None:
        self._catalog, self._path = catalog, path
        self._id, self._is_uncommitted = mark or _read_mark(path)
        self.is_known = self._id is not None and bool(self._named())
        self.is_missing = not (self._id is None or self.is_known or self._is_uncommitted)
        self._is_claimed = False

    def rows(self, table: str) -> list[Row]:
        """Return the rows of the index, without its ID; IndexDamaged if one has changed."""
        if not self.is_known:
            return []
        step = _STEPS.get(table, "").format(name=self._path.name)
        return [row[1:] for row in self._catalog.rows(table, '"index" = ?', [self._id], step=step)]

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows of the index, given without its ID, or replace those with the same key."""
        id_ = self._claim()
        self._catalog.insert(table, ((id_, *row) for row in rows))

    def delete(self, table: str, where: str = "1", values: Sequence[object] = ()) -> None:
        """Delete rows of the index, all of a table by default."""
        if self.is_known:
            self._catalog.delete(table, f'"index" = ? and {where}', [self._id, *values])

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Replace all rows of the index in a table."""
        self.delete(table)
        if rows:
            self.insert(table, rows)

    def remove(self) -> None:
        """Remove the index from the catalogue, and its ID from its folder."""
        if self.is_known:
            for table in _OF_INDEXES:
                self.delete(table)
            self._catalog.delete("indexes", "id = ?", [self._id])
        (self._path / CATALOG_ID).unlink(missing_ok=True)
        self._id, self.is_known, self.is_missing = None, False, False

    def _named(self) -> list[Row]:
        """Return the row of the ID, unless another folder has it: then this one is its copy."""
        rows = self._catalog.rows("indexes", "id = ?", [self._id])
        if rows and rows[0][1] != self._path.name:
            original = self._path.with_name(rows[0][1])
            return [] if _read_mark(original).id == self._id else rows
        return rows

    def _claim(self) -> str:
        """Return the ID of the index, which is made if it has none; its name is that of its folder.

        The ID is durable before its rows are, so that a copy of the folder tells that it had some.
        """
        is_copy = self.is_missing and self._catalog.rows("indexes", "id = ?", [self._id])
        if self._id is None or is_copy:
            self._id, self._is_uncommitted = uuid4().hex, True
            replace_file(self._path / CATALOG_ID, f"{self._id} {UNCOMMITTED}\n")
        if self._is_uncommitted and not self.is_known:  # a failed change removes these
            self._catalog.claimed[self._path / CATALOG_ID] = self._id
        if not self._is_claimed:
            self._catalog.insert("indexes", [(self._id, self._path.name)])
            self._is_claimed, self.is_known, self.is_missing = True, True, False
        return self._id


def home_of(path: Path) -> Path:
    """Return the directory of an index: of the folder that a symbolic link leads to."""
    return Path(os.path.realpath(path)).parent


def entry_stamp(path: Path) -> Stamp | None:
    """Return a value that changes with the rows of the index at a path; None if it has none.

    A file that was modified within the last second gets another value each time, as it may change
    again without another time of modification. Cost: 20 µs.
    """
    stamps: Stamp = ()
    now = time.time_ns()
    catalog = home_of(path) / CATALOG
    for file in (path / CATALOG_ID, catalog, catalog.with_name(f"{CATALOG}-wal")):
        try:
            stat = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            if not stamps:
                return None
            continue
        is_settled = now - stat.st_mtime_ns > _TICK
        stamps += stat.st_ino, stat.st_size, stat.st_mtime_ns, 0 if is_settled else now
    return stamps


@contextmanager
def read_entry(path: Path) -> Iterator[Entry]:
    """Yield the rows of the index at a path: see `read_catalog`. Cost: 30 µs if it has none.

    A warning is logged if its folder was copied without them.
    """
    home = home_of(path)
    mark = _read_mark(path)  # before the catalogue: its rows are committed before it is confirmed
    if mark.id is None:
        yield Entry(Catalog(home, None), path, mark)
        return
    with read_catalog(home) as catalog:
        entry = Entry(catalog, Path(os.path.realpath(path)), mark)
        if entry.is_missing and _read_mark(path) == mark:  # else it was removed meanwhile
            _log.warning("%s", missing(path))
        yield entry


@contextmanager
def change_entry(path: Path) -> Iterator[Entry]:
    """Yield the rows of the index at a path to change them: see `change_catalog`."""
    with change_catalog(home_of(path)) as catalog:
        yield Entry(catalog, Path(os.path.realpath(path)))


@contextmanager
def change_rows(path: Path) -> Iterator[Entry]:
    """Yield the rows of an index to change them: see `change_entry`. IndexNotFound without one."""
    with change_entry(path) as entry:
        current_build(path)
        yield entry


def rows_of(path: Path, build: str) -> str:
    """Return the rows of the index at a path as lines of JSON, as they are at one moment.

    build  whose settings are among them
    Each line is a list of table and values. The same rows are the same text, whatever the ID of the
    index and the name of its build are. IndexDamaged.
    """
    with read_entry(path) as entry:
        lines = []
        for table in _OF_INDEXES:
            for row in entry.rows(table):
                if table == "settings":
                    if row[0] != build:
                        continue
                    row = ("", *row[1:])
                lines.append(json.dumps([table, *row], ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def replace_rows(path: Path, lines: str, build: str) -> None:
    """Replace the rows of the index at a path by what `rows_of` returned, unless they are equal.

    build  to which the settings belong
    StoreError if another version wrote them.
    """
    with read_entry(path) as entry:
        is_missing = entry.is_missing  # an interrupted copy left the ID
    if not is_missing and lines == rows_of(path, build):
        return
    tables: dict[str, list[Row]] = {table: [] for table in _OF_INDEXES}
    for line in lines.splitlines():
        table, *row = json.loads(line)
        if table not in tables or len(row) + 1 != len(TABLES[table]):
            raise StoreError(
                f"the copy of index `{path.name}` has rows of `{table}` that this version does not "
                "know; install the version of klsa-search that wrote it"
            )
        tables[table].append((build, *row[1:]) if table == "settings" else tuple(row))
    with change_entry(path) as entry:
        for table, rows in tables.items():
            entry.replace(table, rows)
        if not lines:
            entry.remove()


def verify_entry(path: Path) -> None:
    """Read all rows of the index at a path and compare their checksums; IndexDamaged.

    An ID without rows is no damage: a loss of power before its first row leaves one.
    """
    with read_entry(path) as entry:
        for table in _OF_INDEXES:
            entry.rows(table)
    with read_catalog(home_of(path)) as catalog:
        catalog.check()


def missing(path: Path) -> str:
    """Return the message that the catalogue of its directory does not know an index."""
    file = home_of(path) / CATALOG
    return (
        f"index `{path}` was copied without the catalogue of its directory: `{file}` has no entry "
        "of it, so it has the settings of its build, and no synonyms, rules and judgements; copy "
        f"the index with `klsa-index backup`, or accept this by removing `{path / CATALOG_ID}`"
    )


class _Mark(NamedTuple):
    """The ID by which the catalogue knows an index, and whether its rows may be uncommitted."""

    id: str | None
    is_uncommitted: bool


def _read_mark(path: Path) -> _Mark:
    file = path / CATALOG_ID
    try:
        id_, *mark = read_regular(file, 100).decode("ascii", "replace").split() or [""]
    except (FileNotFoundError, NotADirectoryError):
        return _Mark(None, False)
    except OSError as error:
        raise unreadable(file, error, "restore a backup of the index") from error
    return _Mark(id_, mark == [UNCOMMITTED])
