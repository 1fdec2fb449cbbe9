"""Values that a column is asked for, as the numbers it keeps."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from numbers import Integral, Real

from klsa_search.errors import QueryError
from klsa_search.store.fields.values import Misfit, microseconds
from klsa_search.store.fields.values import date as date_of
from klsa_search.store.fields.values import keyword as keyword_of

_DAY = timedelta(days=1) // timedelta(microseconds=1)
_DATE_ONLY = len("2024-03-01")


def text(name: str, value: object) -> str:
    """Take a text, true or false, or a whole number."""
    if isinstance(value, str):
        return value
    whole = _whole(value)
    try:
        return str(keyword_of(value if whole is None else whole))
    except Misfit:
        raise _refused(name, value, "keyword", "a text") from None


def numbers(name: str, value: object) -> tuple[float, float]:
    """Take a number: the least float64 that is not below it, and the largest that is not above.

    They are one where float64 holds it; of a whole number that it does not, the first is larger.
    """
    exact: int | float | None = _whole(value)
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
    """Take a date or time: its first and its last microsecond, those of the whole day of a date."""
    if isinstance(value, datetime):
        moment = microseconds(value)
        return moment, moment
    written = value.isoformat() if isinstance(value, date) else value
    try:
        first = date_of(written)
    except Misfit:
        first = None
    if first is None:
        raise _refused(name, value, "date", "a date as in 2024-03-01 or 2024-03-01T09:30:00Z")
    return first, first + (_DAY - 1 if len(str(written)) == _DATE_ONLY else 0)


def _whole(value: object) -> int | None:
    """Give a whole number of whatever type as an int; None for anything else."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def _refused(name: str, value: object, kind: str, needed: str) -> QueryError:
    return QueryError(f"{name!r} is a {kind} field: {value!r} is not {needed}", field=name)
