"""Columns of documents that were written after the build.

A field keeps its type: as declared, or as detected by the build; a new field has the type of its
first value in the order of the log. A value that does not fit counts as missing, and its document
as one of the field's misfits. A field that the build did not make filterable stays so. The fields
follow from the build and the log alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocumentMask, GrowableArray, Integers
from klsa_search.core.build_settings import MAX_FIELDS, FieldType
from klsa_search.core.cached import lazy_property
from klsa_search.storage.columns.builder import distinct
from klsa_search.storage.columns.columns import Field, Fields, RangeMask, ranges_of
from klsa_search.storage.columns.format import DTYPES, MISSING
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms
from klsa_search.storage.columns.texts import KeywordTexts, texts_of
from klsa_search.storage.columns.type_detection import NESTED, NO_VALUE
from klsa_search.storage.columns.values import (
    DECLARED_LIMITS,
    DETECTED_LIMITS,
    TypeMismatch,
    coercion,
    elements,
    first_type,
    plain,
)
from klsa_search.storage.columns.writer import MAX_NAME
from klsa_search.storage.manifest import FieldsEntry

_Parts = Sequence[tuple[int, Field]]


NOT_BUILT: Final = (
    "it first occurs in documents added after the build, and the index has partitions; declare it "
    "with --field NAME:TYPE and build again"
)


class DeltaColumns:
    """The fields of later documents. One thread appends; returned fields do not change.

    built     columns of the build
    entry     fields in the manifest
    declared  declared fields and their types
    first     doc id of the first later document
    forms     of dates and numbers
    Memory: 20 bytes a value, and the texts.
    """

    def __init__(
        self,
        built: Fields,
        entry: FieldsEntry,
        declared: Mapping[str, FieldType | None],
        first: int,
        forms: LocalForms = GENERAL,
    ) -> None:
        self._forms = forms
        self._first, self._documents = first, 0
        # If the build did not examine all fields, documents of the build may have any new name.
        self._free = 0 if entry.more else MAX_FIELDS - len(entry.columns) - len(entry.others)
        self._others = {n: why for n, why in entry.others.items() if why != NO_VALUE}
        self._columns = {
            name: _Column(name, column.type, built[name], forms=forms, declared=name in declared)
            for name, column in entry.columns.items()
        }
        for name in entry.others.keys() - self._others.keys():
            self._columns[name] = _Column(name, forms=forms)

    def extend(self, documents: Sequence[Document]) -> None:
        """Append the next documents. Cost: 3 µs a value."""
        batch = [plain(document.metadata) for document in documents]
        for metadata in batch:
            for name in sorted(metadata.keys() - self._columns.keys() - self._others.keys()):
                if self._free > 0 and len(name) <= MAX_NAME:
                    self._columns[name] = _Column(name, skipped=self._documents, forms=self._forms)
                    self._free -= 1
        self._documents += len(documents)
        for name, column in self._columns.items():
            column.extend([metadata.get(name) for metadata in batch])

    def fields(self, live: DocumentMask, *, only_built: bool = False) -> Fields:
        """Return the present fields; `live` is (N,), whether a doc id has a document.

        only_built  whether fields that the build did not have are left out: in partitions, as
                    the same field could have another type in each
        Cost: 1 ns a later document and field; columns are made on first use.
        """
        columns: dict[str, Field] = {}
        others = dict(self._others)
        for name, column in sorted(self._columns.items()):
            later = live[self._first :]
            if column.kind is None:
                others[name] = column.reason
            elif only_built and column.built is None:
                others[name] = NOT_BUILT
            elif not column.has_values(later):
                others[name] = NO_VALUE
            else:
                parts = partial(_parts, column.built, column.part(column.kind), self._first)
                misfits = column.misfits(later)
                columns[name] = CombinedField(
                    name, column.kind, parts, live, misfits, column.content(), column.value_count()
                )
        return Fields(columns, others, len(live), self._forms)


def _parts(built: Field | None, later: Callable[[], Field], first: int) -> _Parts:
    return [*([(0, built)] if built is not None else []), (first, later())]


class _Column:
    """One field of later documents; it has values once its type is known.

    kind    its type; None before the first value that decides it
    built   its column of the build
    reason  why it is not filterable while it has no type
    """

    def __init__(
        self,
        name: str,
        kind: FieldType | None = None,
        built: Field | None = None,
        skipped: int = 0,
        *,
        forms: LocalForms,
        declared: bool = False,
    ) -> None:
        self._forms = forms
        self.kind, self.built, self.reason = kind, built, NO_VALUE
        self._name, self._declared = name, declared
        self._limits = DECLARED_LIMITS if declared else DETECTED_LIMITS
        self._starts = GrowableArray(np.int64)
        self._starts.extend(np.zeros(skipped + 1, np.int64))
        self._misfits = GrowableArray(np.int64)  # documents with a value that does not fit
        self._texts: list[str] = []
        self._content = 0  # bytes of the texts
        self._numbers: dict[str, int] = {}
        if kind is not None:
            self._set_kind(kind)

    def extend(self, batch: Sequence[object]) -> None:
        """Append the value of each document, None if it has none."""
        coerced: list[Any] = []
        ends: list[int] = []
        misfits: list[int] = []
        before = int(self._starts.rows[-1])
        for document, value in enumerate(batch, len(self._starts) - 1):
            if values := elements(value):
                if self.kind is None and (kind := first_type(values)) is not None:
                    self._set_kind(kind)
                fits, all_fit = self._coerced(values)
                coerced += fits
                if not all_fit:
                    misfits.append(document)
            ends.append(before + len(coerced))
        if self.kind is not None:
            self._values.extend(np.array(coerced, DTYPES[self.kind]))
        self._starts.extend(np.array(ends, np.int64))
        self._misfits.extend(np.array(misfits, np.int64))

    def has_values(self, live: DocumentMask) -> bool:
        """Return whether the build or a live document has a value, of any type."""
        if self.built is not None or live[self._misfits.rows].any():
            return True
        return bool((np.diff(self._starts.rows) * live).any())

    def misfits(self, live: DocumentMask) -> int:
        """Return how many documents have a value that does not fit.

        Documents of the build count until a refit, even if deleted.
        """
        built = self.built.misfits if self.built is not None else 0
        return built + int(np.count_nonzero(live[self._misfits.rows]))

    def content(self) -> int:
        """Return the bytes of the distinct texts, of the build and of later documents."""
        return self._content + (self.built.content if self.built is not None else 0)

    def value_count(self) -> int:
        """Return the number of values, of the build and of later documents."""
        return int(self._starts.rows[-1]) + (self.built.value_count if self.built else 0)

    def part(self, kind: FieldType) -> Callable[[], Field]:
        """Return a function that makes the column of the present later documents."""
        arguments = kind, self._values.rows, self._starts.rows, len(self._texts)
        return lambda: self._part(*arguments)

    def _set_kind(self, kind: FieldType) -> None:
        self.kind = kind
        self._values = GrowableArray(DTYPES[kind])
        self._coerce = coercion(
            kind,
            self._limits,
            declared=self._declared,
            forms=self._forms,
            unit=self._forms.unit(self._name),
        )

    def _coerced(self, values: list[Any]) -> tuple[list[Any], bool]:
        """Return the stored values of a document, and whether all of them fit."""
        if self.kind is None:
            left = [value for value in values if not isinstance(value, str) or value.strip()]
            if any(not isinstance(value, str) for value in left):
                self.reason = NESTED
            return [], not left
        fits: list[Any] = []
        for value in values:
            with suppress(TypeMismatch):
                fits.append(self._coerce(value))
        all_fit = len(fits) == len(values)
        fits = distinct(fits, [len(fits)])[0]
        if self.kind != "keyword":
            return fits, all_fit
        for text in fits:
            if text not in self._numbers and len(self._texts) < self._limits.texts:
                self._numbers[text] = len(self._texts)
                self._texts.append(text)
                self._content += len(text.encode())
        codes = [self._numbers[text] for text in fits if text in self._numbers]
        return codes, all_fit and len(codes) == len(fits)

    def _part(
        self, kind: FieldType, values: npt.NDArray[Any], starts: npt.NDArray[np.int64], texts: int
    ) -> Field:
        built_texts = self._texts[:texts]
        if kind == "keyword":
            order = sorted(range(texts), key=built_texts.__getitem__)
            codes = np.empty(texts, np.int32)
            codes[order] = np.arange(texts, dtype=np.int32)
            values, built_texts = codes[values], [built_texts[number] for number in order]
        missing = int(np.count_nonzero(np.diff(starts) == 0))
        return Field(self._name, kind, missing, values, starts, texts_of(built_texts))


_Values = npt.NDArray[Any]


class CombinedField(Field):
    """A field in parts of consecutive doc ids; doc ids between them have no value.

    parts    first doc id and column of each, made on first use
    live     (N,) whether a doc id has a document
    misfits  documents with a value that is not of the type
    content  bytes of the distinct texts
    value_count  number of values
    Masks are made part by part. `values`, `starts` and `texts` are combined on first use: O(N), and
    the texts.
    """

    def __init__(
        self,
        name: str,
        type: FieldType,  # noqa: A002 - as users name it
        parts: Callable[[], _Parts],
        live: DocumentMask,
        misfits: int = 0,
        content: int = 0,
        value_count: int = 0,
    ) -> None:
        self.name = name
        self.type = type
        self.misfits = misfits
        self._content, self._value_count = content, value_count
        self._make_parts, self._live = parts, live

    def __len__(self) -> int:
        """Return N, the number of doc ids."""
        return len(self._live)

    @property
    def content(self) -> int:
        """Return the bytes of the distinct texts, those of deleted documents included."""
        return self._content

    @property
    def value_count(self) -> int:
        """Return the number of values, those of deleted documents included."""
        return self._value_count

    @property
    def missing(self) -> int:
        """Return the number of documents without a value."""
        return int(np.count_nonzero(self._live) - np.count_nonzero(self.present()))

    @property
    def values(self) -> _Values:
        """Return codes, numbers or microseconds."""
        return self._combined[0]

    @property
    def starts(self) -> Integers | None:
        """Return the start of the values of each document; None if none has several."""
        return self._combined[1]

    @property
    def texts(self) -> KeywordTexts:
        """Return the texts of a keyword field that live documents have."""
        return self._combined[2]

    @lazy_property
    def _parts(self) -> _Parts:
        return self._make_parts()

    def _ranges(self, predicate: Callable[..., RangeMask], *arguments: object) -> RangeMask:
        masks = [
            (begin, begin + len(part), ranges_of(part, predicate, *arguments))
            for begin, part in self._parts
        ]

        def combined(first: int, after: int) -> DocumentMask:
            mask = np.zeros(after - first, np.bool_)
            for begin, end, mask_of in masks:
                low, high = max(first, begin), min(after, end)
                if low < high:
                    mask[low - first : high - first] = mask_of(low - begin, high - begin)
            mask &= self._live[first:after]
            return mask

        return combined

    @lazy_property
    def _combined(self) -> tuple[_Values, Integers | None, KeywordTexts]:
        counts = np.zeros(len(self), np.int64)
        pieces, names = [], []
        for first, part in self._parts:
            live = self._live[first : first + len(part)]
            sizes = np.diff(part.starts) if part.starts is not None else part.present().astype(int)
            values = part.values if part.starts is not None else part.values[sizes > 0]
            pieces.append(values[np.repeat(live, sizes)])
            counts[first : first + len(part)] = sizes * live
            if self.type == "keyword":
                codes, pieces[-1] = np.unique(pieces[-1], return_inverse=True)
                names.append([part.texts[code] for code in codes.tolist()])
        texts = sorted({text for document_texts in names for text in document_texts})
        if self.type == "keyword":
            codes_of = {text: code for code, text in enumerate(texts)}
            pieces = [
                np.array([codes_of[text] for text in document_texts], np.int32)[piece]
                for document_texts, piece in zip(names, pieces, strict=True)
            ]
        values = np.concatenate(pieces).astype(DTYPES[self.type])
        if (counts > 1).any():
            starts = np.concatenate(([0], np.cumsum(counts)))
            return values, starts, texts_of(texts)
        dense = np.full(len(self), MISSING[self.type], DTYPES[self.type])
        dense[counts > 0] = values
        return dense, None, texts_of(texts)
