"""The rows of one index in the catalogue of its directory.

    with read_entry(path) as entry: entry.rows("synonyms")
    with change_entry(path) as entry: entry.replace("synonyms", [("tv", '["television"]')])

Rows belong to an ID, in the file CATALOG-ID of the index from its first row on. So an index keeps
them when its folder is renamed. An index that is built in its place, or a copy of the folder alone,
has none.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from klsa_search.errors import StoreError
from klsa_search.storage.catalog import TABLES, Catalog, Row, change_catalog, read_catalog
from klsa_search.storage.current import current_build
from klsa_search.storage.files import Stamp, read_regular, replace_file, stamp_of, unreadable
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


class Entry:
    """The rows of one index within one transaction.

    id  None if it never had any
    """

    def __init__(self, catalog: Catalog, path: Path) -> None:
        self._catalog, self._path = catalog, path
        self.id = _read_id(path)
        for _, name in catalog.rows("indexes", "id = ?", [self.id]):
            if name != path.name and _read_id(path.with_name(name)) == self.id:
                self.id = None  # this folder is a copy of that one

    def rows(self, table: str) -> list[Row]:
        """Return the rows of the index, without its ID; IndexDamaged if one has changed."""
        step = _STEPS.get(table, "").format(name=self._path.name)
        return [row[1:] for row in self._catalog.rows(table, '"index" = ?', [self.id], step=step)]

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows of the index, given without its ID, or replace those with the same key."""
        if self.id is None:
            self.id = uuid4().hex
            replace_file(self._path / CATALOG_ID, f"{self.id}\n")
        self._catalog.insert("indexes", [(self.id, self._path.name)])
        self._catalog.insert(table, ((self.id, *row) for row in rows))

    def delete(self, table: str, where: str = "1", values: Sequence[object] = ()) -> None:
        """Delete rows of the index, all of a table by default."""
        self._catalog.delete(table, f'"index" = ? and {where}', [self.id, *values])

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Replace all rows of the index in a table."""
        self.delete(table)
        if rows:
            self.insert(table, rows)

    def remove(self) -> None:
        """Remove the index from the catalogue, and its ID from its folder."""
        for table in _OF_INDEXES:
            self.delete(table)
        self._catalog.delete("indexes", "id = ?", [self.id])
        (self._path / CATALOG_ID).unlink(missing_ok=True)
        self.id = None


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
        stamp = stamp_of(file)
        if stamp is None and not stamps:
            return None
        if stamp is not None:
            is_settled = now - stamp[-1] > _TICK
            stamps += *stamp, 0 if is_settled else now
    return stamps


@contextmanager
def read_entry(path: Path) -> Iterator[Entry]:
    """Yield the rows of the index at a path: see `read_catalog`. Cost: 30 µs if it has none."""
    home = home_of(path)
    if _read_id(path) is None:
        yield Entry(Catalog(home, None), path)
        return
    with read_catalog(home) as catalog:
        yield Entry(catalog, Path(os.path.realpath(path)))


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
    if lines == rows_of(path, build):
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


def _read_id(path: Path) -> str | None:
    """Return the ID by which the catalogue knows the index at a path; None if it has none."""
    file = path / CATALOG_ID
    try:
        return read_regular(file, 100).decode("ascii", "replace").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(file, error, "restore a backup of the index") from error
