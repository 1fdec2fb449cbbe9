"""Read the columns of metadata fields, and make masks of what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.config import FieldType
from klsa_search.errors import QueryError
from klsa_search.store.arrays import open_array
from klsa_search.store.fields.finding import Finding, Inclusive, Mask
from klsa_search.store.fields.texts import Texts
from klsa_search.store.fields.writing import FILES, STARTS, TEXT_STARTS, TEXTS
from klsa_search.store.manifest import FieldsEntry


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
        starts: Positions | None,
        texts: Texts,
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
    def starts(self) -> Positions | None:
        """Return the start of the values of each document; None if none has several."""
        return self._starts

    @property
    def texts(self) -> Texts:
        """Return the texts of a keyword field."""
        return self._texts

    def __len__(self) -> int:
        """Return N, the number of doc ids."""
        return len(self.values) if self.starts is None else len(self.starts) - 1

    def __repr__(self) -> str:
        """Return name, type and size."""
        lists = " with lists" if self.starts is not None else ""
        return f"<Field {self.name!r}: {self.type}{lists}, {len(self)} positions>"

    def present(self) -> Mask:
        """Return a mask of documents with a value. Cost of any mask: 0.2 ms a million values.

        >>> index.fields["year"].present().tolist()
        [True, True, True, True, True, False]
        """
        return self._finding().present()(0, len(self))

    def equal(self, value: object) -> Mask:
        """Return a mask of documents with this value; a date without time is the whole day, in UTC.

        QueryError for a value of another type.

        >>> index.ids(np.flatnonzero(index.fields["about"].equal("tyres")))
        ['tyre', 'grip']
        """
        return self.any_of([value])

    def any_of(self, values: Iterable[object]) -> Mask:
        """Return a mask of documents with one of these values. See `equal`.

        >>> index.ids(np.flatnonzero(index.fields["about"].any_of(["pumps", "roads"])))
        ['heat', 'pump', 'grip']
        """
        return self._finding().any_of(values)(0, len(self))

    def between(
        self, low: object = None, high: object = None, *, inclusive: Inclusive = "both"
    ) -> Mask:
        """Return a mask of documents with a value from low to high; None leaves an end open.

        inclusive  bounds that are included: "both", "low", "high" or "neither"
        Number and date fields only. A date without time is the whole day, in UTC.
        QueryError for a keyword field, and for bounds of another type.

        >>> index.ids(np.flatnonzero(index.fields["seen"].between("2024-03-01", "2024-03-31")))
        ['pump', 'leak']
        """
        return self._finding().between(low, high, inclusive=inclusive)(0, len(self))

    def containing(self, text: str) -> Mask:
        """Return a mask of documents with a text that contains this, ignoring case.

        QueryError unless it is a keyword field. Cost: proportional to the distinct texts.

        >>> index.ids(np.flatnonzero(index.fields["about"].containing("UMP")))
        ['heat', 'pump']
        """
        return self._finding().containing(text)(0, len(self))

    def _finding(self) -> Finding:
        return Finding(self.name, self.type, self.values, self.starts, self.texts)


def finding(field: Field) -> Finding:
    """What makes the masks of a field part by part."""
    return field._finding()


class Fields(Mapping[str, Field]):
    """The filterable metadata fields, by name; immutable.

    others  fields that are not filterable, and why
    KeyError, with the reason, for a field that is not filterable.
    """

    def __init__(self, columns: Mapping[str, Field], others: Mapping[str, str]) -> None:
        self._columns = columns
        self.others: Mapping[str, str] = MappingProxyType(dict(others))

    def __getitem__(self, name: str) -> Field:
        """Return the column of a field."""
        if name not in self._columns and name in self.others:
            raise KeyError(f"{name!r} is not filterable: {self.others[name]}")
        return self._columns[name]

    def asked_for(self, name: str, parameter: str) -> Field:
        """Return the column of a field named by a parameter; QueryError if there is none."""
        if name in self._columns:
            return self._columns[name]
        if name in self.others:
            fact = f"field {name!r} is not filterable: {self.others[name]}"
        else:
            known = ", ".join(map(repr, self._columns)) or "none"
            fact = f"unknown field {name!r}; the filterable fields are: {known}"
        raise QueryError(f"{parameter}: {fact}", field=parameter)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._columns)


def open_fields(generation: Path, fields: FieldsEntry, documents: int) -> Fields:
    """Map the columns of a generation into memory. Cost: 20 µs a file, of which there are six."""
    kinds = {entry.type for entry in fields.columns.values()}
    arrays = {kind: open_array(generation, FILES[kind]) for kind in sorted(kinds)}
    lists = any(entry.lists for entry in fields.columns.values())
    starts = open_array(generation, STARTS) if lists else None
    content, text_starts = np.zeros(0, np.uint8), np.zeros(1, np.int64)
    none = Texts(content, text_starts)
    if "keyword" in kinds:
        content, text_starts = open_array(generation, TEXTS), open_array(generation, TEXT_STARTS)
    opened: dict[str, Field] = {}
    begins = dict.fromkeys(kinds, 0)
    start = text = 0
    for name, entry in fields.columns.items():
        begin = begins[entry.type]
        begins[entry.type] = begin + entry.values
        own = None
        if entry.lists and starts is not None:
            own, start = starts[start : start + documents + 1], start + documents + 1
        texts = none
        if entry.type == "keyword":
            texts = Texts(content, text_starts[text : text + entry.texts + 1])
            text += entry.texts + 1
        values = arrays[entry.type][begin : begin + entry.values]
        opened[name] = Field(
            name, entry.type, entry.missing, values, own, texts, misfits=entry.misfits
        )
    return Fields(opened, fields.others)
