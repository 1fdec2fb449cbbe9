"""A column: the values of a metadata field in consecutive documents, and which of them match.

    fields_codes.npy        int32    keyword fields: codes of values, in the order of their texts
    fields_numbers.npy      float64  number fields
    fields_dates.npy        int64    date fields: microseconds since 1970 in UTC
    fields_starts.npy       int64    N + 1 for each field with lists: starts of the documents
    fields_texts.npy        uint8    texts of keyword fields in UTF-8, ascending in each field
    fields_text_starts.npy  int64    start of each text

Each file concatenates all fields of its kind in the order of their names, and exists if there is
such a field. A field without lists has one value a document: -1, NaN or the least int64 if it is
missing.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, timedelta
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.unicode import fold_accents
from klsa_search.core.array_types import DocumentMask, Integers, SortedTexts, starts_of
from klsa_search.core.build_settings import FieldType
from klsa_search.core.lazy import lazy_property
from klsa_search.errors import QueryError
from klsa_search.storage.arrays import ArrayWriter
from klsa_search.storage.columns.values import TypeMismatch, microseconds
from klsa_search.storage.columns.values import date as date_of
from klsa_search.storage.columns.values import keyword as keyword_of
from klsa_search.storage.manifest import ColumnEntry

DTYPES: Final[dict[FieldType, np.dtype[Any]]] = {
    "keyword": np.dtype(np.int32),
    "number": np.dtype(np.float64),
    "date": np.dtype(np.int64),
}
"""Storage type of each field type."""

MISSING: Final[dict[FieldType, Any]] = {
    "keyword": -1,
    "number": np.nan,
    "date": np.iinfo(np.int64).min,
}
"""Missing values of fields without lists."""

FILES: Final[dict[FieldType, str]] = {
    "keyword": "fields_codes",
    "number": "fields_numbers",
    "date": "fields_dates",
}
STARTS: Final = "fields_starts"
TEXTS: Final = "fields_texts"
TEXT_STARTS: Final = "fields_text_starts"

Inclusive = Literal["both", "low", "high", "neither"]
ColumnPredicate = Callable[[int, int], DocumentMask]
"""Returns the part of a mask for documents from the first up to the second, in new memory."""

_DAY = timedelta(days=1) // timedelta(microseconds=1)
_DATE_ONLY = len("2024-03-01")
_PARTIAL_DATE = re.compile(r"(?!0000)(\d{4})(?:-(0[1-9]|1[0-2]))?", re.ASCII)
_LAST = microseconds(datetime.max)

NO_TEXTS: Final = SortedTexts(np.zeros(0, np.uint8), np.zeros(1, np.int64))


class TextsAlike:
    """Finds texts that differ in case, accents and blanks alone; thread-safe.

    texts  to which others may be appended
    Cost: 1.5 µs a text at the first call, then that of a dictionary.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts, self._count = texts, 0
        self._by_key: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def of(self, text: str) -> list[str]:
        """Return the texts that are like this one, itself included."""
        with self._lock:
            self._read()
            return [*self._by_key.get(key_of(text), ())]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the `key_of` each text, and the text."""
        with self._lock:
            self._read()
            return [(key, text) for key, texts in self._by_key.items() for text in texts]

    @property
    def unread(self) -> int:
        """Return the number of texts that the next call reads."""
        return len(self._texts) - self._count

    def _read(self) -> None:
        if self._count < len(self._texts):
            for later in self._texts[self._count :]:
                self._by_key.setdefault(key_of(later), []).append(later)
                self._count += 1


def key_of(text: str) -> str:
    """Return a text without differences of case, accents and blanks.

    >>> key_of("Čistá Voda"), key_of("SodaStream")
    ('cistavoda', 'sodastream')
    """
    return "".join(fold_accents(text).casefold().split())


class ColumnArrays(NamedTuple):
    """The values of documents: see `Field`."""

    values: npt.NDArray[Any]
    starts: Integers | None = None
    texts: SortedTexts = NO_TEXTS


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a field in consecutive documents; immutable, safe to share between threads.

    name         of the field
    type         of the field
    documents    their number
    make         returns the arrays; called when they are first read
    value_count  number of values that a mask compares
    content      about how many bytes the distinct texts of a keyword field have; 0 for others
    alike        finds texts of a keyword field, and may have more than these; None makes one
    """

    name: str
    type: FieldType
    documents: int
    make: Callable[[], ColumnArrays]
    value_count: int
    content: int = 0
    alike: TextsAlike | None = None

    @classmethod
    def blank(cls, name: str, type: FieldType, documents: int) -> Column:  # noqa: A002 - as above
        """Return a column of documents without a value."""
        values = np.broadcast_to(np.asarray(MISSING[type], DTYPES[type]), documents)
        return cls(name, type, documents, lambda: ColumnArrays(values), 0)

    def __len__(self) -> int:
        """Return the number of documents."""
        return self.documents

    @lazy_property
    def arrays(self) -> ColumnArrays:
        """Return the values."""
        return self.make()

    @lazy_property
    def texts_alike(self) -> TextsAlike:
        """Return what finds texts of a keyword field that differ in case alone."""
        return self.alike or TextsAlike(self.arrays.texts)

    def present(self) -> ColumnPredicate:
        """See `Field.present`."""
        starts = self.arrays.starts
        if starts is not None:
            return lambda first, after: starts[first + 1 : after + 1] > starts[first:after]
        if self.type == "number":
            return self._mask(lambda values: values == values)  # NaN is missing
        missing = MISSING[self.type]
        return self._mask(lambda values: values != missing)

    def any_of(self, values: Iterable[object]) -> ColumnPredicate:
        """See `Field.any_of`."""
        if isinstance(values, str):
            raise QueryError(
                f"values = {values!r} is a text; give a list of values", field=self.name
            )
        if self.type == "keyword":
            texts = self.arrays.texts
            codes = {texts.find(text_of(self.name, value)) for value in values}
            # The last entry is for -1, a missing value.
            table = np.zeros(len(texts) + 1, np.bool_)
            table[[code for code in codes if code is not None]] = True
            return self._mask(lambda codes: table[codes])
        spans = sorted({self._span(value) for value in values})
        if not spans:
            return lambda first, after: np.zeros(after - first, np.bool_)
        if len(spans) == 1:
            return self._within(*spans[0])
        begins, ends = np.array(spans, self.arrays.values.dtype).T
        # The last end of all spans that begin up to a value decides whether one contains it.
        last = np.maximum.accumulate(ends)

        def in_spans(values: npt.NDArray[Any]) -> DocumentMask:
            begun = np.searchsorted(begins, values, "right") - 1
            return np.asarray((begun >= 0) & (values <= last[begun]))

        return self._mask(in_spans)

    def between(self, low: object, high: object, inclusive: Inclusive = "both") -> ColumnPredicate:
        """See `Field.between`."""
        if self.type == "keyword":
            raise QueryError(
                f"{self.name!r} is a keyword field, which has no ranges; use its values",
                field=self.name,
            )
        first = last = None
        if low is not None:
            # An exclusive lower bound starts after the last equal value.
            first = self._span(low)[0 if inclusive in ("both", "low") else 1]
        if high is not None:
            last = self._span(high)[1 if inclusive in ("both", "high") else 0]
        return self._within(first, last, inclusive)

    def containing(self, text: str) -> ColumnPredicate:
        """See `Field.containing`."""
        if self.type != "keyword":
            raise QueryError(
                f"{self.name!r} is a {self.type} field, which cannot contain texts; use its values",
                field=self.name,
            )
        table = np.append(self.arrays.texts.containing(text), False)
        return self._mask(lambda codes: table[codes])

    def _span(self, value: object) -> tuple[float, float]:
        return (numbers_of if self.type == "number" else moments_of)(self.name, value)

    def _within(
        self, first: float | None, last: float | None, inclusive: Inclusive = "both"
    ) -> ColumnPredicate:
        """Return the mask of values within bounds, which excludes missing values.

        One comparison a bound: NaN is within none, and a missing date is below all.
        """
        above = np.greater_equal if inclusive in ("both", "low") else np.greater
        below = np.less_equal if inclusive in ("both", "high") else np.less
        if first is None and self.type == "date":
            first, above = MISSING["date"], np.greater
        if first is not None and last is not None:
            low, high = first, last
            return self._mask(lambda values: above(values, low) & below(values, high))
        if first is not None:
            low = first
            return self._mask(lambda values: above(values, low))
        if last is not None:
            high = last
            return self._mask(lambda values: below(values, high))
        return self.present()

    def _mask(self, match: Callable[[npt.NDArray[Any]], DocumentMask]) -> ColumnPredicate:
        values, starts, _ = self.arrays
        if starts is None:
            return lambda first, after: match(values[first:after])

        def any_match(first: int, after: int) -> DocumentMask:
            begins = starts[first : after + 1]
            before = np.zeros(begins[-1] - begins[0] + 1, np.int64)
            np.cumsum(match(values[begins[0] : begins[-1]]), out=before[1:])
            up_to = before[begins - begins[0]]
            return np.asarray(up_to[1:] > up_to[:-1])

        return any_match


def joined(columns: Iterable[Column], type: FieldType, live: DocumentMask | None) -> ColumnArrays:  # noqa: A002
    """Return the values of live documents of several columns, one after the other. Cost: O(N)."""
    sizes_of_all, pieces, names, first = [], [], [], 0
    for column in columns:
        values, starts, texts = column.arrays
        size = len(column)
        sizes = np.diff(starts) if starts is not None else column.present()(0, size).astype(int)
        is_live = np.ones(size, np.bool_) if live is None else live[first : first + size]
        values = values if starts is not None else values[sizes > 0]
        pieces.append(values[np.repeat(is_live, sizes)])
        sizes_of_all.append(sizes * is_live)
        if type == "keyword":
            codes, pieces[-1] = np.unique(pieces[-1], return_inverse=True)
            names.append([texts[code] for code in codes.tolist()])
        first += size
    counts = np.concatenate(sizes_of_all).astype(np.int64, copy=False)
    distinct = sorted({name for of_column in names for name in of_column})
    if type == "keyword":
        codes_of = {name: code for code, name in enumerate(distinct)}
        pieces = [
            np.array([codes_of[name] for name in of_column], np.int32)[piece]
            for of_column, piece in zip(names, pieces, strict=True)
        ]
    return packed(type, np.concatenate(pieces), counts, SortedTexts.of(distinct))


def packed(
    type: FieldType,  # noqa: A002 - as above
    values: npt.NDArray[Any],
    counts: Integers,
    texts: SortedTexts,
) -> ColumnArrays:
    """Return the values of documents, of which each has so many: with starts if one has several."""
    values = values.astype(DTYPES[type], copy=False)
    if (counts > 1).any():
        return ColumnArrays(values, starts_of(counts), texts)
    dense = np.full(len(counts), MISSING[type], DTYPES[type])
    dense[counts > 0] = values
    return ColumnArrays(dense, None, texts)


class ColumnFiles:
    """The files of all columns, each created when the first column needs it."""

    def __init__(self, generation: Path, stack: ExitStack) -> None:
        self._generation, self._stack = generation, stack
        self._open: dict[str, ArrayWriter] = {}
        self._text_bytes = 0

    def write(
        self, kind: FieldType, arrays: ColumnArrays, missing: int, type_mismatches: int
    ) -> ColumnEntry:
        """Write a column.

        missing, type_mismatches  as in `ColumnEntry`
        """
        values, starts, texts = arrays
        self._file(FILES[kind], DTYPES[kind]).append(values.tobytes())
        if starts is not None:
            self._file(STARTS, np.dtype(np.int64)).append(starts.tobytes())
        if kind == "keyword":
            self._file(TEXTS, np.dtype(np.uint8)).append(texts.content.tobytes())
            self._file(TEXT_STARTS, np.dtype(np.int64)).append(texts.starts + self._text_bytes)
            self._text_bytes += texts.size
        return ColumnEntry(
            type=kind,
            missing=missing,
            type_mismatches=type_mismatches,
            values=len(values),
            lists=starts is not None,
            texts=len(texts),
        )

    def _file(self, name: str, kind: np.dtype[Any]) -> ArrayWriter:
        if name not in self._open:
            writer = ArrayWriter(self._generation, name, kind)
            self._open[name] = self._stack.enter_context(writer)
        return self._open[name]


def text_of(name: str, value: object) -> str:
    """Coerce a string, boolean or integer of a query."""
    if isinstance(value, str):
        return value
    integer = _integer(value)
    try:
        return str(keyword_of(value if integer is None else integer))
    except TypeMismatch:
        raise _refused(name, value, "keyword", "a text") from None


def numbers_of(name: str, value: object) -> tuple[float, float]:
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


def moments_of(name: str, value: object) -> tuple[int, int]:
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
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def _refused(name: str, value: object, kind: str, needed: str) -> QueryError:
    return QueryError(f"{name!r} is a {kind} field: {value!r} is not {needed}", field=name)
