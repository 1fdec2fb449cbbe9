"""CSV and TSV with a header line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from klsa_search.collection.csv_dialects import TSV, Dialect, decoded_lines, recognised
from klsa_search.collection.intake import Intake, TruncatedFile, text_fault
from klsa_search.collection.mappings import COMMON_NAMES, ID_NAMES, TEXT_NAMES, Columns
from klsa_search.collection.model import Document
from klsa_search.errors import CollectionError

LONGEST_FIELD = 16 * 2**20  # characters; the default of csv, 128 K, is too small for documents
KNOWN_NAMES = (*ID_NAMES, "title", *TEXT_NAMES)
_SHOWN = 40  # characters of a cell in a message


def documents(path: Path, intake: Intake, kind: Literal["csv", "tsv"]) -> Iterator[Document]:
    """Stream the documents of one file; the header names the columns.

    The header needs `title` or `text` (in any case), unless columns are named or have common names
    (`Columns.completed`). Without `_id` or `id` the documents are numbered. Other columns become
    metadata, as strings. Encoding, delimiter and quoting of CSV are recognised; otherwise it
    follows RFC 4180 strictly. TSV has no quoting: a tab always ends a field, a newline a record. A
    row with more or fewer cells than the header is refused; empty lines are skipped.
    """
    # The limit is global to the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    dialect = TSV
    if kind == "csv":
        dialect = recognised(path, lambda cells: _is_header(cells, intake.columns))
        if dialect.differences():
            intake.note(path, f"read as CSV with {dialect.differences()}")
    rows = _rows(path, intake, kind, dialect)
    first = next(rows, None)
    if first is None:
        return
    origin = f"{path}:{first[0]}"
    header = header_names(first[1], origin, intake.columns)
    intake.compare_header(path, header)
    columns, numbered = intake.begin(path, header)
    refuse_without_text(header, columns, origin)
    for number, cells in rows:
        origin = f"{path}:{number}"
        fault = _fault(cells, header, dialect)
        if fault:
            intake.refuse(f"{origin}: {fault}")
            continue
        record = dict(zip(header, cells, strict=True))
        document = intake.document(record, origin, columns, numbered=numbered)
        if document is not None:
            yield document


def _rows(
    path: Path, intake: Intake, kind: str, dialect: Dialect
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its first line, cells) for each row that is not empty."""
    texts = decoded_lines(path, intake)
    for _ in range(dialect.skipped):
        next(texts, None)
    reader = dialect.reader(texts)
    while True:
        number = dialect.skipped + reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field larger" in str(error):
                # The beginning of the next record is unknown.
                raise TruncatedFile(
                    f"{path}:{number}: a field of more than {csv.field_size_limit():,} "
                    "characters; is a quote left open?"
                ) from None
            step = "double each quote in a quoted cell"
            if "new-line" in str(error):
                step = "end lines with a line feed"
            intake.refuse(f"{path}:{number}: broken {kind.upper()} ({error}); {step}")
            continue
        if cells:
            yield number, cells


def _fault(cells: list[str], header: list[str], dialect: Dialect) -> str | None:
    """Return why a row cannot be read; None if it can."""
    for name, cell in zip(header, cells, strict=False) if text_fault("".join(cells)) else ():
        reason = text_fault(cell)
        if reason:
            return f"column {name!r} {reason}: {_shown(cell)}"
    if len(cells) == len(header):
        return None
    counts = f"{len(cells):,} cells under a header of {len(header):,}"
    if len(cells) < len(header):
        return f"{counts}: none for column {header[len(cells)]!r} after {_shown(cells[-1])}"
    hint = "" if dialect.quote is None else f"; a cell with {dialect.delimiter!r} needs quotes"
    return f"{counts}: no column for {_shown(cells[len(header)])}{hint}"


def header_names(cells: list[str], origin: str, columns: Columns) -> list[str]:
    """Return the names of columns; CollectionError if one is blank, repeated or missing."""
    names = [cell.strip() for cell in cells]
    named = columns.names()
    names = [
        name.lower() if name.lower() in KNOWN_NAMES and name not in named else name
        for name in names
    ]
    for number, name in enumerate(names, start=1):
        reason = text_fault(name)
        if reason:
            raise CollectionError(f"{origin}: the name of column {number:,} {reason}; correct it")
        if not name:
            raise CollectionError(
                f"{origin}: column {number:,} has no name among {_listed(names)}; name it in the "
                "header"
            )
        if name in names[: number - 1]:
            raise CollectionError(
                f"{origin}: columns {names.index(name) + 1:,} and {number:,} have the same name "
                f"{name!r}; rename one in the header"
            )
    missing = ", ".join(repr(name) for name in named if name not in names)
    if missing:
        raise CollectionError(
            f"{origin}: no column {missing} among {_listed(names)}; name columns as the header "
            "does",
            field="columns",
        )
    return names


def refuse_without_text(names: list[str], columns: Columns, origin: str) -> None:
    """Raise CollectionError if a table has no column of titles or texts."""
    if columns.lacks(names):
        raise CollectionError(
            f"{origin}: no column 'title' or 'text' among {_listed(names)}; name them "
            "(--title, --text, in Python columns=)"
        )


def _is_header(cells: list[str], columns: Columns) -> bool:
    """Return whether cells are a header that is sufficient for documents."""
    try:
        names = {name.lower() for name in header_names(cells, "", columns)}
    except CollectionError:
        return False
    known = {"title", *TEXT_NAMES, *COMMON_NAMES["title"], *COMMON_NAMES["text"]}
    return bool(columns.title or columns.text or names & known)


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _shown(cell: str) -> str:
    """Return the start of a cell for a message."""
    printable = cell.encode("utf-8", "replace").decode()
    return repr(printable if len(printable) <= _SHOWN else f"{printable[: _SHOWN - 3]}...")
