"""Values as CSV that spreadsheets show and never run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

_FORMULA: Final = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:[.,]\d+)?")


def csv_of(rows: Iterable[Sequence[object]], line_end: str = "\r\n") -> str:
    r"""Return rows as CSV.

    Lists are joined by "; ", and other values that are not texts or numbers are JSON. A text that a
    spreadsheet may take for a formula gets a ' before it, unless it is a number.

    >>> csv_of([["a b", 1.5, None], ["=HYPERLINK()", ["x", 2], {"y": 3}]], line_end="\n")
    'a b,1.5,\n\'=HYPERLINK(),x; 2,"{""y"": 3}"\n'
    """
    return "".join(f"{_line(row)}{line_end}" for row in rows)


def _line(row: Sequence[object]) -> str:
    """Return a row; its line is ended later, as Python 3.11 quotes only what may end lines."""
    out = io.StringIO()
    csv.writer(out).writerow([_cell(value) for value in row])
    return out.getvalue().removesuffix("\r\n")


def _cell(value: object) -> str | float:
    """Return a value as a cell that no spreadsheet reads as a formula."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        value = "; ".join(map(str, value))
    elif not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return f"'{value}" if _FORMULA.match(value) and not _NUMBER.fullmatch(value) else value
