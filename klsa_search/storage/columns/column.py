"""A column: the values of a metadata field in consecutive documents, and which of them match."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocumentMask, Integers
from klsa_search.core.build_settings import FieldType
from klsa_search.core.cached import lazy_property
from klsa_search.errors import QueryError
from klsa_search.storage.columns.filter_values import moments, numbers, text
from klsa_search.storage.columns.format import DTYPES, MISSING
from klsa_search.storage.columns.texts import KeywordTexts, texts_of

Inclusive = Literal["both", "low", "high", "neither"]
RangeMask = Callable[[int, int], DocumentMask]
"""Returns the part of a mask for documents from the first up to the second, in new memory."""

NO_TEXTS: Final = KeywordTexts(np.zeros(0, np.uint8), np.zeros(1, np.int64))


class ColumnArrays(NamedTuple):
    """The values of documents: see `Field`."""

    values: npt.NDArray[Any]
    starts: Integers | None = None
    texts: KeywordTexts = NO_TEXTS


class Column:
    """The values of a field in consecutive documents; immutable, safe to share between threads.

    name         of the field
    type         of the field
    documents    their number
    make         returns the arrays; called when they are first read
    value_count  number of values that a mask compares
    content      about how many bytes the distinct texts of a keyword field have; 0 for others
    """

    def __init__(
        self,
        name: str,
        type: FieldType,  # noqa: A002 - as users name it
        documents: int,
        make: Callable[[], ColumnArrays],
        value_count: int,
        content: int = 0,
    ) -> None:
        self.name, self.type, self._documents = name, type, documents
        self.value_count, self.content = value_count, content
        self._make = make

    @classmethod
    def blank(cls, name: str, type: FieldType, documents: int) -> Column:  # noqa: A002 - as above
        """Return a column of documents without a value."""
        values = np.broadcast_to(np.asarray(MISSING[type], DTYPES[type]), documents)
        return cls(name, type, documents, lambda: ColumnArrays(values), 0)

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._documents

    @lazy_property
    def arrays(self) -> ColumnArrays:
        """Return the values."""
        return self._make()

    def present(self) -> RangeMask:
        """See `Field.present`."""
        starts = self.arrays.starts
        if starts is not None:
            return lambda first, after: starts[first + 1 : after + 1] > starts[first:after]
        if self.type == "number":
            return self._mask(lambda values: values == values)  # NaN is missing
        missing = MISSING[self.type]
        return self._mask(lambda values: values != missing)

    def any_of(self, values: Iterable[object]) -> RangeMask:
        """See `Field.any_of`."""
        if isinstance(values, str):
            raise QueryError(
                f"values = {values!r} is a text; give a list of values", field=self.name
            )
        if self.type == "keyword":
            texts = self.arrays.texts
            codes = {texts.code(text(self.name, value)) for value in values}
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

    def between(self, low: object, high: object, inclusive: Inclusive = "both") -> RangeMask:
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

    def containing(self, text: str) -> RangeMask:
        """See `Field.containing`."""
        if self.type != "keyword":
            raise QueryError(
                f"{self.name!r} is a {self.type} field, which cannot contain texts; use its values",
                field=self.name,
            )
        table = np.append(self.arrays.texts.containing(text), False)
        return self._mask(lambda codes: table[codes])

    def _span(self, value: object) -> tuple[float, float]:
        return (numbers if self.type == "number" else moments)(self.name, value)

    def _within(
        self, first: float | None, last: float | None, inclusive: Inclusive = "both"
    ) -> RangeMask:
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

    def _mask(self, match: Callable[[npt.NDArray[Any]], DocumentMask]) -> RangeMask:
        """Return the mask of documents with a matching value."""
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
    counts = np.concatenate(sizes_of_all)
    distinct = sorted({name for of_column in names for name in of_column})
    if type == "keyword":
        codes_of = {name: code for code, name in enumerate(distinct)}
        pieces = [
            np.array([codes_of[name] for name in of_column], np.int32)[piece]
            for of_column, piece in zip(names, pieces, strict=True)
        ]
    values = np.concatenate(pieces).astype(DTYPES[type])
    if (counts > 1).any():
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        return ColumnArrays(values, starts, texts_of(distinct))
    dense = np.full(len(counts), MISSING[type], DTYPES[type])
    dense[counts > 0] = values
    return ColumnArrays(dense, None, texts_of(distinct))
