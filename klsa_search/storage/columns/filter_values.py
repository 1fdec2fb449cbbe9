"""Values in filters as values of columns: texts, ranges of numbers and of moments."""

from __future__ import annotations

import math
import re
from datetime import MAXYEAR, date, datetime, timedelta
from numbers import Integral, Real

from klsa_search.errors import QueryError
from klsa_search.storage.columns.values import TypeMismatch, microseconds
from klsa_search.storage.columns.values import date as date_of
from klsa_search.storage.columns.values import keyword as keyword_of

_DAY = timedelta(days=1) // timedelta(microseconds=1)
_DATE_ONLY = len("2024-03-01")
_PARTIAL_DATE = re.compile(r"(?!0000)(\d{4})(?:-(0[1-9]|1[0-2]))?", re.ASCII)
_LAST = microseconds(datetime.max)


def text(name: str, value: object) -> str:
    """Coerce a string, boolean or integer of a query."""
    if isinstance(value, str):
        return value
    integer = _integer(value)
    try:
        return str(keyword_of(value if integer is None else integer))
    except TypeMismatch:
        raise _refused(name, value, "keyword", "a text") from None


def numbers(name: str, value: object) -> tuple[float, float]:
    """Coerce a number of a query to the least float64 not below it and the largest not above it.

    They are equal if float64 represents it exactly; otherwise the first is larger.
    """
    exact: int | float | None = _integer(value)
    if exact is None:
        if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
            raise _refused(name, value, "number", "a number")
        exact = float(value)
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    if nearest < exact:
        return math.nextafter(nearest, math.inf), nearest
    if nearest > exact:
        return nearest, math.nextafter(nearest, -math.inf)
    return nearest, nearest


def moments(name: str, value: object) -> tuple[int, int]:
    """Coerce a date or time of a query to its first and last microsecond.

    A date without a time is a whole day, one without a day a month, and a year the whole year.
    """
    if isinstance(value, datetime):
        exact = microseconds(value)
        return exact, exact
    integer = _integer(value)
    written = value.isoformat() if isinstance(value, date) else str(integer or value)
    if (partial := _PARTIAL_DATE.fullmatch(written)) is not None:
        year, month = int(partial[1]), int(partial[2] or 0)
        following = (year + month // 12, month % 12 + 1) if month else (year + 1, 1)
        first = microseconds(datetime(year, month or 1, 1))
        # The last day of the calendar has none after it.
        after = microseconds(datetime(*following, 1)) if following[0] <= MAXYEAR else _LAST + 1
        return first, after - 1
    try:
        moment = date_of(written)
    except TypeMismatch:
        moment = None
    if moment is None or integer is not None:
        needed = "a date as in 2024, 2024-03, 2024-03-01, 2024-03-01T09:30:00Z, now/d or now-7d"
        raise _refused(name, value, "date", needed)
    return moment, moment + (_DAY - 1 if len(written) == _DATE_ONLY else 0)


def _integer(value: object) -> int | None:
    """Return an integer of any type as an int; None for anything else."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def _refused(name: str, value: object, kind: str, needed: str) -> QueryError:
    return QueryError(f"{name!r} is a {kind} field: {value!r} is not {needed}", field=name)
