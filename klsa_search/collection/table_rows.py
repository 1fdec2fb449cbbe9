"""Rows below a header, of CSV and spreadsheets alike, as documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection.columns import (
    COMMON_NAMES,
    ID_NAMES,
    TEXT_NAMES,
    USUAL_NAMES,
    Columns,
    listed,
    may_name_ids,
)
from klsa_search.collection.encodings import encoding_advice
from klsa_search.collection.intake import Intake, read_ahead
from klsa_search.collection.json_values import list_of
from klsa_search.collection.model import Document, text_fault
from klsa_search.core.wording import counted, words
from klsa_search.errors import CollectionError

_NAMELESS: Final = re.compile(r"|Unnamed: \d+")  # pandas names them so
_NO_TEXT: Final = frozenset(["NA", "<NA>", "NULL", "NaN", "nan", "None", "\\N", "#N/A"])
"""Cells without a text, as R, pandas, databases and Excel write them."""
_AHEAD: Final = 100  # rows that show which columns have lists, or no blank cells
_MOST_TOTALS: Final = 3  # rows at the end, such as a sum, the tax and both
_TOTALS: Final = words(
    "gesamt gesamtsumme insgesamt łącznie razem somme sub-total subtotal sum suma summa summe "
    "total totaal totale totali totals toplam yhteensä zwischensumme итого всего σύνολο 合計 "
    "合计 小計 小计 總計 总计 합계"
)
"""Words of labels of totals."""
_WITH_TOTALS: Final = words(
    "average avg brutto count general generale général grand gross mean mittelwert mwst net "
    "netto overall soma sub tax vat"
)
"""Words that stand beside those, or alone, but may also be IDs."""
_LEAST_WITH_DIGITS: Final = 20  # IDs with digits that make any label without one a total
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

    A first column without a name, as pandas and R write it, or with one such as `Ticket ID` is the
    ID if no other column is and its values differ. Lines of one cell at the end, after a blank one,
    and totals without an ID, are left out. Text cells such as NA count as blank.
    """
    names = header.names
    key = _key(header, ahead) if _has_key(header, ahead, intake.columns) else None
    table = _table(path, intake, header, key, rows, ahead, fault)

    def following() -> Iterable[Mapping[str, Any]]:
        nonlocal table
        first, table = read_ahead(table)
        return (header.record(cells) for _, cells in first)

    columns, numbered = intake.begin(path, names, key=key, following=following)
    step = "; if this line is a document, add one above it with the names of the columns"
    columns.refuse_without_text(names, header.origin, encoding_advice("".join(names)) or step)
    texts, missing = columns.texts_in(names), 0
    for origin, cells in table:
        record = header.record(cells)
        for name in texts:
            if isinstance(record.get(name), str) and record[name] in _NO_TEXT:
                record[name] = ""
                missing += 1
        document = intake.document(record, origin, columns, numbered=numbered)
        if document is not None:
            yield document
    if missing:
        count = counted(missing, "text cell contains", "text cells contain")
        intake.note(path, f"{count} only NA, NULL or the like, which counts as blank")
    if header.seen - {key}:
        intake.note(
            path, f"columns without a name are called {', '.join(sorted(header.seen - {key}))}"
        )


_Table = Iterator[tuple[str, list[Any]]]
"""Rows with as many cells as the header, and their origins."""


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
    lists = [at for at in _list_columns(ahead(), names) if names[at] not in (key, *used)]
    if lists:
        intake.note(path, f"read the cells of {listed(names[at] for at in lists)} as lists")
    escaped = _escaped_columns(ahead(), len(names))
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

    id_ = key or columns.id_in(names)
    if id_ is not None:
        may_lack = (key or intake.columns.id) == names[0]
        ids = _Ids.of(ahead(), names.index(id_), may_lack=may_lack)
    else:  # then only words of totals in the first column are labels
        ids = _Ids.of(ahead(), 0, may_lack=False)._replace(digits=0)
    below: list[Row] = []  # lines that may stand below the table
    for row in rows:
        is_text = (below or row.follows_blank) and len(row.cells) == 1 and needed > 2
        if is_text or (len(below) < _MOST_TOTALS and ids.is_total(row.cells)):
            below.append(row)
            continue
        for earlier in (*below, row):
            if ids.may_lack and is_blank(earlier.cells[0]):
                ids = _NO_IDS  # rows without an ID are documents here
            yield from checked(earlier)
        below.clear()
    if below:
        left_out = f"{counted(len(below), 'line')} below the table"
        value = next(cell for cell in below[0].cells if not is_blank(cell))
        first = f"line {below[0].number:,}, {shown(value)}"
        intake.note(path, f"left out {left_out}, from {first}")


def _list_columns(rows: Iterable[Sequence[Any]], names: Sequence[str]) -> list[int]:
    """Return the numbers of the columns whose cells are lists or blank, by the first rows."""
    cells: dict[int, list[Any]] = {}
    for row in islice(rows, _AHEAD):
        for at, cell in enumerate(row[: len(names)]):
            if not is_blank(cell):
                cells.setdefault(at, []).append(cell)
    return [
        at
        for at in sorted(cells)
        if all(list_of(cell) is not None for cell in cells[at])
        and not all(map(_IN_BRACES.fullmatch, cells[at]))
    ]


_IN_BRACES: Final = re.compile(r"\{[^,]+\}")  # GUIDs, or arrays of one element
_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "", "t": "\t", "\\": "\\", '"': '"'}
_LINE_END: Final = re.compile(r"[^*+^|(\[]\\n(?=[^\Wa-z]|\\[nr]|<|[*•-] )")  # no regular expression
_JSON: Final = re.compile(r"\{\s*\"|\[\s*[\[{\"']")
_DRIVE: Final = re.compile(r"\b[A-Za-z]:\\")


def _escaped_columns(rows: Iterable[Sequence[Any]], width: int) -> list[int]:
    r"""Return the numbers of the columns with \n for line ends, by the first rows.

    So do WooCommerce, PostgreSQL and MySQL. Such cells have no other backslashes than those of
    escapes, unlike TeX and paths, and no line ends, and are not JSON.
    """
    cells: dict[int, list[str]] = {}
    has_nulls = False  # as databases write them
    for row in islice(rows, _AHEAD):
        for at, cell in enumerate(row[:width]):
            if cell == "\\N":
                has_nulls = True
            elif isinstance(cell, str) and ("\\" in cell or "\n" in cell):
                cells.setdefault(at, []).append(cell)
    return [
        at
        for at, texts in sorted(cells.items())
        if any(("\\n" in text) if has_nulls else _LINE_END.search(text) for text in texts)
        and not any("\n" in text or _JSON.match(text) or _DRIVE.search(text) for text in texts)
        and all(sign in _ESCAPES for text in texts for sign in _ESCAPE.findall(text))
    ]


def _has_key(header: Header, rows: Callable[[], Iterable[Sequence[Any]]], columns: Columns) -> bool:
    """Return whether the first column has the IDs: by its name, and all its values differ.

    Only totals at the end may have none, or a label.
    Cost: reads all rows of a table whose first column has no name, or one of IDs.
    """
    first, *further = header.names
    if columns.id or "id" in columns.unused or columns.id_in(header.names) is not None:
        return False
    if 0 not in header.nameless and (not may_name_ids(first) or columns.common("id", further)):
        return False
    seen: set[Any] = set()
    ids, totals = _Ids.of(rows(), 0, may_lack=True), list[Any]()
    for cells in rows():
        if len(totals) < _MOST_TOTALS and ids.is_total(cells):
            totals.append(cells[0])
            continue
        if len(cells) <= 1:  # a line below the table
            continue
        for value in (*totals, cells[0]):
            if is_blank(value) or value in seen:
                return False
            seen.add(value)
        totals.clear()
    return bool(seen)


def _key(header: Header, rows: Callable[[], Iterable[Sequence[Any]]]) -> str:
    """Return the column of IDs of a table whose first column may be it.

    If that has no name and counts the rows, it is the only other one that is named for IDs and has
    different values in all rows.
    """
    names = header.names
    seen: dict[int, set[Any]] = {
        at: set()
        for at, name in enumerate(names)
        if at not in header.nameless and may_name_ids(name)
    }
    if 0 not in header.nameless or not seen:
        return names[0]
    for number, cells in enumerate(rows()):
        if str(cells[0]).strip() not in (str(number), str(number + 1)):
            return names[0]
        for at in [*seen]:
            if at >= len(cells) or is_blank(cells[at]) or cells[at] in seen[at]:
                del seen[at]
            else:
                seen[at].add(cells[at])
    return names[next(iter(seen))] if len(seen) == 1 else names[0]


class _Ids(NamedTuple):
    """The column of IDs of a table; a row with an unlike ID may hold totals.

    at          its number
    filled      other columns that all of the first rows with an ID fill
    digits      number of these IDs if all have digits, so that a label without is none; else 0
    may_lack    whether a total may have nothing in this column
    """

    at: int
    filled: frozenset[int]
    digits: int
    may_lack: bool

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]], at: int, *, may_lack: bool) -> _Ids:
        """Return the facts of the first rows of a table; the last may be totals."""
        first = [
            cells
            for cells in islice(rows, _AHEAD)
            if len(cells) > max(at, 1) and not is_blank(cells[at])
        ]
        digits = sum(_has_digit(cells[at]) for cells in first)
        for _ in range(min(_MOST_TOTALS, len(first) - 1) if len(first) < _AHEAD else 0):
            if not _is_label(first[-1][at], digits):
                break
            first.pop()
        size = min(map(len, first), default=0)
        filled = (
            other
            for other in range(size)
            if other != at and not any(is_blank(cells[other]) for cells in first)
        )
        digits = len(first) if all(_has_digit(cells[at]) for cells in first) else 0
        return cls(at, frozenset(filled), digits, may_lack)

    def is_total(self, cells: Sequence[Any]) -> bool:
        """Return whether a row has numbers, at most a short label, and a gap in `filled`.

        The label stands in any column, that of the IDs included if it is like no ID.
        """
        id_ = cells[self.at] if self.at < len(cells) else None
        lacks = is_blank(id_)
        if not (self.may_lack if lacks else _is_label(id_, self.digits)):
            return False
        values = [cell for cell in cells if not is_blank(cell)]
        texts = [value for value in values if not _NUMBER.fullmatch(str(value).strip())]
        is_labelled = not texts or (len(texts) == 1 and len(str(texts[0])) <= _SHOWN)
        is_labelled &= lacks or texts == [id_]
        has_gap = any(at >= len(cells) or is_blank(cells[at]) for at in self.filled)
        return is_labelled and len(texts) < len(values) and has_gap


_NO_IDS: Final = _Ids(0, frozenset(), digits=0, may_lack=False)  # nothing is a total


def _is_label(cell: Any, digits: int) -> bool:
    """Return whether the ID of a row is the label of a total.

    digits  number of IDs with digits; 0 if others have none

    >>> _is_label("Grand total:", 0), _is_label("Total Recall", 0), _is_label("Grand", 0)
    (True, False, False)
    >>> _is_label("Grand", 3), _is_label("BX", 3), _is_label("BX", 20)
    (True, False, True)
    """
    words = {word.strip(":.") for word in str(cell).casefold().split()} - {""}
    if words and words <= _TOTALS | _WITH_TOTALS:
        return digits > 0 or not words.isdisjoint(_TOTALS)
    return bool(words) and digits >= _LEAST_WITH_DIGITS and not _has_digit(cell)


def _has_digit(cell: Any) -> bool:
    return any(map(str.isdigit, str(cell)))


def is_blank(cell: Any) -> bool:
    """Return whether a cell has no value, or blanks alone."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def header_names(cells: list[str], origin: str, columns: Columns) -> list[str]:
    """Return the names of columns; CollectionError if one is missing, or an ID is repeated."""
    chosen = columns.names()
    names = [cell.strip() for cell in cells]
    names = [n.lower() if n.lower() in USUAL_NAMES and n not in chosen else n for n in names]
    for number, name in enumerate(names, start=1):
        if reason := text_fault(name):
            raise CollectionError(f"{origin}: the name of column {number:,} {reason}; correct it")
        if name and name in names[: number - 1] and name in (columns.id, *ID_NAMES):
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
    common = {"title", *TEXT_NAMES, *COMMON_NAMES["title"], *COMMON_NAMES["text"]}
    return bool(columns.title or columns.text or names & common)


def shown(cell: Any) -> str:
    """Return the start of a cell for a message."""
    printable = str(cell).encode("utf-8", "replace").decode()
    return repr(printable if len(printable) <= _SHOWN else f"{printable[: _SHOWN - 3]}...")
