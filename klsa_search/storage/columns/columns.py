"""Columns of metadata fields, and masks of matching documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocumentMask, Integers
from klsa_search.core.build_settings import FieldType
from klsa_search.core.cached import lazy_property
from klsa_search.errors import QueryError
from klsa_search.storage.arrays import open_array
from klsa_search.storage.columns.filter_values import moments, numbers, text
from klsa_search.storage.columns.format import FILES, MISSING, STARTS, TEXT_STARTS, TEXTS
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms
from klsa_search.storage.columns.texts import KeywordTexts
from klsa_search.storage.columns.type_detection import NO_VALUE
from klsa_search.storage.columns.values import DECLARED_LIMITS, as_number, coercion
from klsa_search.storage.manifest import FieldsEntry

Inclusive = Literal["both", "low", "high", "neither"]
RangeMask = Callable[[int, int], DocumentMask]
"""Returns the part of a mask for doc ids from the first up to the second, in new memory."""


class Field:
    """A filterable metadata field, as a column; immutable, safe to share between threads.

    N is the number of doc ids (`Index.max_doc`); deleted documents have no value.
    The methods return masks of documents, (N,) bool: for `mask=` of a search, combined with
    &, | and ~. A document with several values is in a mask if one of them matches.

    name     name of the field
    type     "keyword": texts; "number": float64; "date": times
    missing  number of documents without a value
    misfits  number of documents with a value of another type, which counts as missing
    starts   (N + 1,) start of the values of each document; None if none has several values
    values   (N,), or the values of all documents concatenated, ascending and distinct in each:
             codes of `texts`, numbers, or microseconds since 1970 in UTC. Without `starts` a
             missing value is -1, NaN or the smallest int64
    texts    texts of a keyword field, ascending by code points; empty for other types

    >>> year = index.fields["year"]
    >>> year.type, year.missing, len(year)
    ('number', 1, 6)
    >>> positions, _ = index.rank("coolant", mask=year.between(2020, None))
    >>> index.ids(positions)
    ['leak', 'heat']
    >>> isinstance(year, Field)
    True
    """

    def __init__(
        self,
        name: str,
        type: FieldType,  # noqa: A002 - as users name it
        missing: int,
        values: npt.NDArray[Any],
        starts: Integers | None,
        texts: KeywordTexts,
        misfits: int = 0,
    ) -> None:
        self.name = name
        self.type: FieldType = type
        self._missing = missing
        self._values = values
        self._starts = starts
        self._texts = texts
        self.misfits = misfits

    @property
    def missing(self) -> int:
        """Return the number of documents without a value."""
        return self._missing

    @property
    def values(self) -> npt.NDArray[Any]:
        """Return codes, numbers or microseconds."""
        return self._values

    @property
    def starts(self) -> Integers | None:
        """Return the start of the values of each document; None if none has several."""
        return self._starts

    @property
    def texts(self) -> KeywordTexts:
        """Return the texts of a keyword field."""
        return self._texts

    @property
    def content(self) -> int:
        """Return about how many bytes the distinct texts of a keyword field have; 0 for others."""
        return self._texts.size

    @property
    def value_count(self) -> int:
        """Return the number of values that a mask compares: of each document one, or its list."""
        return len(self._values)

    def __len__(self) -> int:
        """Return N, the number of doc ids."""
        return len(self.values) if self.starts is None else len(self.starts) - 1

    def __repr__(self) -> str:
        """Return name, type and size."""
        lists = " with lists" if self.starts is not None else ""
        return f"<Field {self.name!r}: {self.type}{lists}, {len(self)} positions>"

    def present(self) -> DocumentMask:
        """Return a mask of documents with a value. Cost of any mask: 0.2 ms a million values.

        >>> index.fields["year"].present().tolist()
        [True, True, True, True, True, False]
        """
        return self._ranges(present)(0, len(self))

    def equal(self, value: object) -> DocumentMask:
        """Return a mask of documents with this value; a date without time is the whole day, in UTC.

        QueryError for a value of another type.

        >>> index.ids(np.flatnonzero(index.fields["about"].equal("tyres")))
        ['tyre', 'grip']
        """
        return self.any_of([value])

    def any_of(self, values: Iterable[object]) -> DocumentMask:
        """Return a mask of documents with one of these values. See `equal`.

        >>> index.ids(np.flatnonzero(index.fields["about"].any_of(["pumps", "roads"])))
        ['heat', 'pump', 'grip']
        """
        listed = values if isinstance(values, str) else list(values)
        return self._ranges(any_of, listed)(0, len(self))

    def between(
        self, low: object = None, high: object = None, *, inclusive: Inclusive = "both"
    ) -> DocumentMask:
        """Return a mask of documents with a value from low to high; None leaves an end open.

        inclusive  bounds that are included: "both", "low", "high" or "neither"
        Number and date fields only. A date without time is the whole day, in UTC.
        QueryError for a keyword field, and for bounds of another type.

        >>> index.ids(np.flatnonzero(index.fields["seen"].between("2024-03-01", "2024-03-31")))
        ['pump', 'leak']
        """
        return self._ranges(between, low, high, inclusive)(0, len(self))

    def containing(self, text: str) -> DocumentMask:
        """Return a mask of documents with a text that contains this, ignoring case.

        QueryError unless it is a keyword field. Cost: 1 ns a byte of the distinct texts.

        >>> index.ids(np.flatnonzero(index.fields["about"].containing("UMP")))
        ['heat', 'pump']
        """
        return self._ranges(containing, text)(0, len(self))

    def _ranges(self, predicate: Callable[..., RangeMask], *arguments: object) -> RangeMask:
        return predicate(self, *arguments)


def ranges_of(field: Field, predicate: Callable[..., RangeMask], *arguments: object) -> RangeMask:
    """Return a predicate of a field, such as `present`, to evaluate by ranges of doc ids.

    arguments  of the predicate after the field
    """
    return field._ranges(predicate, *arguments)


def present(field: Field) -> RangeMask:
    """See `Field.present`."""
    starts = field.starts
    if starts is not None:
        return lambda first, after: starts[first + 1 : after + 1] > starts[first:after]
    if field.type == "number":
        return _mask(field, lambda values: values == values)  # NaN is missing
    missing = MISSING[field.type]
    return _mask(field, lambda values: values != missing)


def any_of(field: Field, values: Iterable[object]) -> RangeMask:
    """See `Field.any_of`."""
    if isinstance(values, str):
        raise QueryError(f"values = {values!r} is a text; give a list of values", field=field.name)
    if field.type == "keyword":
        codes = {field.texts.code(text(field.name, value)) for value in values}
        # The last entry is for -1, a missing value.
        table = np.zeros(len(field.texts) + 1, np.bool_)
        table[[code for code in codes if code is not None]] = True
        return _mask(field, lambda codes: table[codes])
    spans = sorted({_span(field, value) for value in values})
    if not spans:
        return lambda first, after: np.zeros(after - first, np.bool_)
    if len(spans) == 1:
        return _within(field, *spans[0])
    begins, ends = np.array(spans, field.values.dtype).T
    # The last end of all spans that begin up to a value decides whether one contains it.
    last = np.maximum.accumulate(ends)

    def in_spans(values: npt.NDArray[Any]) -> DocumentMask:
        begun = np.searchsorted(begins, values, "right") - 1
        return np.asarray((begun >= 0) & (values <= last[begun]))

    return _mask(field, in_spans)


def between(field: Field, low: object, high: object, inclusive: Inclusive = "both") -> RangeMask:
    """See `Field.between`."""
    if field.type == "keyword":
        raise QueryError(
            f"{field.name!r} is a keyword field, which has no ranges; use its values",
            field=field.name,
        )
    first = last = None
    if low is not None:
        # An exclusive lower bound starts after the last equal value.
        first = _span(field, low)[0 if inclusive in ("both", "low") else 1]
    if high is not None:
        last = _span(field, high)[1 if inclusive in ("both", "high") else 0]
    return _within(field, first, last, inclusive)


def containing(field: Field, text: str) -> RangeMask:
    """See `Field.containing`."""
    if field.type != "keyword":
        raise QueryError(
            f"{field.name!r} is a {field.type} field, which cannot contain texts; use its values",
            field=field.name,
        )
    table = np.append(field.texts.containing(text), False)
    return _mask(field, lambda codes: table[codes])


def _span(field: Field, value: object) -> tuple[float, float]:
    coerce = numbers if field.type == "number" else moments
    return coerce(field.name, value)


def _within(
    field: Field, first: float | None, last: float | None, inclusive: Inclusive = "both"
) -> RangeMask:
    """Return the mask of values within bounds, which excludes missing values.

    One comparison a bound: NaN is within none, and a missing date is below all.
    """
    above = np.greater_equal if inclusive in ("both", "low") else np.greater
    below = np.less_equal if inclusive in ("both", "high") else np.less
    if first is None and field.type == "date":
        first, above = MISSING["date"], np.greater
    if first is not None and last is not None:
        low, high = first, last
        return _mask(field, lambda values: above(values, low) & below(values, high))
    if first is not None:
        low = first
        return _mask(field, lambda values: above(values, low))
    if last is not None:
        high = last
        return _mask(field, lambda values: below(values, high))
    return present(field)


def _mask(field: Field, match: Callable[[npt.NDArray[Any]], DocumentMask]) -> RangeMask:
    """Return the mask of documents with a matching value."""
    values, starts = field.values, field.starts
    if starts is None:
        return lambda first, after: match(values[first:after])

    def any_match(first: int, after: int) -> DocumentMask:
        begins = starts[first : after + 1]
        before = np.zeros(begins[-1] - begins[0] + 1, np.int64)
        np.cumsum(match(values[begins[0] : begins[-1]]), out=before[1:])
        up_to = before[begins - begins[0]]
        return np.asarray(up_to[1:] > up_to[:-1])

    return any_match


_NO_TEXTS: Final = KeywordTexts(np.zeros(0, np.uint8), np.zeros(1, np.int64))


class Fields(Mapping[str, Field]):
    """The filterable metadata fields, by name; immutable.

    others  fields that are not filterable, and why
    size    number of doc ids
    forms   in which texts are read as numbers and dates
    KeyError, with the reason, for a field that is not filterable.
    """

    def __init__(
        self,
        columns: Mapping[str, Field],
        others: Mapping[str, str],
        size: int,
        forms: LocalForms = GENERAL,
    ) -> None:
        self._columns, self._size, self.forms = columns, size, forms
        self.others: Mapping[str, str] = MappingProxyType(dict(others))

    def __getitem__(self, name: str) -> Field:
        """Return the column of a field."""
        if name not in self._columns and name in self.others:
            raise KeyError(f"{name!r} is not filterable: {self.others[name]}")
        return self._columns[name]

    def filterable(self, name: str, parameter: str) -> Field:
        """Return the column of a field; QueryError, naming the parameter, if there is none.

        A field that is blank in all documents has no type yet, and a column without values.
        """
        if name in self._columns:
            return self._columns[name]
        if self.is_blank(name):
            values = np.broadcast_to(np.int32(MISSING["keyword"]), self._size)
            return Field(name, "keyword", self._size, values, None, _NO_TEXTS)
        if name in self.others:
            fact = f"field {name!r} is not filterable: {self.others[name]}"
        else:
            choices = ", ".join(map(repr, self._columns)) or "none"
            fact = f"unknown field {name!r}; the filterable fields are: {choices}"
        raise QueryError(f"{parameter}: {fact}", field=parameter)

    def with_numbers(self, metadata: Mapping[str, object]) -> Mapping[str, Any]:
        """Return metadata with numeric texts of number fields converted to numbers."""
        numbers = {
            name: as_number(metadata[name], coerce)
            for name, coerce in self._number_coercions.items()
            if name in metadata
        }
        return {**metadata, **numbers} if numbers else metadata

    @lazy_property
    def _number_coercions(self) -> dict[str, Callable[[object], object]]:
        """What reads the texts of each number field."""
        return {
            name: coercion(
                "number",
                DECLARED_LIMITS,
                declared=True,
                forms=self.forms,
                unit=self.forms.unit(name),
            )
            for name, column in self._columns.items()
            if column.type == "number"
        }

    def is_blank(self, name: str) -> bool:
        """Return whether documents have a field, but none has a value in it."""
        return self.others.get(name) == NO_VALUE

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._columns)


def open_fields(
    generation: Path, fields: FieldsEntry, documents: int, forms: LocalForms = GENERAL
) -> Fields:
    """Map the columns of a generation into memory. Cost: 20 µs for each of six files."""
    kinds = {entry.type for entry in fields.columns.values()}
    arrays = {kind: open_array(generation, FILES[kind]) for kind in sorted(kinds)}
    lists = any(entry.lists for entry in fields.columns.values())
    starts = open_array(generation, STARTS) if lists else None
    if "keyword" in kinds:
        content, text_starts = open_array(generation, TEXTS), open_array(generation, TEXT_STARTS)
    opened: dict[str, Field] = {}
    begins = dict.fromkeys(kinds, 0)
    start = text = 0
    for name, entry in fields.columns.items():
        begin = begins[entry.type]
        begins[entry.type] = begin + entry.values
        document_starts = None
        if entry.lists and starts is not None:
            document_starts, start = starts[start : start + documents + 1], start + documents + 1
        texts = _NO_TEXTS
        if entry.type == "keyword":
            texts = KeywordTexts(content, text_starts[text : text + entry.texts + 1])
            text += entry.texts + 1
        values = arrays[entry.type][begin : begin + entry.values]
        opened[name] = Field(
            name, entry.type, entry.missing, values, document_starts, texts, misfits=entry.misfits
        )
    return Fields(opened, fields.others, documents, forms)
