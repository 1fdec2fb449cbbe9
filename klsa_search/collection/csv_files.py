"""CSV and TSV with a header line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal

from klsa_search.collection.csv_dialects import (
    TSV,
    Dialect,
    recognised,
    recognised_tsv,
    split_lines,
)
from klsa_search.collection.encodings import decoded_lines
from klsa_search.collection.files.formats import format_of
from klsa_search.collection.intake import Intake
from klsa_search.collection.model import Document, TruncatedFile, text_fault
from klsa_search.collection.table_rows import Header, Row, is_header, row_documents, shown

LONGEST_FIELD = 16 * 2**20  # characters; the default of csv, 128 K, is too small for documents
_RULE: Final = re.compile(r"[ +=|:-]*(?:---|===)[ +=|:-]*")  # between the rows of a printed table
_AHEAD: Final = 100  # rows that show whether the header lacks the first column


def documents(path: Path, intake: Intake, kind: Literal["csv", "tsv"]) -> Iterator[Document]:
    """Stream the documents of one file; the header names the columns.

    The header needs `title` or `text` (in any case), unless columns are named or have common names
    (`Columns.completed`); lines of a title before it are left out. Without `_id` or `id` the
    documents are numbered. Other columns become metadata, as strings. Encoding, delimiter and
    quoting of CSV are recognised; otherwise it follows RFC 4180 strictly. TSV has no quoting,
    unless `recognised_tsv` finds it: a tab always ends a field, a newline a record. A row with more
    or fewer cells than the header is refused, unless the additional ones are blank, or those that
    it lacks are metadata, which Excel leaves out. Rows of blank cells are skipped.
    """
    # The limit is global to the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    encoding = intake.options.encoding
    if intake.options.format is None and format_of(path) is not None:
        intake.note(path, "read as a table; --format text reads it as text")
    if kind == "csv":
        dialect = recognised(path, lambda cells: is_header(cells, intake.columns), encoding)
        if dialect.differences():
            intake.note(path, f"read as CSV with {dialect.differences()}")
    else:
        dialect = recognised_tsv(path, encoding)
        if dialect != TSV:
            intake.note(path, "read as TSV with quoted cells")
    rows = _rows(path, intake, kind, dialect)
    first = next(rows, None)
    if first is None:
        return
    cells = first.cells

    def ahead() -> Iterator[list[Any]]:
        lenient = Intake(replace(intake.options, on_error="skip"))
        with suppress(TruncatedFile):
            yield from (row.cells for row in islice(_rows(path, lenient, kind, dialect), 1, None))

    # Only a comma may be part of a text that lacks quotes.
    may_have_names = dialect.delimiter != "," or intake.columns.id_in(cells) is None
    if may_have_names and _has_row_names(ahead(), len(cells)):
        cells = ["", *cells]
        fact = "rows have one cell more than the header; the first cells are read as row names"
        intake.note(path, fact)
    header = Header(cells, f"{path}:{first.number}", intake.columns)
    fault = partial(_fault, header=header.names, dialect=dialect)
    yield from row_documents(path, intake, header, rows, ahead, fault)


def _has_row_names(rows: Iterator[list[Any]], columns: int) -> bool:
    """Return whether the first rows have one cell more than the header, as R writes row names.

    A last cell that begins with a blank is rather the end of a text with a comma.
    """
    first = list(islice(rows, _AHEAD))
    is_longer = all(len(cells) == columns + 1 and cells[-1].strip() for cells in first)
    return bool(first) and is_longer and not all(cells[-1].startswith(" ") for cells in first)


def _rows(path: Path, intake: Intake, kind: str, dialect: Dialect) -> Iterator[Row]:
    """Yield the rows that are not blank, from the header on; broken ones are refused."""
    is_printed: bool | None = None  # as | id | title |
    follows_blank = False
    decoded = decoded_lines(path, intake.options.encoding, partial(intake.note, path))
    texts = chain.from_iterable(split_lines(line) for _, line in decoded)
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
            intake.refuse(
                f"{path}:{number}: broken {kind.upper()} ({error}); double each quote in a quoted "
                "cell"
            )
            continue
        if dialect.delimiter == "|":
            if _RULE.fullmatch("|".join(cells)):
                continue
            if is_printed is None and any(cells):
                is_printed = not (cells[0] or cells[-1])
            cells = list(map(str.strip, cells)) if is_printed else cells
        cells = [_unmarked(cell) if cell[:1] in _MARKS else cell for cell in cells]
        is_blank = not any(map(str.strip, cells))
        if not is_blank:
            yield Row(number, cells, follows_blank)
        follows_blank = is_blank


_MARKS: Final = ("=", "'")
FORMULA: Final = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
"""Start of a text that a spreadsheet may take for a formula."""
_QUOTED: Final = re.compile(r"'[^'\s(]+'(?!\w)")
_FORMULA_TEXT: Final = re.compile(r'="((?:[^"]|"")*)"')


def _unmarked(cell: str) -> str:
    """Return a cell without what keeps a spreadsheet from reading it as a number or formula.

    >>> _unmarked('="00123"'), _unmarked("'-5"), _unmarked("'tis"), _unmarked("'-v' quotes")
    ('00123', '-5', "'tis", "'-v' quotes")
    """
    if cell[0] == "'" and FORMULA.match(cell, 1) and not _QUOTED.match(cell):
        return cell[1:]
    text = _FORMULA_TEXT.fullmatch(cell)
    return text[1].replace('""', '"') if text else cell


def _fault(cells: list[Any], header: list[str], dialect: Dialect) -> str | None:
    """Return why a row cannot be read; None if it can."""
    for name, cell in zip(header, cells, strict=False) if text_fault("".join(cells)) else ():
        if reason := text_fault(cell):
            return f"column {name!r} {reason}: {shown(cell)}"
    further = cells[len(header) :]
    if len(cells) >= len(header) and not any(map(str.strip, further)):
        return None
    counts = f"{len(cells):,} cells under a header of {len(header):,}"
    if not further:
        return f"{counts}: none for column {header[len(cells)]!r} after {shown(cells[-1])}"
    hint = "" if dialect.quote is None else f"; a cell with {dialect.delimiter!r} needs quotes"
    return f"{counts}: no column for {shown(further[0])}{hint}"
