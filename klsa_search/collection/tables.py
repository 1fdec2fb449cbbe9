"""Rows of SQLite databases, Parquet files and spreadsheets: tables with typed cells."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.csv_files import MAX_PREAMBLE
from klsa_search.collection.intake import Intake
from klsa_search.collection.json_values import json_value
from klsa_search.collection.model import Document, TruncatedFile
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.reading_options import CheckedReadingOptions
from klsa_search.collection.table_rows import (
    Header,
    Row,
    header_names,
    is_blank,
    is_header,
    row_documents,
)
from klsa_search.core.installation import require
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError

PREFIX: Final = "sqlite:"  # begins a source that is a table or query of a SQLite database
_SOURCE: Final = re.compile(r"sqlite:(.+?)\?(table|query)=(.+)", re.DOTALL)


def database_collection(source: str, options: CheckedReadingOptions) -> OpenedCollection:
    """Return a table or query as a collection; the database is opened for reading only."""
    match = _SOURCE.fullmatch(source)
    if match is None:
        raise CollectionError(
            f"{source!r} names no table and no query; give sqlite:FILE?table=NAME or "
            "sqlite:FILE?query=SELECT...",
            field="source",
        )
    path, kind, wanted = Path(match[1]), match[2], match[3]
    if not path.is_file():
        raise CollectionError(f"{path}: no such file; check the path", field="source")
    read = _table_documents if kind == "table" else _query_documents
    return OpenedCollection(
        path.name,
        "sqlite",
        options,
        lambda intake: _database_documents(path, read, wanted, intake),
        files=lambda _: [path],
        root=path,
        address=f"{PREFIX}{path.absolute()}?{kind}={wanted}",
    )


def _database_documents(
    path: Path, read: _DatabaseReader, wanted: str, intake: Intake
) -> Iterator[Document]:
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # ATTACH creates files
            yield from read(path, connection, wanted, intake)
    except sqlite3.Error as error:
        raise CollectionError(
            f"{path}: cannot be read as SQLite ({error}); check the file and the query",
            field="source",
        ) from error


_DatabaseReader = Callable[[Path, sqlite3.Connection, str, Intake], Iterator[Document]]


def _table_documents(
    path: Path, connection: sqlite3.Connection, table: str, intake: Intake
) -> Iterator[Document]:
    from sqlite_utils import Database

    database = Database(connection)
    tables = database.table_names()
    names = [*tables, *database.view_names()]
    if table not in names:
        listed = ", ".join(map(repr, names)) or "none"
        raise CollectionError(
            f"{path}: no table {table!r}; the tables are: {listed}", field="source"
        )
    keys = database.table(table).pks if table in tables else []
    yield from _documents(path, database[table].rows, intake, keys[0] if len(keys) == 1 else None)


def _query_documents(
    path: Path, connection: sqlite3.Connection, query: str, intake: Intake
) -> Iterator[Document]:
    cursor = connection.execute(query)
    if cursor.description is None:
        raise CollectionError(f"{path}: the query returns no rows; give a SELECT")
    names = [column[0] for column in cursor.description]
    if len(set(names)) < len(names):
        raise CollectionError(
            f"{path}: the query has columns with the same name among "
            f"{', '.join(map(repr, names))}; rename them with AS"
        )
    rows = (dict(zip(names, row, strict=True)) for row in cursor)
    yield from _documents(path, rows, intake)


def parquet_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of a Parquet file, a batch of rows in memory at a time.

    Columns of bytes, such as images, are left out with a note.
    """
    require("tables")
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            schema = _readable_schema(file.schema_arrow)
            if left_out := [name for name in file.schema_arrow.names if name not in schema.names]:
                named = ", ".join(map(repr, left_out))
                intake.note(path, f"columns of bytes are not read: {named}")
            batches = file.iter_batches(columns=schema.names)
            rows = (row for batch in batches for row in batch.cast(schema, safe=False).to_pylist())
            yield from _documents(path, rows, intake)
    except (ArrowException, OSError) as error:
        raise TruncatedFile(f"{path}: cannot be read as Parquet ({error})") from None


def sheet_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Yield the documents of the first sheet of a workbook.

    The first row names the columns, or the first that can, after a title of fewer cells. Columns
    without a name or of the same name are read as in CSV. Memory: all cells of the sheet.
    """
    require("tables")
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        with CalamineWorkbook.from_path(path) as workbook:
            first, *further = workbook.sheet_names
            rows = workbook.get_sheet_by_index(0).to_python()
    except (CalamineError, OSError) as error:
        raise TruncatedFile(f"{path}: cannot be read as a workbook ({error})") from None
    if further:
        intake.note(path, f"read the sheet {first!r}, the first of {1 + len(further):,}")
    rows = [[_cell(value) for value in row] for row in rows]
    before = _rows_before_header(rows, intake)
    if before:
        intake.note(path, f"left out {counted(before, 'row')} before the header")
    if not rows:
        return
    header = Header(_names(rows[before]), f"{path}:{before + 1}", intake.columns)
    below = [
        Row(number, row, all(map(is_blank, rows[number - 2])))
        for number, row in enumerate(rows[before + 1 :], start=before + 2)
        if not all(map(is_blank, row))
    ]
    yield from row_documents(path, intake, header, iter(below), lambda: (r.cells for r in below))


def _names(cells: Iterable[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def _rows_before_header(rows: list[list[Any]], intake: Intake) -> int:
    """Return the number of rows of a title, which have fewer cells than the header after them."""
    sizes = [sum(not is_blank(cell) for cell in row) for row in rows[: MAX_PREAMBLE + 1]]
    for number, size in enumerate(sizes):
        is_wider = max(sizes[:number], default=0) < max(size, 2)
        if is_wider and is_header(_names(rows[number]), intake.columns):
            return number
    return 0


def _readable_schema(schema: Any) -> Any:
    """Return a schema of Arrow without bytes, with times in the microseconds of Python."""
    import pyarrow

    fields = [field.with_type(_in_microseconds(field.type)) for field in schema]
    types = pyarrow.types
    return pyarrow.schema(
        field
        for field in fields
        if not (types.is_binary(field.type) or types.is_large_binary(field.type))
    )


def _in_microseconds(kind: Any) -> Any:
    import pyarrow

    types = pyarrow.types
    if types.is_timestamp(kind):
        return pyarrow.timestamp("us", kind.tz)
    if types.is_duration(kind):
        return pyarrow.duration("us")
    if types.is_time64(kind):
        return pyarrow.time64("us")
    if types.is_list(kind) or types.is_large_list(kind):
        return pyarrow.list_(_in_microseconds(kind.value_type))
    if types.is_struct(kind):
        return pyarrow.struct([field.with_type(_in_microseconds(field.type)) for field in kind])
    return kind


def _documents(
    path: Path, rows: Iterable[Mapping[str, Any]], intake: Intake, key: str | None = None
) -> Iterator[Document]:
    """Yield the documents of rows with equal names.

    key  column of a primary key, which is the ID if no column is named for it
    """

    def records() -> Iterator[tuple[str, dict[str, Any]]]:
        names: list[str] = []
        for number, row in enumerate(rows, start=1):
            if not names:
                names = header_names(list(row), str(path), intake.columns)
            record = dict(zip(names, map(json_value, row.values()), strict=True))
            yield f"{path}, row {number}", record

    yield from intake.documents(path, records(), key=key, needs_text=True)


def _cell(value: Any) -> Any:
    """Return a cell of a sheet, which has no integers and no missing values, as a JSON value."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if value == "" else json_value(value)
