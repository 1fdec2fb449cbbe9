"""Columns of documents that were written after the build.

A field keeps its type: the one that the build found or that was declared, or, of a field that no
document of the build has, that of the first value in the order of the log. A value that does not
fit counts as missing, and its document as one of the field's misfits. A field that the build met
without making it a column stays none. So the fields follow from the build and the log alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.array_types import Positions
from klsa_search.core.cached import lazy_property
from klsa_search.core.config import MAX_FIELDS, FieldType
from klsa_search.core.selection import GrowableArray
from klsa_search.storage.columns.builder import KEPT, MISSING, NAME, NESTED, NO_VALUE, in_order
from klsa_search.storage.columns.columns import (
    ColumnPredicate,
    Field,
    Fields,
    Finder,
    Inclusive,
    Mask,
    finding,
)
from klsa_search.storage.columns.values import (
    DECLARED,
    FOUND,
    KeywordTexts,
    TypeMismatch,
    elements,
    first_type,
    plain,
    taker,
    texts_of,
)
from klsa_search.storage.manifest import FieldsEntry

_Parts = Sequence[tuple[int, Field]]


class DeltaColumns:
    """The fields of later documents. One thread appends; what was given out stays as it is.

    built     columns of the build
    entry     what the manifest says of its fields
    declared  fields that were declared, with their types
    first     position of the first later document
    Memory: 20 bytes a value, and the texts.
    """

    def __init__(
        self,
        built: Fields,
        entry: FieldsEntry,
        declared: Mapping[str, FieldType | None],
        first: int,
    ) -> None:
        self._first, self._documents = first, 0
        # A name that was not looked at may be one that documents of the build have.
        self._room = 0 if entry.more else MAX_FIELDS - len(entry.columns) - len(entry.others)
        self._others = {n: why for n, why in entry.others.items() if why != NO_VALUE}
        self._columns = {
            name: _Column(name, column.type, built[name], declared=name in declared)
            for name, column in entry.columns.items()
        }
        for name in entry.others.keys() - self._others.keys():
            self._columns[name] = _Column(name)

    def extend(self, documents: Sequence[Document]) -> None:
        """Go on by the next documents. Cost: 3 µs a value."""
        found = [plain(document.metadata) for document in documents]
        for metadata in found:
            for name in sorted(metadata.keys() - self._columns.keys() - self._others.keys()):
                if self._room > 0 and len(name) <= NAME:
                    self._columns[name] = _Column(name, passed=self._documents)
                    self._room -= 1
        self._documents += len(documents)
        for name, column in self._columns.items():
            column.extend([metadata.get(name) for metadata in found])

    def fields(self, living: Mask) -> Fields:
        """Return the fields of the documents there are now: `living` says which positions hold one.

        Cost: 1 ns a later document and field; columns are made when they are first asked for.
        """
        columns: dict[str, Field] = {}
        others = dict(self._others)
        for name, column in sorted(self._columns.items()):
            later = living[self._first :]
            if column.kind is None:
                others[name] = column.reason
            elif not column.is_there(later):
                others[name] = NO_VALUE
            else:
                parts = partial(_parts, column.built, column.part(column.kind), self._first)
                misfits = column.misfits(later)
                columns[name] = CombinedField(name, column.kind, parts, living, misfits)
        return Fields(columns, others)


def _parts(built: Field | None, later: Callable[[], Field], first: int) -> _Parts:
    return [*([(0, built)] if built is not None else []), (first, later())]


class _Column:
    """One field of later documents, a column once its type is known.

    kind    its type; None before the first value that has one
    built   its column of the build
    reason  why it is no column while it has no type
    """

    def __init__(
        self,
        name: str,
        kind: FieldType | None = None,
        built: Field | None = None,
        passed: int = 0,
        *,
        declared: bool = False,
    ) -> None:
        self.kind, self.built, self.reason = kind, built, NO_VALUE
        self._name, self._declared = name, declared
        self._limits = DECLARED if declared else FOUND
        self._starts = GrowableArray(np.int64)
        self._starts.extend(np.zeros(passed + 1, np.int64))
        self._misfits = GrowableArray(np.int64)  # documents with a value that does not fit
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        if kind is not None:
            self._begin(kind)

    def extend(self, batch: Sequence[object]) -> None:
        """Go on by the value of each document, None where it has none."""
        taken: list[Any] = []
        ends: list[int] = []
        misfits: list[int] = []
        before = int(self._starts.rows[-1])
        for position, value in enumerate(batch, len(self._starts) - 1):
            if held := elements(value):
                if self.kind is None and (kind := first_type(held)) is not None:
                    self._begin(kind)
                fits, all_fit = self._taken(held)
                taken += fits
                if not all_fit:
                    misfits.append(position)
            ends.append(before + len(taken))
        if self.kind is not None:
            self._values.extend(np.array(taken, KEPT[self.kind]))
        self._starts.extend(np.array(ends, np.int64))
        self._misfits.extend(np.array(misfits, np.int64))

    def is_there(self, living: Mask) -> bool:
        """Return whether the build or a living document has a value, of whatever type."""
        if self.built is not None or living[self._misfits.rows].any():
            return True
        return bool((np.diff(self._starts.rows) * living).any())

    def misfits(self, living: Mask) -> int:
        """Return how many documents have a value that does not fit.

        Those of the build count until a refit, whether they were deleted or not.
        """
        built = self.built.misfits if self.built is not None else 0
        return built + int(np.count_nonzero(living[self._misfits.rows]))

    def part(self, kind: FieldType) -> Callable[[], Field]:
        """What makes the column of the later documents there are now."""
        held = kind, self._values.rows, self._starts.rows, len(self._texts)
        return lambda: self._part(*held)

    def _begin(self, kind: FieldType) -> None:
        self.kind = kind
        self._values = GrowableArray(KEPT[kind])
        self._take = taker(kind, self._limits, declared=self._declared)

    def _taken(self, values: list[Any]) -> tuple[list[Any], bool]:
        """Return what the column keeps of the values of a document, and whether all of them fit."""
        if self.kind is None:
            left = [value for value in values if not isinstance(value, str) or value.strip()]
            if any(not isinstance(value, str) for value in left):
                self.reason = NESTED
            return [], not left
        fits: list[Any] = []
        for value in values:
            with suppress(TypeMismatch):
                fits.append(self._take(value))
        all_fit = len(fits) == len(values)
        fits = in_order(fits, [len(fits)])[0]
        if self.kind != "keyword":
            return fits, all_fit
        for text in fits:
            if text not in self._numbers and len(self._texts) < self._limits.texts:
                self._numbers[text] = len(self._texts)
                self._texts.append(text)
        codes = [self._numbers[text] for text in fits if text in self._numbers]
        return codes, all_fit and len(codes) == len(fits)

    def _part(
        self, kind: FieldType, values: npt.NDArray[Any], starts: npt.NDArray[np.int64], texts: int
    ) -> Field:
        known = self._texts[:texts]
        if kind == "keyword":
            order = sorted(range(texts), key=known.__getitem__)
            codes = np.empty(texts, np.int32)
            codes[order] = np.arange(texts, dtype=np.int32)
            values, known = codes[values], [known[number] for number in order]
        missing = int(np.count_nonzero(np.diff(starts) == 0))
        return Field(self._name, kind, missing, values, starts, texts_of(known))


_Values = npt.NDArray[Any]


class CombinedField(Field):
    """A field in parts, each of consecutive positions; what lies between them has no value.

    parts   position of the first document and column of each, made when first asked for
    living  (N,) which positions hold a document
    misfits documents with a value that is not of the type
    Masks are made part by part. `values`, `starts` and `texts` are put together when first asked
    for: O(N), and the texts.
    """

    def __init__(
        self,
        name: str,
        type: FieldType,  # noqa: A002 - as users name it
        parts: Callable[[], _Parts],
        living: Mask,
        misfits: int = 0,
    ) -> None:
        self.name = name
        self.type = type
        self.misfits = misfits
        self._make_parts, self._living = parts, living

    def __len__(self) -> int:
        """N, the number of positions."""
        return len(self._living)

    @property
    def missing(self) -> int:
        """Documents without a value."""
        return int(np.count_nonzero(self._living) - np.count_nonzero(self.present()))

    @property
    def values(self) -> _Values:
        """Codes, numbers or microseconds."""
        return self._whole[0]

    @property
    def starts(self) -> Positions | None:
        """Where the values of each document begin; None where none has several."""
        return self._whole[1]

    @property
    def texts(self) -> KeywordTexts:
        """Texts of a keyword field that a document holds."""
        return self._whole[2]

    @lazy_property
    def _parts(self) -> _Parts:
        return self._make_parts()

    def _finding(self) -> ColumnPredicate:
        return _Joined(self._parts, self._living)

    @lazy_property
    def _whole(self) -> tuple[_Values, Positions | None, KeywordTexts]:
        counts = np.zeros(len(self), np.int64)
        pieces, names = [], []
        for first, part in self._parts:
            living = self._living[first : first + len(part)]
            held = np.diff(part.starts) if part.starts is not None else part.present().astype(int)
            values = part.values if part.starts is not None else part.values[held > 0]
            pieces.append(values[np.repeat(living, held)])
            counts[first : first + len(part)] = held * living
            if self.type == "keyword":
                codes, pieces[-1] = np.unique(pieces[-1], return_inverse=True)
                names.append([part.texts[code] for code in codes.tolist()])
        texts = sorted({text for each in names for text in each})
        if self.type == "keyword":
            codes_of = {text: code for code, text in enumerate(texts)}
            pieces = [
                np.array([codes_of[text] for text in each], np.int32)[piece]
                for each, piece in zip(names, pieces, strict=True)
            ]
        values = np.concatenate(pieces).astype(KEPT[self.type])
        if (counts > 1).any():
            starts = np.concatenate(([0], np.cumsum(counts)))
            return values, starts, texts_of(texts)
        dense = np.full(len(self), MISSING[self.type], KEPT[self.type])
        dense[counts > 0] = values
        return dense, None, texts_of(texts)


class _Joined(ColumnPredicate):
    """What is asked of all parts."""

    def __init__(self, parts: _Parts, living: Mask) -> None:
        self._parts, self._living = parts, living

    def present(self) -> Finder:
        """See `Field.present`."""
        return self._joined(lambda part: part.present())

    def any_of(self, values: Iterable[object]) -> Finder:
        """See `Field.any_of`."""
        asked = values if isinstance(values, str) else list(values)
        return self._joined(lambda part: part.any_of(asked))

    def between(
        self, low: object = None, high: object = None, *, inclusive: Inclusive = "both"
    ) -> Finder:
        """See `Field.between`."""
        return self._joined(lambda part: part.between(low, high, inclusive=inclusive))

    def containing(self, text: str) -> Finder:
        """See `Field.containing`."""
        return self._joined(lambda part: part.containing(text))

    def _joined(self, of: Callable[[ColumnPredicate], Finder]) -> Finder:
        finders = [(begin, begin + len(part), of(finding(part))) for begin, part in self._parts]

        def found(first: int, after: int) -> Mask:
            mask = np.zeros(after - first, np.bool_)
            for begin, end, find in finders:
                low, high = max(first, begin), min(after, end)
                if low < high:
                    mask[low - first : high - first] = find(low - begin, high - begin)
            mask &= self._living[first:after]
            return mask

        return found
