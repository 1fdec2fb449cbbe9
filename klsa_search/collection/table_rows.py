"""Rows below a header, of CSV and spreadsheets alike, as documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection.columns import (
    COMMON_NAMES,
    ID_NAMES,
    USUAL_NAMES,
    Columns,
    listed,
    may_name_ids,
)
from klsa_search.collection.intake import Intake
from klsa_search.collection.json_values import list_of
from klsa_search.collection.model import Document, text_fault
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError

_NAMELESS: Final = re.compile(r"|Unnamed: \d+")  # pandas names them so
_AHEAD: Final = 100  # rows that show which columns have lists, or no blank cells
_MOST_TOTALS: Final = 3  # rows at the end, such as a sum, the tax and both
_NUMBER: Final = re.compile(
    r"(?:[€$£¥]|[A-Z]{3})?\s*[-+]?\d{1,3}(?:[.,'\s]?\d{3})*(?:[.,]\d+)?\s*(?:[€$£¥%]|[A-Z]{3})?"
)
_SHOWN: Final = 40  # characters of a cell in a message


class Row(NamedTuple):
    """A row that is not blank: the number of its first line, and whether a blank one precedes."""

    number: int
    cells: list[Any]
    follows_blank: bool


class Header:
    """The columns of a table; CollectionError if one is missing or not text.

    names     of all columns; those without a name have the name `column_` and their number
    origin    where it is, in messages
    nameless  numbers of the columns without a name, from 0
    seen      nameless columns that had a value, by `record`
    """

    def __init__(self, cells: list[str], origin: str, columns: Columns) -> None:
        self.nameless = [at for at, cell in enumerate(cells) if _NAMELESS.fullmatch(cell.strip())]
        cells = [f"column_{at + 1}" if at in self.nameless else c for at, c in enumerate(cells)]
        self.names = header_names(cells, origin, columns)
        self.origin = origin
        self.seen: set[str] = set()
        self._repeated = [name for name, count in Counter(self.names).items() if count > 1]

    def record(self, cells: Sequence[Any]) -> dict[str, Any]:
        """Return a row as a mapping; blank cells under no name are left out.

        Columns with the same name have a list of their values.
        """
        record: dict[str, Any] = dict(zip(self.names, cells, strict=False))
        for at in self.nameless:
            if not is_blank(cells[at]):
                self.seen.add(self.names[at])
            else:
                record.pop(self.names[at], None)
        for name in self._repeated:
            pairs = zip(self.names, cells, strict=False)
            values = [cell for header, cell in pairs if header == name and not is_blank(cell)]
            record[name] = values if len(values) > 1 else (values or [""])[0]
        return record


def row_documents(
    path: Path,
    intake: Intake,
    header: Header,
    rows: Iterator[Row],
    ahead: Callable[[], Iterable[Sequence[Any]]],
    fault: Callable[[list[Any]], str | None] = lambda cells: None,
) -> Iterator[Document]:
    """Yield the documents of the rows below a header.

    ahead  returns the cells of the rows that have no faults, read once more
    fault  returns why the cells of a row cannot be read; None if they can
    """
    key = _key(header, ahead, intake.columns)
    table = _table(path, intake, header, key, rows, ahead, fault)
    yield from intake.documents(
        path,
        ((origin, header.record(cells)) for origin, cells in table),
        names=header.names,
        key=key,
        needs_text=True,
        origin=header.origin,
        advice="; if this line is a document, add one above it with the names of the columns",
    )
    if nameless := sorted(header.seen - {key}):
        intake.note(path, f"columns without a name are called {', '.join(nameless)}")


_Table = Iterator[tuple[str, list[Any]]]  # rows with as many cells as the header, and their origins


def _table(
    path: Path,
    intake: Intake,
    header: Header,
    key: str | None,
    rows: Iterator[Row],
    ahead: Callable[[], Iterable[Sequence[Any]]],
    fault: Callable[[list[Any]], str | None],
) -> _Table:
    """Yield the rows of the table, with lists as such, but for lines and totals below it."""
    names = header.names
    columns = intake.columns.completed(names, header.origin)
    used = columns.filled(names).names()
    needed = max(
        (at for at, n in enumerate(names, 1) if n in (*USUAL_NAMES, *columns.names())), default=0
    )
    first = list(islice(ahead(), _AHEAD))
    cells_of = {
        at: [cells[at] for cells in first if at < len(cells) and not is_blank(cells[at])]
        for at in range(len(names))
    }
    lists = [
        at for at, name in enumerate(names) if name not in (key, *used) and _are_lists(cells_of[at])
    ]
    if lists:
        intake.note(path, f"read the cells of {listed(names[at] for at in lists)} as lists")
    has_nulls = any("\\N" in cells for cells in cells_of.values())  # as databases write them
    escaped = [at for at, cells in cells_of.items() if _are_escaped(cells, has_nulls)]
    if escaped:
        fact = f"read \\n in the cells of {listed(names[at] for at in escaped)} as line ends"
        intake.note(path, fact)

    def checked(row: Row) -> _Table:
        cells = row.cells
        if needed <= len(cells) < len(names):
            intake.note(path, "blank cells for columns that rows end before")
            cells += [""] * (len(names) - len(cells))
        if reason := fault(cells):
            intake.refuse(f"{path}:{row.number}: {reason}")
            return
        for at in lists:
            value = list_of(cells[at])
            cells[at] = cells[at] if value is None else value
        for at in escaped:
            if isinstance(cells[at], str):
                cells[at] = _ESCAPE.sub(lambda sign: _ESCAPES.get(sign[1], sign[0]), cells[at])
        yield f"{path}:{row.number}", cells

    # Totals have no ID, which only a first column that is chosen for IDs may lack.
    filled = _filled_columns(first) if (key or intake.columns.id) == names[0] else frozenset()
    below: list[Row] = []  # lines that may stand below the table
    for row in rows:
        is_text = (below or row.follows_blank) and len(row.cells) == 1 and needed > 2
        if is_text or (len(below) < _MOST_TOTALS and _is_total(row.cells, filled)):
            below.append(row)
            continue
        for earlier in (*below, row):
            if is_blank(earlier.cells[0]):
                filled = frozenset()  # rows without an ID are documents here
            yield from checked(earlier)
        below.clear()
    if below:
        left_out = f"{counted(len(below), 'line')} below the table"
        value = next(cell for cell in below[0].cells if not is_blank(cell))
        at_line = f"line {below[0].number:,}, {shown(value)}"
        intake.note(path, f"left out {left_out}, from {at_line}")


def _are_lists(cells: Sequence[Any]) -> bool:
    return (
        bool(cells)
        and all(list_of(cell) is not None for cell in cells)
        and not all(map(_IN_BRACES.fullmatch, cells))
    )


_IN_BRACES: Final = re.compile(r"\{[^,]+\}")  # GUIDs, or arrays of one element
_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "", "t": "\t", "\\": "\\", '"': '"'}
_LINE_END: Final = re.compile(r"[^*+^|(\[]\\n(?=[^\Wa-z]|\\[nr]|<|[*•-] )")  # no regular expression
_JSON: Final = re.compile(r"\{\s*\"|\[\s*[\[{\"']")
_DRIVE: Final = re.compile(r"\b[A-Za-z]:\\")


def _are_escaped(cells: Sequence[Any], has_nulls: bool) -> bool:
    r"""Return whether cells have \n for line ends, as of WooCommerce, PostgreSQL and MySQL.

    Such cells have no other backslashes than those of escapes, unlike TeX and paths, and no line
    ends, and are not JSON.
    """
    texts = [text for text in cells if isinstance(text, str) and text != "\\N"]
    texts = [text for text in texts if "\\" in text or "\n" in text]
    return (
        any(("\\n" in text) if has_nulls else _LINE_END.search(text) for text in texts)
        and not any("\n" in text or _JSON.match(text) or _DRIVE.search(text) for text in texts)
        and all(sign in _ESCAPES for text in texts for sign in _ESCAPE.findall(text))
    )


def _key(
    header: Header, rows: Callable[[], Iterable[Sequence[Any]]], columns: Columns
) -> str | None:
    """Return the column of IDs, recognised by its name and values that all differ; None without.

    It is the first, where only totals at the end may have none. If that has no name and counts the
    rows, it is the only other one that is named for IDs and has different values in all rows.
    Cost: reads all rows of a table whose first column has no name, or one of IDs.
    """
    names, is_nameless = header.names, 0 in header.nameless
    if columns.id or "id" in columns.unused or columns.id_in(names) is not None:
        return None
    if not is_nameless and (not may_name_ids(names[0]) or columns.common("id", names[1:])):
        return None
    seen: set[Any] = set()
    values_of: dict[int, set[Any]] = {
        at: set()
        for at, name in enumerate(names)
        if is_nameless and at not in header.nameless and may_name_ids(name)
    }
    filled, totals = _filled_columns(islice(rows(), _AHEAD)), 0
    for number, cells in enumerate(rows()):
        if not cells or str(cells[0]).strip() not in (str(number), str(number + 1)):
            values_of.clear()
        for at in [*values_of]:
            if at >= len(cells) or is_blank(cells[at]) or cells[at] in values_of[at]:
                del values_of[at]
            else:
                values_of[at].add(cells[at])
        if _is_total(cells, filled) and totals < _MOST_TOTALS:
            totals += 1
        elif len(cells) > 1:  # not a line below the table
            if totals or is_blank(cells[0]) or cells[0] in seen:
                return None
            seen.add(cells[0])
    if not seen:
        return None
    return names[next(iter(values_of))] if len(values_of) == 1 else names[0]


def _filled_columns(rows: Iterable[Sequence[Any]]) -> frozenset[int]:
    """Return the numbers of the columns that all of the first rows with an ID in column 0 fill."""
    first = [cells for cells in rows if len(cells) > 1 and not is_blank(cells[0])]
    size = min(map(len, first), default=0)
    return frozenset(at for at in range(size) if not any(is_blank(cells[at]) for cells in first))


def _is_total(cells: Sequence[Any], filled: frozenset[int]) -> bool:
    """Return whether a row has numbers, at most a short label, no ID, and a gap beside it."""
    values = [cell for cell in cells if not is_blank(cell)]
    texts = [str(value) for value in values if not _NUMBER.fullmatch(str(value).strip())]
    gaps = [at for at in filled if at >= len(cells) or is_blank(cells[at])]
    is_labelled = len(texts) < len(values) and len(texts) <= 1 and len("".join(texts)) <= _SHOWN
    return is_labelled and is_blank(cells[0]) and len(gaps) > 1


def is_blank(cell: Any) -> bool:
    """Return whether a cell has no value, or blanks alone."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def header_names(cells: list[str], origin: str, columns: Columns) -> list[str]:
    """Return the names of columns; CollectionError if one is missing, or an ID is repeated."""
    chosen = columns.names()
    identifiers = (columns.id, *ID_NAMES)
    names = [cell.strip() for cell in cells]
    names = [n.lower() if n.lower() in USUAL_NAMES and n not in chosen else n for n in names]
    for number, name in enumerate(names, start=1):
        if reason := text_fault(name):
            raise CollectionError(f"{origin}: the name of column {number:,} {reason}; correct it")
        if name and name in identifiers and name in names[: number - 1]:
            raise CollectionError(
                f"{origin}: columns {names.index(name) + 1:,} and {number:,} have the same name "
                f"{name!r}; rename one in the header"
            )
    missing = [name for name in chosen if name not in names]
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
    common = COMMON_NAMES["title"] | COMMON_NAMES["text"]
    return bool(columns.title or columns.text or names & common)


def shown(cell: Any) -> str:
    """Return the start of a cell for a message."""
    printable = str(cell).encode("utf-8", "replace").decode()
    return repr(printable if len(printable) <= _SHOWN else f"{printable[: _SHOWN - 3]}...")
