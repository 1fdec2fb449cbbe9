"""Dates relative to the present in filters: `now`, `now-7d`, `now-1M/M`."""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timedelta
from typing import Final

from klsa_search.errors import QueryError

_RELATIVE: Final = re.compile(r"now((?:[+-]\d{1,6}[smhdwMy])*)(?:/([dMy]))?", re.ASCII)
_STEP: Final = re.compile(r"([+-]\d+)([smhdwMy])")
_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_MONTHS: Final = {"M": 1, "y": 12}
_FORMS: Final = {"d": "%Y-%m-%d", "M": "%Y-%m", "y": "%Y"}


def is_relative(value: object) -> bool:
    """Return whether a value is meant as a relative date."""
    return isinstance(value, str) and re.match(r"now(?![^\W_])", value) is not None


def absolute(value: str, now: datetime) -> str:
    """Return the date or time of a relative date; of `/d`, `/M` and `/y` the day, month or year.

    QueryError if it is none, or beyond the calendar.

    >>> absolute("now-1M", datetime(2024, 3, 31, 9, 30))
    '2024-02-29T09:30:00'
    >>> absolute("now-7d/d", datetime(2024, 3, 5))
    '2024-02-27'
    """
    relative = _RELATIVE.fullmatch(value)
    if relative is None:
        raise QueryError(
            f"{value!r} is not a relative date; write now-7d, with the units s, m, h, d, w, M "
            "(months) and y, or now/d for the day",
            field="filter",
        )
    steps, unit = relative.groups()
    moment = now
    try:
        for count, step in _STEP.findall(steps):
            if step in _UNITS:
                moment += int(count) * _UNITS[step]
            else:
                moment = _after_months(moment, int(count) * _MONTHS[step])
    except (OverflowError, ValueError):
        raise QueryError(
            f"{value!r} is before the year 1 or after 9999; use a date between", field="filter"
        ) from None
    if unit is None:
        return moment.isoformat()
    # Not with strftime alone, which writes years before 1000 without zeros.
    return f"{moment.year:04}" + moment.strftime(_FORMS[unit].removeprefix("%Y"))


def _after_months(moment: datetime, months: int) -> datetime:
    """Return the same day some months later, or the last day of that month."""
    year, month = divmod(12 * moment.year + moment.month - 1 + months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)
