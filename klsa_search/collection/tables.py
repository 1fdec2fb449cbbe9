"""Rows of SQLite databases, Parquet files and spreadsheets: tables with typed cells."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from klsa_search.collection.csv_files import Header, header_names, refuse_without_text
from klsa_search.collection.intake import Intake, TruncatedFile
from klsa_search.collection.mappings import Columns, json_value
from klsa_search.collection.model import Document
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.core.extras import require
from klsa_search.errors import CollectionError

PREFIX: Final = "sqlite:"
"""Begins a source that is a table or query of a SQLite database."""

_SOURCE: Final = re.compile(
    r"sqlite:(?P<file>.+?)\?(?:table=(?P<table>.+)|query=(?P<query>.+))", re.DOTALL
)


class DatabaseSource(NamedTuple):
    """A table or query of a SQLite database: sqlite:FILE?table=NAME or sqlite:FILE?query=SELECT...

    One of both is blank.
    """

    path: Path
    table: str
    query: str

    @classmethod
    def of(cls, source: str) -> Self:
        """Return the parts of a source, of which nothing is escaped; CollectionError."""
        match = _SOURCE.fullmatch(source)
        if match is None:
            raise CollectionError(
                f"{source!r} names no table and no query; give sqlite:FILE?table=NAME or "
                "sqlite:FILE?query=SELECT...",
                field="source",
            )
        return cls(Path(match["file"]), match["table"] or "", match["query"] or "")

    def __str__(self) -> str:
        """Return the source with an absolute path, as all processes of the machine read it."""
        wanted = f"table={self.table}" if self.table else f"query={self.query}"
        return f"{PREFIX}{self.path.absolute()}?{wanted}"


def database_collection(source: str, on_error: str, columns: Columns) -> OpenedCollection:
    """Return a table or query as a collection; the database is opened for reading only."""
    wanted = DatabaseSource.of(source)
    if not wanted.path.is_file():
        raise CollectionError(f"{wanted.path}: no such file; check the path", field="source")
    return OpenedCollection(
        wanted.path.name,
        "sqlite",
        on_error,
        lambda intake: _database_documents(wanted, intake),
        files=lambda _: [wanted.path],
        root=wanted.path,
        address=str(wanted),
        columns=columns,
    )


def _database_documents(wanted: DatabaseSource, intake: Intake) -> Iterator[Document]:
    from sqlite_utils import Database

    path = wanted.path
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # ATTACH creates files
            database = Database(connection)
            key = None
            rows: Iterable[Mapping[str, Any]]
            if wanted.table:
                tables = database.table_names()
                names = [*tables, *database.view_names()]
                if wanted.table not in names:
                    listed = ", ".join(map(repr, names)) or "none"
                    raise CollectionError(
                        f"{path}: no table {wanted.table!r}; the tables are: {listed}",
                        field="source",
                    )
                rows = database[wanted.table].rows
                keys = database.table(wanted.table).pks if wanted.table in tables else []
                key = keys[0] if len(keys) == 1 else None
            else:
                rows = _rows_of_query(connection, wanted)
            yield from _documents(path, rows, intake, key)
    except sqlite3.Error as error:
        raise CollectionError(
            f"{path}: cannot be read as SQLite ({error}); check the file and the query",
            field="source",
        ) from error


def _rows_of_query(
    connection: sqlite3.Connection, wanted: DatabaseSource
) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(wanted.query)
    if cursor.description is None:
        raise CollectionError(f"{wanted.path}: the query returns no rows; give a SELECT")
    names = [column[0] for column in cursor.description]
    if len(set(names)) < len(names):
        raise CollectionError(
            f"{wanted.path}: the query has columns with the same name among "
            f"{', '.join(map(repr, names))}; rename them with AS"
        )
    return (dict(zip(names, row, strict=True)) for row in cursor)


def parquet_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of a Parquet file, a batch of rows in memory at a time."""
    require("tables")
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
            yield from _documents(path, rows, intake)
    except (ArrowException, OSError) as error:
        raise TruncatedFile(f"{path}: cannot be read as Parquet ({error})") from None


def sheet_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Yield the documents of the first sheet of a workbook; its first row names the columns.

    Memory: all cells of the sheet.
    """
    require("tables")
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        with CalamineWorkbook.from_path(path) as workbook:
            first, *others = workbook.sheet_names
            rows = workbook.get_sheet_by_index(0).to_python()
    except (CalamineError, OSError) as error:
        raise TruncatedFile(f"{path}: cannot be read as a workbook ({error})") from None
    if others:
        intake.note(path, f"read the sheet {first!r}, the first of {1 + len(others):,}")
    if rows:
        header = Header.of([str(cell) for cell in rows[0]], f"{path}:1", intake.columns)
        used = [at for at, _ in enumerate(header.names) if at not in header.nameless]
        used += [at for at in header.nameless if any(row[at] != "" for row in rows[1:])]
        names = [header.names[at] for at in sorted(used)]
        records = (
            dict(zip(names, (_cell(row[at]) for at in sorted(used)), strict=True))
            for row in rows[1:]
        )
        first = [row[0] for row in rows[1:] if any(cell != "" for cell in row)]
        key = names[0] if 0 in header.nameless and len(set(first)) == len(first) else None
        yield from _documents(path, filter(_has_value, records), intake, key)


def _documents(
    path: Path, rows: Iterable[Mapping[str, Any]], intake: Intake, key: str | None = None
) -> Iterator[Document]:
    """Yield the documents of rows with equal names.

    key  column of a primary key, which is the ID if no column is named for it
    """
    columns, numbered, names = None, False, list[str]()
    for number, row in enumerate(rows, start=1):
        if columns is None:
            names = header_names(list(row), str(path), intake.columns)
            intake.compare_header(path, names)
            columns, numbered = intake.begin(path, names, key=key)
            refuse_without_text(names, columns, str(path))
        record = dict(zip(names, map(json_value, row.values()), strict=True))
        document = intake.document(record, f"{path}, row {number}", columns, numbered=numbered)
        if document is not None:
            yield document


def _cell(value: Any) -> Any:
    """Return a cell of a sheet, which has no integers and no missing values, as a JSON value."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if value == "" else value


def _has_value(record: Mapping[str, Any]) -> bool:
    return any(value is not None for value in record.values())
