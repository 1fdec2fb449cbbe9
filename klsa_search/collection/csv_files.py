"""CSV and TSV with a header line."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self

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
from klsa_search.collection.json_values import list_of
from klsa_search.collection.model import Document, TruncatedFile, text_fault
from klsa_search.collection.prose_columns import read_ahead
from klsa_search.collection.reading_options import (
    COMMON_NAMES,
    ID_NAMES,
    TEXT_NAMES,
    Columns,
    listed,
    may_name_ids,
    option,
)
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError

LONGEST_FIELD = 16 * 2**20  # characters; the default of csv, 128 K, is too small for documents
KNOWN_NAMES = (*ID_NAMES, "title", *TEXT_NAMES)
_NAMELESS: Final = re.compile(r"|Unnamed: \d+")  # pandas names them so
_RULE: Final = re.compile(r"[ +=|:-]*(?:---|===)[ +=|:-]*")  # between the rows of a printed table
_NUMBER: Final = re.compile(r"\W*+\d[\d\s.,'’]*+\W*+")  # also an amount, but not a date
_TOTALS: Final = frozenset(
    ["total", "totals", "grand total", "sum", "summe", "gesamt", "gesamtsumme", "totale", "totaal",
     "total general", "total général", "suma", "somme", "razem", "celkem", "toplam", "итого",
     "всего", "合計", "合计", "总计", "總計", "합계", "المجموع"]
)  # fmt: skip
_NO_TEXT: Final = frozenset(["NA", "<NA>", "NULL", "NaN", "nan", "None", "\\N", "#N/A"])
"""Cells without a text, as R, pandas, databases and Excel write them."""
_CODE: Final = re.compile(r"(?=.{2,40}\Z)[A-Za-z]{1,10}[-_/.]?\d[\w/.-]*")
_AHEAD = 100  # rows that show whether the header lacks the first column
_SHOWN = 40  # characters of a cell in a message
_FOOTER = 20  # lines below a table that are left out, at most


def documents(path: Path, intake: Intake, kind: Literal["csv", "tsv"]) -> Iterator[Document]:
    """Stream the documents of one file; the header names the columns.

    The header needs `title` or `text` (in any case), unless columns are named or have common names
    (`Columns.completed`); lines of a title before it are left out. Without `_id` or `id` the
    documents are numbered. Other columns become metadata, as strings. Encoding, delimiter and
    quoting of CSV are recognised; otherwise it follows RFC 4180 strictly. TSV has no quoting,
    unless `recognised_tsv` finds it: a tab always ends a field, a newline a record. A row with more
    or fewer cells than the header is refused, unless the additional ones are blank, or those that
    it lacks are metadata, which Excel leaves out. Rows of blank cells are skipped. A first column
    without a name, as pandas and R write it, or with one such as `Ticket ID` is the ID if no other
    column is and its values differ; one of codes that differ is only suggested.
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
    cells = first[1]

    def ahead() -> Iterator[list[str]]:
        """Yield the rows below the header, as far as they can be read."""
        lenient = Intake(replace(intake.options, on_error="skip"))
        with suppress(TruncatedFile):
            for _, row, _ in islice(_rows(path, lenient, kind, dialect), 1, None):
                if not _is_footer(row, cells):
                    yield row

    # Only a comma may be part of a text that lacks quotes.
    may_have_names = dialect.delimiter != "," or intake.columns.id_in(cells) is None
    if may_have_names and _has_row_names(ahead(), len(cells)):
        cells = ["", *cells]
        fact = "rows have one cell more than the header; the first cells are read as row names"
        intake.note(path, fact)
    header = Header.of(cells, f"{path}:{first[0]}", intake.columns)
    is_printed = dialect.delimiter == "|" and not (cells[0] or cells[-1])  # | id | title |
    key = header.names[0] if has_key(path, header, ahead, intake) else None

    def checked(
        number: int, row: list[str], needed: int, lists: Sequence[int]
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield a row with its origin, unless it is refused.

        needed  cells that a row has at least; those after them may be missing
        lists   numbers of the columns whose cells are lists
        """
        if needed <= len(row) < len(header.names):
            intake.note(path, "blank cells for columns that rows end before")
            row += [""] * (len(header.names) - len(row))
        if fault := _fault(row, header.names, dialect):
            intake.refuse(f"{path}:{number}: {fault}")
            return
        cells: list[Any] = list(map(str.strip, row)) if is_printed else row
        for at in lists:
            value = list_of(cells[at])
            cells[at] = cells[at] if value is None else value
        yield f"{path}:{number}", cells

    def readable() -> Iterator[tuple[str, list[Any]]]:
        used = intake.columns.completed(header.names, header.origin)
        needed = len(header.names) - header.optional_at_end(used)
        fields = used.filled(header.names).names()
        columns = _list_columns(ahead(), header.names)
        lists = [at for at in columns if header.names[at] not in (key, *fields)]
        if lists:
            named = listed(header.names[at] for at in lists)
            intake.note(path, f"read the cells of {named} as lists")
        footer: list[tuple[int, list[str]]] = []  # lines that may stand below the table
        has_rows = False  # of several cells
        is_spaced = False  # by blank rows
        for number, row, follows_blank in rows:
            may_be_below = (footer or follows_blank) and has_rows and len(footer) < _FOOTER
            is_row = len(row) >= needed and (header.names[0] in fields or is_spaced)
            if may_be_below and not is_row and _is_footer(row, header.names):
                footer.append((number, row))
                continue
            is_spaced = is_spaced or bool(footer) or (follows_blank and has_rows)
            has_rows = has_rows or sum(not is_blank(cell) for cell in row) > 1
            for earlier in footer:  # a row of the table follows
                yield from checked(*earlier, needed, lists)
            footer.clear()
            yield from checked(number, row, needed, lists)
        if footer:
            left_out = f"{counted(len(footer), 'line')} below the table"
            number, (text, *_) = footer[0]
            intake.note(path, f"left out {left_out}, from line {number:,}, {_shown(text)}")

    yield from row_documents(path, intake, header, readable(), key)


def row_documents(
    path: Path,
    intake: Intake,
    header: Header,
    rows: Iterable[tuple[str, Sequence[Any]]],
    key: str | None,
) -> Iterator[Document]:
    """Yield the documents of the rows below a header, given with their origins.

    key  column that is the ID if no other is
    """
    intake.compare_header(path, header.names)

    def following() -> Iterable[Mapping[str, Any]]:
        nonlocal rows
        first, rows = read_ahead(iter(rows))
        return (header.record(cells) for _, cells in first)

    columns, numbered = intake.begin(path, header.names, key=key, following=following)
    step = "; if this line is a document, add one above it with the names of the columns"
    columns.refuse_without_text(header.names, header.origin, step)
    id_at = header.names.index(columns.id_in(header.names) or header.names[0])

    def without_totals() -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield the rows but a last one of totals, below rows with an ID."""
        last: tuple[str, Sequence[Any]] | None = None
        has_ids = False
        for row in rows:
            if last is not None:
                yield last
            last = row if has_ids and _is_total(row[1], id_at) else None
            if last is None:
                has_ids = has_ids or not is_blank(row[1][id_at])
                yield row
        if last is not None:
            intake.note(path, "left out the last row, totals without an ID")

    texts = columns.texts_in(header.names)
    missing = 0
    for origin, cells in rows if numbered else without_totals():
        record = header.record(cells)
        for name in texts:
            if isinstance(record.get(name), str) and record[name] in _NO_TEXT:
                record[name] = ""
                missing += 1
        document = intake.document(record, origin, columns, numbered=numbered)
        if document is not None:
            yield document
    if missing:
        count = "1 text cell contains" if missing == 1 else f"{missing:,} text cells contain"
        intake.note(path, f"{count} only NA, NULL or the like, which counts as blank")
    if header.seen - {key}:
        named = ", ".join(sorted(header.seen - {key}))
        intake.note(path, f"columns without a name are called {named}")


def _is_total(cells: Sequence[Any], id_at: int) -> bool:
    """Return whether a row has no ID, but numbers, and at most a word for totals beside them."""
    if not is_blank(cells[id_at]):
        return False
    values = [str(cell) for cell in cells if not is_blank(cell)]
    texts = [value for value in values if not _NUMBER.fullmatch(value)]
    named = len(texts) == 1 and texts[0].strip(" :.").casefold() in _TOTALS
    return len(values) > len(texts) and (named or not texts)


def _is_footer(row: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a row has its first cell alone, of more than two columns, and is no ID."""
    is_alone = len(names) > 2 and bool(row[0].strip()) and not any(map(str.strip, row[1:]))
    return is_alone and (len(row) < len(names) or " " in row[0].strip())


def _list_columns(rows: Iterable[Sequence[str]], names: Sequence[str]) -> list[int]:
    """Return the numbers of the columns whose cells are lists or blank, by the first rows."""
    cells: dict[int, list[str]] = {}
    for row in islice(rows, _AHEAD):
        for at, cell in enumerate(row[: len(names)]):
            if cell.strip():
                cells.setdefault(at, []).append(cell)
    return [at for at in sorted(cells) if all(list_of(cell) is not None for cell in cells[at])]


def _has_row_names(rows: Iterable[list[str]], columns: int) -> bool:
    """Return whether the first rows have one cell more than the header, as R writes row names.

    A last cell that begins with a blank is rather the end of a text with a comma.
    """
    first = list(islice(rows, _AHEAD))
    is_longer = all(len(cells) == columns + 1 and cells[-1].strip() for cells in first)
    return bool(first) and is_longer and not all(cells[-1].startswith(" ") for cells in first)


def has_key(
    path: Path, header: Header, rows: Callable[[], Iterable[Sequence[Any]]], intake: Intake
) -> bool:
    """Return whether the first column of a table has the IDs, as no other is named for them.

    rows  returns the rows below the header
    It has no name, or one of IDs. A column of codes such as INC-1042 is suggested by a note.
    """
    columns, name = intake.columns, header.names[0]
    if columns.id or "id" in columns.unused or columns.id_in(header.names) is not None:
        return False
    if 0 in header.nameless:
        return _is_key(rows())
    if columns.common("id", header.names[1:]):
        return False
    if may_name_ids(name):
        return _is_key(rows())
    is_used = name in (*KNOWN_NAMES, *columns.names())
    is_used = is_used or any(columns.common(role, [name]) for role in COMMON_NAMES)
    first = [str(row[0]).strip() for row in islice(rows(), _AHEAD)]
    if first and not is_used and all(map(_CODE.fullmatch, first)) and _is_key(rows()):
        advice = f"{option('id', name)} uses it"
        intake.note(path, f"column {name!r} is not used as ID; {advice}")
    return False


def _is_key(rows: Iterable[Sequence[Any]]) -> bool:
    """Return whether the first cells of all rows differ, but for totals in the last row.

    Cost: reads all rows.
    """
    seen: set[Any] = set()
    has_ended = False
    for cells in rows:
        if has_ended or cells[0] in seen:
            return False
        has_ended = bool(seen) and _is_total(cells, 0)
        if is_blank(cells[0]) and not has_ended:
            return False
        seen.add(cells[0])
    return bool(seen)


def _rows(
    path: Path, intake: Intake, kind: str, dialect: Dialect
) -> Iterator[tuple[int, list[str], bool]]:
    """Yield (number of its first line, cells, whether it follows a blank row) for other rows."""
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
        is_rule = dialect.delimiter == "|" and _RULE.fullmatch("|".join(cells))
        if is_rule:
            continue
        is_blank_row = not any(map(str.strip, cells))
        if not is_blank_row:
            yield number, cells, follows_blank
        follows_blank = is_blank_row


def _fault(cells: list[str], header: list[str], dialect: Dialect) -> str | None:
    """Return why a row cannot be read; None if it can."""
    for name, cell in zip(header, cells, strict=False) if text_fault("".join(cells)) else ():
        reason = text_fault(cell)
        if reason:
            return f"column {name!r} {reason}: {_shown(cell)}"
    blank = len(cells) > len(header) and not any(map(str.strip, cells[len(header) :]))
    if len(cells) == len(header) or blank:
        return None
    counts = f"{len(cells):,} cells under a header of {len(header):,}"
    if len(cells) < len(header):
        return f"{counts}: none for column {header[len(cells)]!r} after {_shown(cells[-1])}"
    hint = "" if dialect.quote is None else f"; a cell with {dialect.delimiter!r} needs quotes"
    return f"{counts}: no column for {_shown(cells[len(header)])}{hint}"


class Header(NamedTuple):
    """The columns of a table.

    names     of all columns; those without a name have the name `column_` and their number
    origin    where it is, in messages
    nameless  numbers of the columns without a name, from 0
    repeated  names that several columns have, whose values are a list
    seen      set of the nameless columns that had a value, filled by `record`
    """

    names: list[str]
    origin: str
    nameless: list[int]
    repeated: frozenset[str]
    seen: set[str]

    @classmethod
    def of(cls, cells: list[str], origin: str, columns: Columns) -> Self:
        """Return the columns of a header; CollectionError if one is missing or not text."""
        nameless = [at for at, cell in enumerate(cells) if _NAMELESS.fullmatch(cell.strip())]
        names = header_names(
            [f"column_{at + 1}" if at in nameless else cell for at, cell in enumerate(cells)],
            origin,
            columns,
        )
        repeated = frozenset(name for name, count in Counter(names).items() if count > 1)
        return cls(names, origin, nameless, repeated, set())

    def optional_at_end(self, columns: Columns) -> int:
        """Return the number of columns at the end that are metadata, which a row may lack.

        columns  those used, completed
        """
        needed = {*KNOWN_NAMES, *columns.names()}
        return next(
            (at for at, name in enumerate(reversed(self.names)) if name in needed), len(self.names)
        )

    def record(self, cells: Sequence[Any]) -> dict[str, Any]:
        """Return a row of texts or values as a mapping; blank cells under no name are left out."""
        record: dict[str, Any] = dict(zip(self.names, cells, strict=False))
        for at in self.nameless:
            if not is_blank(cells[at]):
                self.seen.add(self.names[at])
            else:
                record.pop(self.names[at], None)
        for name in self.repeated:
            values = [
                cell for header, cell in zip(self.names, cells, strict=False) if header == name
            ]
            values = [value for value in values if not is_blank(value)]
            record[name] = values if len(values) > 1 else (values or [""])[0]
        return record


def is_blank(cell: Any) -> bool:
    """Return whether a cell has no value, or blanks alone."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def header_names(cells: list[str], origin: str, columns: Columns) -> list[str]:
    """Return the names of columns; CollectionError if one is missing, or an ID is repeated."""
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
        if name in names[: number - 1] and name in (columns.id, *ID_NAMES) and name:
            raise CollectionError(
                f"{origin}: columns {names.index(name) + 1:,} and {number:,} have the same name "
                f"{name!r}; rename one in the header"
            )
    missing = [name for name in named if name not in names]
    if missing:
        raise CollectionError(
            f"{origin}: no column {listed(missing)} among {listed(names)}; name columns as the "
            "header does",
            field=f"columns.{columns.role_of(missing[0])}",
        )
    return names


def is_header(cells: list[str], columns: Columns) -> bool:
    """Return whether cells are a header that is sufficient for documents."""
    try:
        names = {name.lower() for name in header_names(cells, "", columns)}
    except CollectionError:
        return False
    # Exact names only, as the last words of a sentence may be `product description`, too.
    common = {"title", *TEXT_NAMES, *COMMON_NAMES["title"], *COMMON_NAMES["text"]}
    return bool(columns.title or columns.text or names & common)


def _shown(cell: str) -> str:
    """Return the start of a cell for a message."""
    printable = cell.encode("utf-8", "replace").decode()
    return repr(printable if len(printable) <= _SHOWN else f"{printable[: _SHOWN - 3]}...")
