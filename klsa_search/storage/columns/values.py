"""Values of metadata fields: their types, and how a column stores them.

keyword  a string, ordered by code points; booleans and integers as in JSON
number   float64, also of a numeric string, as in 2.5, 2,5 or 1.250,50, with the currency or percent
         sign of its field; an integer that float64 cannot represent exactly does not fit
date     microseconds since 1970 in UTC, of ISO 8601 dates and times such as 2024-03-01 or
         2024-03-01T09:30:00+01:00, and of 01.03.2024 and 2024/03/01; without a zone it is UTC, and
         digits beyond the microsecond are dropped

A blank string is a missing value of any type.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from klsa_search.collection.field_paths import flat, holds_objects
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.build_settings import DateOrder, DecimalSign, FieldType
from klsa_search.storage.columns.local_forms import (
    GENERAL,
    UNIT_ALONE,
    YEAR_MAY_BE_FIRST,
    LocalForms,
    amount,
    local_date,
    local_number,
    may_be_two_years,
    number_in,
)

MAX_NAME: Final = 256
"""Characters of the name of a field."""

NESTED: Final = "nested values"
NO_VALUE: Final = "no value"
"""Why a field is not filterable."""


class Limits(NamedTuple):
    """Limits of a keyword column.

    characters  of one text
    texts       number of distinct ones
    """

    characters: int
    texts: int


DETECTED_LIMITS: Final = Limits(256, 100_000)
DECLARED_LIMITS: Final = Limits(1024, 1_000_000)

_PLAIN: Final = frozenset({str, bool, int, float, type(None), list, tuple, dict})
_TEXT: Final = frozenset({str})
_SINGLE: Final = frozenset({str, bool, int})
_SCALAR: Final = _SINGLE | {float, type(None)}
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DATE: Final = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?[0-5]\d)?)?)?",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)

_CODE: Final = re.compile(r"\s*(-?0\d|\+\s*\d)", re.ASCII)
"""Start of a string whose digits are a code: 00123, a telephone number."""

PLACEHOLDERS: Final = frozenset({
    "na", "n/a", "n.a.", "#na", "#n/a", "<na>", "null", "(null)", "nil", "none", "nan", "-nan",
    "#value!", "#ref!", "#div/0!", "#num!", "#name?", "#null!", "1.#ind", "-1.#ind", "1.#qnan",
    "nat", "\\n", "0000-00-00", "0000-00-00 00:00:00", "-", "--", "\N{EN DASH}",
    "\N{EM DASH}", ".", "..", "...", ":", "?",
})  # fmt: skip
"""Strings, in lower case, that conventionally stand for a missing number or date."""


class TypeMismatch(ValueError):
    """A value that is not of its field's type; the message says what it is instead."""


class Code(TypeMismatch):
    """A string of digits that is not a number or date: a code, a long ID, or two years."""


def keyword(value: object) -> str | None:
    """Coerce a string, boolean or integer; None for a blank string, else TypeMismatch."""
    if isinstance(value, str):
        return value if value and not value.isspace() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise TypeMismatch("not a text")


def number(value: object) -> float | None:
    """Coerce a number or numeric string; None for a blank string, else TypeMismatch."""
    if isinstance(value, float):
        return value + 0.0  # -0.0 is 0.0
    if isinstance(value, str):
        digits = value.strip()
        if not digits:
            return None
        if not NUMBER.fullmatch(digits):
            local = local_number(digits)
            if local is not None:
                return local + 0.0
            raise TypeMismatch("not a number")
        parsed = float(digits)
        if math.isinf(parsed):
            raise TypeMismatch("too large for float64")
        if re.search(r"[.eE]", digits):
            return parsed + 0.0
        # Without leading zeros, as `int` refuses a text of more than 4,300 digits.
        return _integer(int(re.sub(r"^([+-]?)0+(?=\d)", r"\1", digits)))
    if isinstance(value, int) and not isinstance(value, bool):
        return _integer(value)
    raise TypeMismatch("not a number")


def detected_number(value: object) -> float | None:
    """Coerce as `number` does; raise Code for a string of digits that is an identifier.

    A leading zero or plus sign is significant in a code, such as a postcode, and so is each digit
    of an ID that is too long for float64.
    """
    if not isinstance(value, str):
        return number(value)
    if _CODE.match(value):
        raise Code("a code with a leading zero or plus sign")
    try:
        return number(value)
    except TypeMismatch as mismatch:
        raise (Code(str(mismatch)) if value.strip().isdecimal() else mismatch) from None


def is_placeholder(value: object) -> bool:
    """Return whether a value is a string that conventionally stands for a missing one."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    return text.casefold() in PLACEHOLDERS or UNIT_ALONE.fullmatch(text) is not None


def _integer(value: int) -> float:
    try:
        parsed = float(value)
    except OverflowError:
        raise TypeMismatch("too large for float64") from None
    if int(parsed) != value:
        raise TypeMismatch("a whole number that float64 cannot represent exactly")
    return parsed


def date(value: object) -> int | None:
    """Coerce a date or time string; None for a blank string, else TypeMismatch."""
    if isinstance(value, str):
        if not value or value.isspace():
            return None
        moment = value if _DATE.fullmatch(value) else local_date(value.strip())
        if moment is not None:
            return _microseconds_of(moment)
        if may_be_two_years(value.strip()):  # 2019-20: so 2001-02 in its field is no month
            raise Code("two years, not a date")
    raise TypeMismatch("not a date as in 2024-03-01 or 2024-03-01T09:30:00Z")


def declared_date(value: object) -> int | None:
    """Coerce as `date` does, and numbers as times since 1970: see `epoch_unit`.

    >>> declared_date(1709285400) == declared_date("1709285400000") == date("2024-03-01T09:30:00Z")
    True
    """
    if isinstance(value, str | int | float) and (unit := epoch_unit(value)):
        return round(float(value) * 10**6 / _EPOCH_UNITS[unit])
    return date(value)


_EPOCH_UNITS: Final = {
    "seconds": 1,
    "milliseconds": 10**3,
    "microseconds": 10**6,
    "nanoseconds": 10**9,
}


def epoch_unit(value: object) -> str:
    """Return the unit in which a number may be a time from 1990 to 2100, or "".

    >>> epoch_unit(1709285400), epoch_unit("1709285400000"), epoch_unit(5)
    ('seconds', 'milliseconds', '')
    """
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        value = float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return ""
    for unit, factor in _EPOCH_UNITS.items():
        if 631_152_000 * factor <= value <= 4_102_444_800 * factor:
            return unit
    return ""


def _microseconds_of(moment: str) -> int:
    """Return the microseconds of a date or time in ISO 8601; TypeMismatch for 2024-02-30.

    A month counts as its first day.
    """
    is_month = len(moment) == len("2024-03")
    try:
        return microseconds(datetime.fromisoformat(f"{moment}-01" if is_month else moment))
    except ValueError as error:
        raise TypeMismatch(f"not a date ({error})") from None


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970 in UTC, the default zone."""
    offset = moment.utcoffset() or timedelta()
    # Not with astimezone, which fails for the first and the last day of the calendar.
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICROSECOND - offset // _MICROSECOND


COERCIONS: Final[Mapping[FieldType, Callable[[object], Any]]] = {
    "keyword": keyword,
    "number": number,
    "date": declared_date,
}
"""Coercion of a value to each type of declared fields."""

_DETECTED: Final[Mapping[FieldType, Callable[[object], Any]]] = {
    **COERCIONS,
    "number": detected_number,
    "date": date,
}


def limits_of(*, declared: bool) -> Limits:
    """Return the limits of a field."""
    return DECLARED_LIMITS if declared else DETECTED_LIMITS


def coercion(
    kind: FieldType, *, declared: bool, forms: LocalForms = GENERAL, unit: str = ""
) -> Callable[[object], Any]:
    """Return the coercion of a column: None for a blank string, TypeMismatch if it does not fit.

    unit  of the numbers in texts
    """
    coerce = (COERCIONS if declared else _DETECTED)[kind]
    if kind == "date":
        return partial(_local_date, forms.dates, coerce) if forms.dates else coerce
    if kind == "number":
        coerce = partial(_local_number, forms.decimal, coerce) if forms.decimal else coerce
        return partial(_in_unit, unit, coerce)
    limits = limits_of(declared=declared)

    def limited(value: object) -> str | None:
        text: str | None = coerce(value)
        if text is not None and len(text) > limits.characters:
            raise TypeMismatch(f"a text of more than {limits.characters:,} characters")
        return text

    return limited


def _in_unit(unit: str, coerce: Callable[[object], Any], value: object) -> Any:
    """Coerce a value whose text has this unit, or is zero; Code if it has another unit."""
    if not isinstance(value, str) or (not unit and value[:1].isdigit() and value[-1:].isdigit()):
        return coerce(value)
    result = amount(value.strip())
    if result is None:
        return coerce(value)
    if result.unit == unit:
        return coerce(result.number.removeprefix("+") if unit else result.number)
    if not unit:
        raise TypeMismatch(f"in {result.unit}")
    if not result.unit and re.fullmatch("0(?:[.,]0+)?", result.number):
        return 0.0
    raise Code(f"in {result.unit or 'no unit'} instead of {unit}")


def _local_date(order: DateOrder | None, coerce: Callable[[object], Any], value: object) -> Any:
    moment = local_date(value.strip(), order) if isinstance(value, str) else None
    return coerce(value) if moment is None else _microseconds_of(moment)


def _local_number(sign: DecimalSign, coerce: Callable[[object], Any], value: object) -> Any:
    is_separated = isinstance(value, str) and ("," in value or "." in value)
    parsed = number_in(str(value).strip(), sign) if is_separated else None
    return coerce(value) if parsed is None else parsed + 0.0


def local_candidate(forms: LocalForms, unit: str) -> Callable[[object], Any]:
    """Return a coercion to dates or numbers in a local form, of which there is one."""

    def not_local(value: object) -> float | None:
        if isinstance(value, str) and "," not in value and "." not in value:
            return detected_number(value)
        raise TypeMismatch("not a number in this form")

    def ordered(value: object) -> Any:
        if isinstance(value, str) and YEAR_MAY_BE_FIRST.fullmatch(value.strip()):
            raise TypeMismatch("a date that may begin or end with its year")
        return _local_date(forms.dates, date, value)

    if forms.decimal:
        return partial(_in_unit, unit, partial(_local_number, forms.decimal, not_local))
    return ordered


def unit_of(values: Iterable[object]) -> str:
    """Return the unit of the first of some values that is not blank or a placeholder."""
    for value in values:
        if isinstance(value, str) and value.strip() and not is_placeholder(value):
            result = amount(value.strip())
            return result.unit if result is not None else ""
    return ""


def first_type(values: list[Any]) -> FieldType | None:
    """Return the type of a field from the values of its first document; None if undecided.

    A string is a date or a keyword; only a build can see that all strings of a field are numbers.
    """
    for value in values:
        if is_placeholder(value) or (isinstance(value, str) and not value.strip()):
            continue
        with suppress(TypeMismatch):
            return type_of(value)
    return None


def as_number(value: Any, coerce: Callable[[object], Any]) -> Any:
    """Return numeric strings, also in a list, as numbers, and anything else unchanged.

    coerce  of their field
    One that is a code, such as 007, stays as it is.
    """
    if isinstance(value, list):
        return [as_number(item, coerce) for item in value]
    if not isinstance(value, str) or re.match(r"\s*-?0\d", value, re.ASCII):
        return value
    try:
        result = coerce(value)
    except TypeMismatch:
        return value
    if result is None:
        return value
    return int(result) if result.is_integer() and not re.search(r"[.,eE]", value) else result


def type_of(value: object) -> FieldType:
    """Return the type of a value; TypeMismatch for a nested one."""
    if isinstance(value, str):
        try:
            return "keyword" if date(value) is None else "date"
        except TypeMismatch:
            return "keyword"
    if isinstance(value, bool):
        return "keyword"
    if isinstance(value, int | float):
        return "number"
    raise TypeMismatch("nested")


def plain(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of metadata as stored in JSON, without vectors.

    Fields of nested objects have dotted names, as in `author.name`.
    """
    metadata = without_vectors(metadata)
    if not _TEXT.issuperset(map(type, metadata)):
        metadata = json.loads(json.dumps(dict(metadata)))
    if _SCALAR.issuperset(map(type, metadata.values())):
        return metadata
    return flat(metadata) if any(map(holds_objects, metadata.values())) else metadata


def elements(value: Any) -> list[Any]:
    """Return the values of a field as a list, without null and NaN."""
    kind = type(value)
    if kind is list or kind is tuple:
        if _SINGLE.issuperset(map(type, value)):
            return list(value)
        if _PLAIN.issuperset(map(type, value)):
            return [element for element in value if element is not None and element == element]
    elif kind in _PLAIN:
        return [] if value is None or value != value else [value]
    # Other types of Python: their form in JSON, which is stored.
    return elements(json.loads(json.dumps(value)))


def flattened(batch: list[object]) -> tuple[list[object], list[int] | None]:
    """Return concatenated values of documents, and the count of each; None if one each."""
    kinds = set(map(type, batch))
    if kinds <= _SINGLE:
        return batch, None
    if kinds <= _SCALAR:
        present = [value is not None and value == value for value in batch]
        return list(compress(batch, present)), None if all(present) else list(map(int, present))
    lists = list(map(elements, batch))
    return [value for values in lists for value in values], list(map(len, lists))
