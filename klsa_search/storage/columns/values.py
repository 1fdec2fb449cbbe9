"""Values of metadata fields: their types and how a column stores them.

keyword  a text, compared by code points; true, false and whole numbers as JSON writes them
number   float64, also of a text that is a number; a whole number that float64 cannot hold exactly
         does not fit
date     microseconds since 1970 in UTC, of ISO 8601 dates and times as in 2024-03-01 or
         2024-03-01T09:30:00+01:00; without a zone it is UTC, and digits beyond the microsecond
         are dropped

A blank text is no value of any type.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import compress
from typing import Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from klsa_search.core.config import FieldType


class Limits(NamedTuple):
    """What a keyword column may hold.

    characters  of one text
    texts       different ones
    """

    characters: int
    texts: int


FOUND: Final = Limits(256, 100_000)
DECLARED: Final = Limits(1024, 1_000_000)

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
"""How a text begins whose digits are a code: 00123, a telephone number."""

PLACEHOLDERS: Final = frozenset(
    {
        "n/a",
        "#n/a",
        "na",
        "nan",
        "null",
        "nil",
        "none",
        "-",
        "--",
        "\N{EN DASH}",
        "\N{EM DASH}",
        "?",
    }
)
"""Texts, in lower case, that people write where a number or a date is missing."""


class TypeMismatch(ValueError):
    """A value that is none of its field's type; the message is what it is instead."""


class Code(TypeMismatch):
    """A text of digits that is not a number: a code, or an id that float64 cannot hold."""


def keyword(value: object) -> str | None:
    """Take a text, true or false, or a whole number; None for a blank text, else TypeMismatch."""
    if isinstance(value, str):
        return value if value and not value.isspace() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise TypeMismatch("not a text")


def number(value: object) -> float | None:
    """Take a number, or a text that is one; None for a blank text, TypeMismatch for any other."""
    if isinstance(value, float):
        return value + 0.0  # -0.0 is 0.0
    if isinstance(value, str):
        digits = value.strip()
        if not digits:
            return None
        if not NUMBER.fullmatch(digits):
            raise TypeMismatch("not a number")
        found = float(digits)
        if math.isinf(found):
            raise TypeMismatch("too large for float64")
        if re.search(r"[.eE]", digits):
            return found + 0.0
        # Without leading zeros, as `int` refuses a text of more than 4,300 digits.
        return _whole(int(re.sub(r"^([+-]?)0+(?=\d)", r"\1", digits)))
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(value)
    raise TypeMismatch("not a number")


def found_number(value: object) -> float | None:
    """Take a number as `number` does; Code for a text of digits that stands for itself.

    A leading zero or plus sign means something in a code, such as a postcode, and nothing in a
    number; so does each digit of an id that is too long for float64.
    """
    if not isinstance(value, str):
        return number(value)
    if _CODE.match(value):
        raise Code("a code with a leading zero or plus sign")
    try:
        return number(value)
    except TypeMismatch as misfit:
        raise (Code(str(misfit)) if value.strip().isdecimal() else misfit) from None


def is_placeholder(value: object) -> bool:
    """Return whether a value is a text that conventionally stands for a missing one."""
    return isinstance(value, str) and value.strip().casefold() in PLACEHOLDERS


def _whole(value: int) -> float:
    try:
        found = float(value)
    except OverflowError:
        raise TypeMismatch("too large for float64") from None
    if int(found) != value:
        raise TypeMismatch("a whole number that float64 cannot represent exactly")
    return found


def date(value: object) -> int | None:
    """Take a text that is a date or time; None for a blank one, TypeMismatch for any other."""
    if isinstance(value, str):
        if not value or value.isspace():
            return None
        if _DATE.fullmatch(value):
            try:
                return microseconds(datetime.fromisoformat(value))
            except ValueError as error:
                raise TypeMismatch(f"not a date ({error})") from None
    raise TypeMismatch("not a date as in 2024-03-01 or 2024-03-01T09:30:00Z")


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 in UTC, which is assumed without a zone."""
    offset = moment.utcoffset() or timedelta()
    # Not by way of a moment in UTC, which for the first and last day of all years there is not.
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICROSECOND - offset // _MICROSECOND


TAKE: Final[Mapping[FieldType, Callable[[object], Any]]] = {
    "keyword": keyword,
    "number": number,
    "date": date,
}
"""How a value of each type is taken where the field was declared."""

_FOUND: Final[Mapping[FieldType, Callable[[object], Any]]] = {**TAKE, "number": found_number}


def taker(kind: FieldType, limits: Limits, *, declared: bool) -> Callable[[object], Any]:
    """Return what takes a value of a column: None for a blank text, TypeMismatch for one of no fit."""
    take = (TAKE if declared else _FOUND)[kind]
    if kind != "keyword":
        return take

    def within(value: object) -> str | None:
        text: str | None = take(value)
        if text is not None and len(text) > limits.characters:
            raise TypeMismatch(f"a text of more than {limits.characters:,} characters")
        return text

    return within


def first_type(values: list[Any]) -> FieldType | None:
    """Return the type of a field by the values of its first document; None if they say nothing.

    A text is a date or a keyword: that all texts of a field are numbers only a build can see.
    """
    for value in values:
        if is_placeholder(value) or (isinstance(value, str) and not value.strip()):
            continue
        with suppress(TypeMismatch):
            return type_of(value)
    return None


def as_number(value: Any) -> Any:
    """Return the number that a text, or each text of a list, of a number field stands for.

    What is no such text is returned as it is.
    """
    if isinstance(value, list):
        return [as_number(each) for each in value]
    if not isinstance(value, str):
        return value
    try:
        found = number(value)
    except TypeMismatch:
        return value
    if found is None:
        return value
    return int(found) if found.is_integer() and not re.search(r"[.eE]", value) else found


def type_of(value: object) -> FieldType:
    """Find the type of a value; TypeMismatch for what is nested."""
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
    """Give metadata the names it has where documents are kept, as JSON."""
    if _TEXT.issuperset(map(type, metadata)):
        return metadata
    found: dict[str, Any] = json.loads(json.dumps(dict(metadata)))
    return found


def elements(value: Any) -> list[Any]:
    """Values that a field of a document holds: those of a list, without null and NaN."""
    kind = type(value)
    if kind is list or kind is tuple:
        if _SINGLE.issuperset(map(type, value)):
            return list(value)
        if _PLAIN.issuperset(map(type, value)):
            return [each for each in value if each is not None and each == each]
    elif kind in _PLAIN:
        return [] if value is None or value != value else [value]
    # Made in Python of other types: what the documents keep of it.
    return elements(json.loads(json.dumps(value)))


def flattened(batch: list[object]) -> tuple[list[object], list[int] | None]:
    """Values of some documents end to end, and how many each has; None for one each."""
    kinds = set(map(type, batch))
    if kinds <= _SINGLE:
        return batch, None
    if kinds <= _SCALAR:
        held = [value is not None and value == value for value in batch]
        return list(compress(batch, held)), None if all(held) else list(map(int, held))
    each = list(map(elements, batch))
    return [value for values in each for value in values], list(map(len, each))


class KeywordTexts(Sequence[str]):
    """The different texts of a keyword field, ascending by code points; read as they are asked for.

    content  uint8, texts in UTF-8
    starts   where each begins, and where the last ends
    """

    def __init__(self, content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        self._content, self._starts = content, starts

    def __len__(self) -> int:
        """How many there are."""
        return len(self._starts) - 1

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        """Text of a code."""
        if isinstance(code, slice):
            return [self[each] for each in range(*code.indices(len(self)))]
        return self._written(range(len(self))[code]).decode()

    def code(self, text: str) -> int | None:
        """Code of a text; None if no document holds it. Cost: the logarithm of their number."""
        # Bytes of UTF-8 are in the order of code points.
        written = text.encode(errors="surrogatepass")
        code = bisect_left(range(len(self)), written, key=self._written)
        return code if code < len(self) and self._written(code) == written else None

    def _written(self, code: int) -> bytes:
        return self._content[self._starts[code] : self._starts[code + 1]].tobytes()


def texts_of(texts: Sequence[str]) -> KeywordTexts:
    """Texts, which are ascending by code points, as a column has them."""
    written = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, written)], dtype=np.int64)
    return KeywordTexts(np.frombuffer(b"".join(written), np.uint8), starts)
