"""Columns of metadata fields, and masks of matching documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.columns import names_codes
from klsa_search.core.array_types import DocumentMask, Integers, SortedTexts
from klsa_search.core.build_settings import FieldType
from klsa_search.core.lazy import lazy_property
from klsa_search.core.wording import suggestion
from klsa_search.errors import QueryError
from klsa_search.storage.arrays import open_array
from klsa_search.storage.columns.column import (
    FILES,
    NO_TEXTS,
    STARTS,
    TEXT_STARTS,
    TEXTS,
    Column,
    ColumnArrays,
    ColumnPredicate,
    Inclusive,
    joined,
    key_of,
)
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms
from klsa_search.storage.columns.values import NO_VALUE, as_number, coercion
from klsa_search.storage.manifest import FieldsEntry

MAX_BYTES: Final = 2**16
"""Bytes of the distinct texts of a field that `Fields.alike` reads, as those of brands."""

QUICK_BYTES: Final = 2**13
"""Bytes of the texts of all these fields that are read at once: in some 2 ms."""

QUICK_TEXTS: Final = 1_000
"""Distinct texts that `Field.alike` reads at once: in some 2 ms."""


class Field:
    """A filterable metadata field, as a column; immutable, safe to share between threads.

    N is the number of doc ids (`Index.max_doc`); deleted documents have no value.
    The methods return masks of documents, (N,) bool: for `mask=` of a search, combined with
    &, | and ~. A document with several values is in a mask if one of them matches.

    name     name of the field
    type     "keyword": texts; "number": float64; "date": times
    missing  number of documents without a value
    type_mismatches
             number of documents with a value of another type, which counts as missing
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
        columns: Sequence[Column],
        live: DocumentMask | None = None,
        type_mismatches: int = 0,
    ) -> None:
        """Columns of consecutive documents; `live` says which are not deleted, None if all are."""
        self.name = name
        self.type: FieldType = type
        self.type_mismatches = type_mismatches
        self._columns, self._live = tuple(columns), live

    @property
    def missing(self) -> int:
        """Return the number of documents without a value. Cost: that of a mask."""
        documents = len(self) if self._live is None else int(np.count_nonzero(self._live))
        return documents - int(np.count_nonzero(self.present()))

    @property
    def values(self) -> npt.NDArray[Any]:
        """Return codes, numbers or microseconds."""
        return self._arrays.values

    @property
    def starts(self) -> Integers | None:
        """Return the start of the values of each document; None if none has several."""
        return self._arrays.starts

    @property
    def texts(self) -> SortedTexts:
        """Return the texts of a keyword field."""
        return self._arrays.texts

    @property
    def content(self) -> int:
        """Return about how many bytes the distinct texts of a keyword field have; 0 for others."""
        return sum(column.content for column in self._columns)

    @property
    def value_count(self) -> int:
        """Return the number of values that a mask compares: of each document one, or its list."""
        return sum(column.value_count for column in self._columns)

    def __len__(self) -> int:
        """Return N, the number of doc ids."""
        return sum(map(len, self._columns))

    def __repr__(self) -> str:
        """Return name, type and size."""
        lists = " with lists" if self.starts is not None else ""
        return f"<Field {self.name!r}: {self.type}{lists}, {len(self)} doc ids>"

    def present(self) -> DocumentMask:
        """Return a mask of documents with a value. Cost of any mask: 0.2 ms a million values.

        >>> index.fields["year"].present().tolist()
        [True, True, True, True, True, False]
        """
        return self._ranges(Column.present)(0, len(self))

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
        return self._ranges(Column.any_of, listed)(0, len(self))

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
        return self._ranges(Column.between, low, high, inclusive)(0, len(self))

    def containing(self, text: str) -> DocumentMask:
        """Return a mask of documents with a text that contains this, ignoring case.

        QueryError unless it is a keyword field. Cost: 1 ns a byte of the distinct texts.

        >>> index.ids(np.flatnonzero(index.fields["about"].containing("UMP")))
        ['heat', 'pump']
        """
        return self._ranges(Column.containing, text)(0, len(self))

    def alike(self, text: str, live: DocumentMask) -> Counter[str]:
        """Return values of a keyword field that are like this but for case, accents and blanks.

        live  documents that count, with those that are not deleted
        With their numbers of documents, none of which is 0. Cost: 1.5 µs for each distinct text at
        the first call, and a mask for each value.
        """
        texts = [like for column in self._columns for like in column.texts_alike.of(text)]
        counts = {like: self.count(like, live) for like in dict.fromkeys(texts)}
        return +Counter(counts) if counts else Counter()

    def count(self, value: object, live: DocumentMask) -> int:
        """Return the number of live documents with a value. Cost: that of a mask."""
        return int(np.count_nonzero(self.equal(value) & live))

    def _ranges(
        self, predicate: Callable[..., ColumnPredicate], *arguments: object
    ) -> ColumnPredicate:
        """See `ranges_of`."""
        masks = [predicate(column, *arguments) for column in self._columns]
        live = self._live
        if live is None and len(masks) == 1:
            return masks[0]
        ends = np.cumsum([len(column) for column in self._columns]).tolist()

        def joined_mask(first: int, after: int) -> DocumentMask:
            mask = np.empty(after - first, np.bool_)
            for begin, end, mask_of in zip([0, *ends[:-1]], ends, masks, strict=True):
                low, high = max(first, begin), min(after, end)
                if low < high:
                    mask[low - first : high - first] = mask_of(low - begin, high - begin)
            if live is not None:
                mask &= live[first:after]
            return mask

        return joined_mask

    @lazy_property
    def _arrays(self) -> ColumnArrays:
        """The values of all documents; those of several columns are joined at the first use."""
        if self._live is None and len(self._columns) == 1:
            return self._columns[0].arrays
        return joined(self._columns, self.type, self._live)


def ranges_of(
    field: Field, predicate: Callable[..., ColumnPredicate], *arguments: object
) -> ColumnPredicate:
    """Return a predicate of columns, such as `Column.present`, to evaluate by ranges of doc ids.

    arguments  of the predicate after the column
    """
    return field._ranges(predicate, *arguments)


def alike_is_quick(field: Field) -> bool:
    """Return whether the next call of `Field.alike` reads few texts."""
    keywords = (column for column in field._columns if column.type == "keyword")
    return sum(column.texts_alike.unread for column in keywords) <= QUICK_TEXTS


def extended(field: Field, column: Column, live: DocumentMask, type_mismatches: int) -> Field:
    """Return a field of these and later documents, of which some are deleted."""
    return Field(field.name, field.type, [*field._columns, column], live, type_mismatches)


def _of_parts(fields: Sequence[Field]) -> Field:
    """Return a field of all documents from those of consecutive ones."""
    live = None
    if any(field._live is not None for field in fields):
        everything = (np.ones(len(field), np.bool_) for field in fields)
        masks = zip(fields, everything, strict=True)
        live = np.concatenate([full if part._live is None else part._live for part, full in masks])
    columns = [column for field in fields for column in field._columns]
    type_mismatches = sum(field.type_mismatches for field in fields)
    return Field(fields[0].name, fields[0].type, columns, live, type_mismatches)


class Fields(Mapping[str, Field]):
    """The filterable metadata fields, by name; immutable.

    unfilterable  fields that are not filterable, and why
    size          number of doc ids
    forms         in which texts are read as numbers and dates
    declared      names of declared fields
    KeyError, with the reason, for a field that is not filterable.
    """

    def __init__(
        self,
        columns: Mapping[str, Field],
        unfilterable: Mapping[str, str],
        size: int,
        forms: LocalForms = GENERAL,
        declared: Container[str] = (),
    ) -> None:
        self._columns, self._size, self.forms = columns, size, forms
        self._declared = declared
        self.unfilterable: Mapping[str, str] = MappingProxyType(dict(unfilterable))

    @classmethod
    def of_parts(cls, parts: Sequence[Fields]) -> Fields:
        """Return the fields of all documents from those of consecutive ones, which are the same."""
        first = parts[0]
        fields = {name: _of_parts([part[name] for part in parts]) for name in first}
        size = sum(part._size for part in parts)
        return cls(fields, first.unfilterable, size, first.forms, first._declared)

    def __getitem__(self, name: str) -> Field:
        """Return the column of a field."""
        if name not in self._columns and name in self.unfilterable:
            raise KeyError(f"{name!r} is not filterable: {self.unfilterable[name]}")
        return self._columns[name]

    def filterable(self, name: str, parameter: str) -> Field:
        """Return the column of a field; QueryError, naming the parameter, if there is none.

        A field that is blank in all documents has no type yet, and a column without values.
        """
        if name in self._columns:
            return self._columns[name]
        if self.is_blank(name):
            return Field(name, "keyword", [Column.blank(name, "keyword", self._size)])
        if name in self.unfilterable:
            fact = f"field {name!r} is not filterable: {self.unfilterable[name]}"
        elif name in ("title", "text"):
            fact = f"{name!r} is searched, not filterable; write {name}:word in the query"
        else:
            choices = ", ".join(map(repr, self._columns)) or "none"
            near = suggestion(name, self._columns)
            fact = f"unknown field {name!r}; {near}the filterable fields are: {choices}"
        raise QueryError(f"{parameter}: {fact}", field=parameter)

    def with_numbers(self, metadata: Mapping[str, object]) -> Mapping[str, Any]:
        """Return metadata with numeric texts of number fields converted to numbers.

        Not those of detected fields whose names say that they are no quantities, such as telephone
        numbers.
        """
        numbers = {
            name: as_number(metadata[name], coerce)
            for name, coerce in self._number_coercions.items()
            if name in metadata
        }
        return {**metadata, **numbers} if numbers else metadata

    @lazy_property
    def _number_coercions(self) -> dict[str, Callable[[object], object]]:
        return {
            name: coercion("number", declared=True, forms=self.forms, unit=self.forms.unit(name))
            for name, column in self._columns.items()
            if column.type == "number" and (name in self._declared or not names_codes(name))
        }

    def alike(self, text: str) -> Sequence[tuple[str, str]]:
        """Return keyword fields and their values that are like a text: see `Field.alike`.

        Of fields with few distinct texts; also values that no document has any more. Cost: that of
        a dictionary, and at the first call 0.4 µs for each text, or 2 µs if none was compared yet.
        """
        return self._values_alike.get(key_of(text), ())

    @property
    def alike_is_quick(self) -> bool:
        """Return whether `alike` takes some µs, or ms if it is the first call."""
        few = sum(field.content for field in self._few_texts)
        return "_values_alike" in vars(self) or few <= QUICK_BYTES

    def named(self, name: str) -> Sequence[str]:
        """Return the fields with a name, in any case."""
        return self._names.get(name.casefold(), ())

    @lazy_property
    def _names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self._columns:
            names.setdefault(name.casefold(), []).append(name)
        return names

    @lazy_property
    def _few_texts(self) -> list[Field]:
        keywords = (field for field in self._columns.values() if field.type == "keyword")
        return [field for field in keywords if field.content <= MAX_BYTES]

    @lazy_property
    def _values_alike(self) -> dict[str, list[tuple[str, str]]]:
        """Their names and values, by `key_of` the value."""
        values: dict[str, list[tuple[str, str]]] = {}
        for field in self._few_texts:
            keys = (pair for column in field._columns for pair in column.texts_alike.pairs())
            for key, text in dict.fromkeys(keys):
                values.setdefault(key, []).append((field.name, text))
        return values

    def is_blank(self, name: str) -> bool:
        """Return whether documents have a field, but none has a value in it."""
        return self.unfilterable.get(name) == NO_VALUE

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._columns)


def open_fields(
    generation: Path,
    fields: FieldsEntry,
    documents: int,
    forms: LocalForms = GENERAL,
    declared: Container[str] = (),
) -> Fields:
    """Map the columns of a generation into memory. Cost: 20 µs for each of six files."""
    array, ends = cache(partial(open_array, generation)), Counter[str]()

    def following(name: str, size: int) -> npt.NDArray[Any]:
        """Return the part of a file after those that were returned before."""
        ends[name] += size
        return array(name)[ends[name] - size : ends[name]]

    opened: dict[str, Field] = {}
    for name, entry in fields.columns.items():
        starts = following(STARTS, documents + 1) if entry.lists else None
        texts = NO_TEXTS
        if entry.type == "keyword":
            texts = SortedTexts(array(TEXTS), following(TEXT_STARTS, entry.texts + 1))
        values = following(FILES[entry.type], entry.values)
        make = partial(ColumnArrays, values, starts, texts)
        column = Column(name, entry.type, documents, make, len(values), texts.size)
        opened[name] = Field(name, entry.type, [column], type_mismatches=entry.type_mismatches)
    return Fields(opened, fields.others, documents, forms, declared)
