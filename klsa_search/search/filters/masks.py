"""From filters to masks of the documents that match them.

Values are read as the build reads those of a field; dates may be relative to the present: `now`,
`now-7d`, `now-1M/M`.
"""

from __future__ import annotations

import calendar
import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import numpy as np

from klsa_search.core.array_types import DocumentMask, Numbers
from klsa_search.core.deadlines import check_deadline
from klsa_search.errors import QueryError
from klsa_search.search.engine.mask import Mask
from klsa_search.search.filters.parser import (
    And,
    Condition,
    Filter,
    Not,
    Or,
    Value,
    filter_of_mapping,
    filter_of_text,
    in_postorder,
    invalid,
    parts_of,
)
from klsa_search.storage.columns.column import Column, ColumnPredicate
from klsa_search.storage.columns.columns import Field, Fields, ranges_of
from klsa_search.storage.columns.local_forms import (
    MAY_BE_THOUSANDS,
    Amount,
    LocalForms,
    amount,
    local_date,
    local_number,
    number_in,
)
from klsa_search.storage.columns.values import NUMBER

FilterLike = str | Mapping[str, Any] | Filter
"""A filter as users give it: text, JSON or parsed."""

CACHE_SIZE: Final = 2**25
"""Bytes of cached masks, at most."""
PARSED: Final = 64
"""Filters in text form that are cached as they were parsed."""
_OVERHEAD: Final = 2**11
"""Approximate bytes of a mask besides its bits: the filter and Python objects."""

ID: Final = "id"
"""Field of the IDs of documents in a filter, unless a field of metadata has this name."""

FindDocuments = Callable[[Sequence[str]], Numbers]


def mask_of(
    filter_: Filter,
    fields: Fields,
    size: int,
    find: FindDocuments | None = None,
    before: Mask | None = None,
) -> Mask:
    """Return which of `size` documents match a filter.

    find    returns the doc ids of those IDs that exist, if the filter may name IDs
    before  mask of the first documents, of which some may be deleted since
    A condition matches documents of which any value satisfies it. A document without a value
    matches no condition, but the negation of each; so no document matches conditions on a field
    that is blank in all of them. QueryError for a field that is not filterable, or a value of
    another type. Cost: 0.2 ms per million values for each condition, and 1 ns a byte of the texts
    for CONTAINS. The deadline is checked at each condition.
    """
    now = datetime.now(UTC).replace(microsecond=0, tzinfo=None)

    def predicate(node: Filter) -> ColumnPredicate:
        if isinstance(node, Condition):
            return _predicate(fields, node, find, now)
        parts, is_and = [predicate(part) for part in parts_of(node)], isinstance(node, And)
        combine = np.logical_and if is_and else np.logical_or

        def in_range(first: int, after: int) -> DocumentMask:
            masks = (part(first, after) for part in parts)  # new arrays, so one is overwritten
            joined = next(masks) if parts else np.full(after - first, is_and, np.bool_)
            for mask in masks:
                check_deadline()
                combine(joined, mask, out=joined)
            return np.logical_not(joined, out=joined) if isinstance(node, Not) else joined

        return in_range

    in_postorder(filter_)  # checks its limits, so that recursion ends
    return Mask.from_ranges(predicate(filter_), size, before)


class FilterCache:
    """Caches the masks of recent filters for one state of an index, and for those that follow it.

    Thread-safe: threads that compute a new mask at once get equal masks. A write changes no
    document, so of a mask of an earlier state only the later documents are tested. Searches return
    live documents of a mask only, so it may have deleted ones.
    """

    def __init__(
        self,
        fields: Fields,
        size: int,
        find: FindDocuments | None = None,
        before: FilterCache | None = None,
    ) -> None:
        self.fields, self.size, self._find = fields, size, find
        self._capacity = max(1, CACHE_SIZE // (size // 8 + _OVERHEAD))
        self._version: int = 0 if before is None else before._version + 1
        self._cache: OrderedDict[tuple[str, str], tuple[int, Mask]] = (
            OrderedDict() if before is None else before._cache
        )
        self._lock: threading.Lock = threading.Lock() if before is None else before._lock

    def extended(self) -> FilterCache:
        """Return a copy for the states that follow this one."""
        copy = FilterCache(self.fields, self.size, self._find)
        with self._lock:
            copy._cache.update(self._cache)
        return copy

    def finding(self, find: FindDocuments) -> FilterCache:
        """Return the cache of the same state for filters that name other IDs."""
        return FilterCache(self.fields, self.size, find, self)

    def of(self, filter_: FilterLike) -> Mask:
        """Return the mask of a filter: see `mask_of`. Cost: 1 µs if it is cached."""
        key = key_of(filter_)
        with self._lock:
            version, before = self._cache.get(key, (self._version, None))
            if before is not None:
                self._cache.move_to_end(key)
        if version > self._version:  # of a later state, in which documents may be deleted
            before = None
        if before is not None and before.documents == self.size:
            return before
        mask = mask_of(filter_of(filter_), self.fields, self.size, self._find, before)
        with self._lock:
            if self._cache.get(key, (version,))[0] <= self._version:
                self._cache[key] = self._version, mask
            while len(self._cache) > self._capacity:
                self._cache.popitem(last=False)
        return mask

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Return whether the mask of the filter with this key is cached: see `key_of`."""
        return key in self._cache


def filter_of(filter_: FilterLike) -> Filter:
    """Return a filter, parsed; QueryError."""
    if isinstance(filter_, str):
        return _parsed(filter_)
    if isinstance(filter_, Mapping):
        return filter_of_mapping(filter_)
    if isinstance(filter_, Condition | And | Or | Not):
        return filter_
    raise QueryError(
        f"filter = {filter_!r} is not a filter; give a text or a mapping", field="filter"
    )


_parsed: Final = lru_cache(PARSED)(filter_of_text)


def key_of(filter_: FilterLike) -> tuple[str, str]:
    """Return a cache key that identifies the filter; of one with relative dates, for a second."""
    if isinstance(filter_, str):
        kind, text = "text", filter_
    elif isinstance(filter_, Mapping):
        try:
            kind, text = "json", json.dumps(filter_)
        except (TypeError, ValueError, RecursionError) as error:
            raise invalid(f"not valid JSON ({error}); correct it") from None
    else:
        in_postorder(filter_of(filter_))  # checks limits, so that repr does not recurse too deep
        kind, text = "tree", repr(filter_)
    may_be_relative = "now" in text.replace("\\", "")  # which may escape its letters
    return (kind, f"{text} at {int(time.time())}") if may_be_relative else (kind, text)


def _predicate(
    fields: Fields, condition: Condition, find: FindDocuments | None, now: datetime
) -> ColumnPredicate:
    check_deadline()
    if fields.is_blank(condition.field):  # it has no type that a condition could contradict
        return lambda first, after: np.zeros(after - first, np.bool_)
    if condition.field == ID and ID not in fields and find is not None:
        return _id_predicate(condition, find)
    field = fields.filterable(condition.field, "filter")
    try:
        values = [_typed(field, value, now, fields.forms) for value in condition.values]
        match condition.comparison:
            case "=" | "IN":
                return ranges_of(field, Column.any_of, values)
            case "CONTAINS":
                return ranges_of(field, Column.containing, str(values[0]))
            case "EXISTS":
                return ranges_of(field, Column.present)
            case "TO":
                return ranges_of(field, Column.between, *values)
            case "<":
                return ranges_of(field, Column.between, None, values[0], "neither")
            case "<=":
                return ranges_of(field, Column.between, None, values[0])
            case ">":
                return ranges_of(field, Column.between, values[0], None, "neither")
            case ">=":
                return ranges_of(field, Column.between, values[0], None)
    except QueryError as error:
        raise invalid(error.message) from None


def _id_predicate(condition: Condition, find: FindDocuments) -> ColumnPredicate:
    if condition.comparison not in ("=", "IN"):
        raise invalid(f"{ID!r} with {condition.comparison}: IDs are compared with = and IN only")
    doc_ids = find([str(value) for value in condition.values])

    def in_range(first: int, after: int) -> DocumentMask:
        allowed = np.zeros(after - first, np.bool_)
        allowed[doc_ids[(doc_ids >= first) & (doc_ids < after)] - first] = True
        return allowed

    return in_range


def _typed(field: Field, value: Value, now: datetime, forms: LocalForms) -> Value:
    """Convert a text to a number for a number field, as all values of the text form are texts.

    A number or date in a local form is read as the build reads those of the field. A relative date
    of a date field becomes the date that it is now. QueryError for a number with two meanings.
    """
    if not isinstance(value, str) or field.type == "keyword":
        return value
    text = value.strip()
    if field.type == "date":
        if _MEANT_AS_RELATIVE.match(value):
            return absolute(value, now)
        return local_date(text, forms.dates) or value
    return _number(field.name, text, forms)


def _number(name: str, text: str, forms: LocalForms) -> float | int:
    parsed = Amount(text, "") if NUMBER.fullmatch(text) else amount(text)
    unit = forms.unit(name)
    fact = f"{name!r} is a number field: {text!r}"
    if parsed is None or parsed.unit not in ("", unit):
        raise QueryError(
            f"{fact} is not a number{f' in {unit}' if unit else ''}; write it as in 2500.5",
            field=name,
        )
    number = parsed.number
    two_readings = MAY_BE_THOUSANDS.fullmatch(number) is not None
    if two_readings and forms.decimal == (None if "," in number else "comma"):
        thousands, decimals = re.sub("[.,]", "", number), number.replace(",", ".")
        raise QueryError(
            f"{fact} could be {float(decimals)!r} or {thousands}; write one of these", field=name
        )
    if NUMBER.fullmatch(number):
        # `int` refuses a text of more than 4,300 digits, which is beyond float64, or has zeros.
        is_float = re.search("[.eE]", number) or len(number) > _MAX_DIGITS
        return float(number) if is_float else int(number)
    local = number_in(number, forms.decimal) if forms.decimal else None
    local = local_number(number) if local is None else local
    if local is None:
        raise QueryError(f"{fact} is not a number; write it as in 2500.5", field=name)
    return local


_MAX_DIGITS: Final = 1000
_RELATIVE: Final = re.compile(r"now((?:[+-]\d{1,6}[smhdwMy])*)(?:/([dMy]))?", re.ASCII)
_MEANT_AS_RELATIVE: Final = re.compile(r"now(?![^\W_])")
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
