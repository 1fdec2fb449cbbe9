"""CSV and TSV with a header line: their delimiter and quoting, and their rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from klsa_search.collection.encodings import decoded_lines
from klsa_search.collection.files.formats import format_of
from klsa_search.collection.intake import Intake
from klsa_search.collection.lines import decoded_head, head_bytes
from klsa_search.collection.model import Document, TruncatedFile, text_fault
from klsa_search.collection.table_rows import Header, Row, is_header, row_documents, shown
from klsa_search.core.wording import counted

DELIMITERS: Final = ",;\t|^"  # delimiters that are recognised
SAMPLE: Final = 65_536  # bytes at the start of a file that decide its delimiter and quoting


MAX_PREAMBLE: Final = 20  # lines before the header, at most


class Dialect(NamedTuple):
    """How cells are divided and quoted.

    quote    character around quoted cells; None without quoting
    escape   character before a quote within a quoted cell; None if that quote is doubled
    skipped  lines before the header
    preamble those of them that are a title or other text of a report
    spaced   whether blanks follow delimiters, also before quotes
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    skipped: int = 0
    preamble: int = 0
    spaced: bool = False

    def reader(self, texts: Iterable[str]) -> Any:
        r"""Return a strict reader of rows.

        With escapes, MySQL writes a missing value as \N, which would be N.
        """
        if self.escape is not None:
            sign = re.escape(self.delimiter)
            null = re.compile(rf"(?:^|(?<={sign}))\\N(?={sign}|\s*\Z)")
            texts = (null.sub(r"\\\\N", text) for text in texts)
        return csv.reader(
            texts,
            delimiter=self.delimiter,
            quotechar=self.quote,
            quoting=csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL,
            doublequote=self.escape is None,
            escapechar=self.escape,
            skipinitialspace=self.spaced,
            strict=True,
        )

    def differences(self) -> str:
        """Return what differs from RFC 4180, in words; blank if nothing does."""
        differences = [
            f"delimiter {self.delimiter!r}" * (self.delimiter != ","),
            "single quotes" * (self.quote == "'"),
            "quotes escaped by backslashes" * (self.escape is not None),
            "blanks after delimiters" * (self.spaced and self.delimiter != " "),
            f"{counted(self.preamble, 'line')} before the header left out" * bool(self.preamble),
        ]
        return ", ".join(filter(None, differences))


TSV: Final = Dialect("\t", quote=None)


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their endings: LF, CR LF, or CR as old spreadsheets write.

    >>> split_lines("id,text\r1,pump\r\n")
    ['id,text\r', '1,pump\r\n']
    """
    if text.find("\r", 0, -2) < 0:  # at most the ending of the only line
        return [text]
    return _LINE.findall(text)


def _sample(path: Path, encoding: str | None) -> tuple[str, bool]:
    """Return the beginning of a file with lines that end by LF, and whether it is all of it."""
    data = head_bytes(path, SAMPLE)
    sample = decoded_head(data, encoding).replace("\r\n", "\n").replace("\r", "\n")
    return sample, len(data) < SAMPLE


def recognised(
    path: Path, is_header: Callable[[list[str]], bool], encoding: str | None = None
) -> Dialect:
    """Return the dialect of a CSV file, by its first `SAMPLE` bytes.

    is_header  whether cells are a header with the columns of documents
    encoding   if it was named

    Commas are preferred if they divide the first row into a header. Otherwise delimiters are ranked
    by whether they give a header, by the share of rows as long as the first, and by the number of
    columns; then blanks, and up to `MAX_PREAMBLE` lines of fewer cells before a header, are tried.
    """
    sample, is_complete = _sample(path, encoding)
    mark = _MARK.match(sample)
    delimiters, skipped = (mark[1], 1) if mark else (DELIMITERS, 0)
    lines = sample.split("\n")[skipped:]

    def trial(dialect: Dialect) -> _Trial:
        return _Trial(dialect, "\n".join(lines[dialect.preamble :]), is_complete)

    trials = [trial(Dialect(delimiter, skipped=skipped)) for delimiter in delimiters]
    best = trials[0]
    if not is_header(best.header):
        several = [trial for trial in trials if len(trial.header) > 1] or trials
        best = max(several, key=lambda trial: trial.rank(is_header))
    if not is_header(best.header):
        by_blanks = trial(Dialect(" ", skipped=skipped, spaced=True))
        if is_header(by_blanks.header) and by_blanks.is_table:
            return by_blanks.dialect
        for number in range(1, min(MAX_PREAMBLE + 1, len(lines))):
            below = [
                trial(Dialect(delimiter, skipped=skipped + number, preamble=number))
                for delimiter in delimiters
            ]
            headers = (t for t in below if _is_below(lines[:number], t) and is_header(t.header))
            if header := next(headers, None):
                best = header
                break
    dialect, sample = best.dialect, "\n".join(lines[best.dialect.preamble :])
    variants = []
    is_spaced = len(best.header) > 1 and all(cell.startswith(" ") for cell in best.header[1:])
    if is_spaced or re.search(rf"{re.escape(dialect.delimiter)}[ ]+\"", sample):
        variants.append(dialect._replace(spaced=True))
    if best.header[0].startswith("'"):
        variants.append(dialect._replace(quote="'"))
    elif not best.fits and '\\"' in sample:
        variants.append(dialect._replace(escape="\\"))
    return next((variant for variant in variants if trial(variant).fits), dialect)


def _is_below(lines: list[str], trial: _Trial) -> bool:
    """Return whether lines above a header have fewer cells than it, of which there are several."""
    delimiter = trial.dialect.delimiter
    cells = [sum(bool(cell.strip(' "\r')) for cell in ln.split(delimiter)) for ln in lines]
    return len(trial.header) > 1 and max(cells) < len(trial.header)


def recognised_tsv(path: Path, encoding: str | None = None) -> Dialect:
    """Return the dialect of a TSV file, by its first `SAMPLE` bytes: without quoting, or with it.

    Cells are quoted, as by spreadsheets and pandas, if the rows have as many cells only then, or if
    each cell in quotes has a reason for them: a comma, quote or line end.
    """
    sample, is_complete = _sample(path, encoding)
    quoted = _Trial(Dialect("\t"), sample, is_complete)
    if not quoted.fits:
        return TSV
    if not _Trial(TSV, sample, is_complete).fits:
        return quoted.dialect
    cells = [cell for line in sample.splitlines() for cell in line.split("\t") if cell[:1] == '"']
    return quoted.dialect if cells and all(map(_NEEDS_QUOTES.fullmatch, cells)) else TSV


_MARK: Final = re.compile(r"sep=([,;\t|^])\n", re.IGNORECASE)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NEEDS_QUOTES: Final = re.compile(r'"(?=.*(?:,|"")).*"')


class _Trial:
    """A sample of a file, read in a dialect; the last row counts only if the sample is complete.

    header    cells of the first row
    fits      whether no row is broken, and all have as many cells
    is_table  whether there are several columns, and rows with as many cells, or with one more than
              the header, as R writes the names of rows
    """

    def __init__(self, dialect: Dialect, sample: str, is_complete: bool) -> None:
        self.dialect = dialect
        rows = list(_sample_rows(dialect.reader(io.StringIO(sample, newline="\n"))))
        if not is_complete and len(rows) > 1:
            rows.pop()
        self.header = (rows and rows[0]) or [""]
        columns = len(self.header)
        # A row may have blank cells beyond the header.
        matching = sum(len(row) >= columns and not "".join(row[columns:]).strip() for row in rows)
        self.share = matching / len(rows) if rows else 0.0
        self.fits = matching == len(rows)
        sizes = {len(row) for row in rows[1:]}
        self.is_table = columns > 1 and len(sizes) == 1 and sizes <= {columns, columns + 1}

    def rank(self, is_header: Callable[[list[str]], bool]) -> tuple[bool, float, int]:
        """Return how well the dialect suits the sample; larger is better."""
        return is_header(self.header), self.share, len(self.header)


def _sample_rows(reader: Any) -> Iterator[list[str]]:
    """Yield the rows that are not empty, and an empty one for each that is broken."""
    while True:
        try:
            if cells := next(reader):
                yield cells
        except StopIteration:
            return
        except csv.Error:
            yield []


LONGEST_FIELD = 16 * 2**20  # characters; the default of csv, 128 K, is too small for documents
_RULE: Final = re.compile(r"[ +=|:-]*(?:---|===)[ +=|:-]*")  # between the rows of a printed table
_AHEAD: Final = 100  # rows that show whether the header lacks the first column


def documents(path: Path, intake: Intake, kind: Literal["csv", "tsv"]) -> Iterator[Document]:
    """Stream the documents of one file by the rules of docs/reference/import-formats.md.

    Encoding, delimiter and quoting of CSV are recognised; otherwise it follows RFC 4180 strictly.
    TSV has no quoting, unless `recognised_tsv` finds it.
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
        lenient = Intake(intake.options.model_copy(update={"on_error": "skip"}))
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
