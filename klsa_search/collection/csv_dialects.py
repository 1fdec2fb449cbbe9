"""Recognition of the delimiter and quoting of CSV files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.collection.lines import decoded_head, head_bytes
from klsa_search.core.wording import counted

DELIMITERS: Final = ",;\t|^"
"""Delimiters that are recognised."""

SAMPLE: Final = 65_536
"""Bytes at the start of a file that decide its delimiter and quoting."""


MAX_PREAMBLE: Final = 20
"""Lines before the header, at most."""


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
        """Return a strict reader of rows."""
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
            "blanks before quotes" * (self.spaced and self.delimiter != " "),
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
    columns. Blanks divide cells, as R writes them, if no other delimiter gives a header, and all
    rows are of one length. Single quotes are recognised by a header that begins with one, and
    backslashes before quotes if the sample cannot be read without them. A first line `sep=;`, as
    Excel reads it, names the delimiter. Up to `MAX_PREAMBLE` lines of fewer cells may stand before
    the header.
    """
    sample, is_complete = _sample(path, encoding)
    first, _, rest = sample.partition("\n")
    first = first.lower()
    skipped = 0
    delimiters = list(DELIMITERS)
    if first.startswith("sep=") and len(first) == 5 and first[4] in DELIMITERS:
        delimiters, sample, skipped = [first[4:]], rest, 1
    trials = [_Trial(Dialect(trial, skipped=skipped), sample, is_complete) for trial in delimiters]
    if len(trials) > 1 and not is_header(trials[0].header):
        trials = [trial for trial in trials if len(trial.header) > 1] or trials
        trials.sort(key=lambda trial: trial.rank(is_header), reverse=True)
        by_blanks = _Trial(Dialect(" ", skipped=skipped, spaced=True), sample, is_complete)
        if not is_header(trials[0].header) and is_header(by_blanks.header) and by_blanks.is_table:
            return by_blanks.dialect
    best = trials[0]
    if not is_header(best.header):
        best = _after_preamble(best, delimiters, sample, is_complete, is_header) or best
        sample = sample.split("\n", best.dialect.preamble)[-1]
    spaced = _Trial(best.dialect._replace(spaced=True), sample, is_complete)
    if re.search(rf"{re.escape(best.dialect.delimiter)}[ ]+\"", sample) and spaced.fits:
        return spaced.dialect
    if best.header[0].startswith("'"):
        other = _Trial(best.dialect._replace(quote="'"), sample, is_complete)
    elif not best.fits and '\\"' in sample:
        other = _Trial(best.dialect._replace(escape="\\"), sample, is_complete)
    else:
        return best.dialect
    return other.dialect if other.fits else best.dialect


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
    return quoted.dialect if cells and all(map(_QUOTED.fullmatch, cells)) else TSV


_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_QUOTED: Final = re.compile(r'"(?=.*(?:,|"")).*"')


def _after_preamble(
    best: _Trial,
    delimiters: Iterable[str],
    sample: str,
    is_complete: bool,
    is_header: Callable[[list[str]], bool],
) -> _Trial | None:
    """Return the reading of a sample from the line that is its header; None without one."""
    lines = sample.split("\n")
    for number in range(1, min(MAX_PREAMBLE + 1, len(lines))):
        rest = "\n".join(lines[number:])
        for delimiter in delimiters:
            dialect = Dialect(delimiter, skipped=best.dialect.skipped + number, preamble=number)
            trial = _Trial(dialect, rest, is_complete)
            fewer = all(_cells(line, delimiter) < len(trial.header) for line in lines[:number])
            if len(trial.header) > 1 and fewer and is_header(trial.header):
                return trial
    return None


def _cells(line: str, delimiter: str) -> int:
    """Return the number of cells of a line that are not blank."""
    return sum(bool(cell.strip(' "\r')) for cell in line.split(delimiter))


class _Trial:
    """A sample of a file, read in a dialect.

    is_complete  whether the sample is the whole file; otherwise its last row is ignored
    header  cells of the first row
    fits    whether no row is broken, and all have as many cells
    is_table
            whether there are several columns and rows that fit, or have one cell more than the
            header, as R writes the names of rows
    """

    def __init__(self, dialect: Dialect, sample: str, is_complete: bool) -> None:
        self.dialect = dialect
        rows = list(_rows(dialect.reader(io.StringIO(sample, newline="\n"))))
        if not is_complete and len(rows) > 1:
            rows.pop()
        self.header = (rows and rows[0]) or [""]
        matching = sum(row is not None and _fits(row, len(self.header)) for row in rows)
        self.share = matching / len(rows) if rows else 0.0
        self.fits = matching == len(rows)
        sizes = {len(row or ()) for row in rows[1:]}
        columns = len(self.header)
        self.is_table = columns > 1 and len(sizes) == 1 and sizes <= {columns, columns + 1}

    def rank(self, is_header: Callable[[list[str]], bool]) -> tuple[bool, float, int]:
        """Return how well the dialect suits the sample; larger is better."""
        return is_header(self.header), self.share, len(self.header)


def _fits(row: list[str], columns: int) -> bool:
    """Return whether a row has so many cells, but for blank ones at its end."""
    return len(row) == columns or (len(row) > columns and not any(map(str.strip, row[columns:])))


def _rows(reader: Any) -> Iterator[list[str] | None]:
    """Yield the rows that are not empty, None for a broken one."""
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None
        else:
            if cells:
                yield cells
