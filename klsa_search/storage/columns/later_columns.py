"""Columns of documents that were written after the build.

A field keeps its type: as declared, or as detected by the build; a new field has the type of its
first value in the order of the log. A value that does not fit counts as missing, and its document
among its type mismatches. A field that the build did not make filterable stays so. The fields
follow from the build and the log alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocumentMask, GrowableArray, SortedTexts
from klsa_search.core.build_settings import MAX_FIELDS, FieldType
from klsa_search.storage.columns.builder import distinct
from klsa_search.storage.columns.column import DTYPES, Column, ColumnArrays
from klsa_search.storage.columns.columns import Field, Fields, extended
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms
from klsa_search.storage.columns.values import (
    TypeMismatch,
    coercion,
    elements,
    first_type,
    limits_of,
    plain,
)
from klsa_search.storage.columns.writer import MAX_NAME, NESTED, NO_VALUE
from klsa_search.storage.manifest import FieldsEntry

NOT_BUILT: Final = (
    "it first occurs in documents added after the build, and the index has partitions; declare it "
    "with --field NAME:TYPE and build again"
)


class LaterColumns:
    """The fields of later documents. One thread appends; returned fields do not change.

    built     columns of the build
    entry     fields in the manifest
    declared  declared fields and their types
    first     number of documents of the build
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
                built = column.built or Field(
                    name, column.kind, [Column.blank(name, column.kind, self._first)]
                )
                present = column.column(column.kind)
                columns[name] = extended(built, present, live, column.type_mismatches(later))
        return Fields(columns, others, len(live), self._forms)


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
        self._limits = limits_of(declared=declared)
        self._starts = GrowableArray(np.int64)
        self._starts.extend(np.zeros(skipped + 1, np.int64))
        self._mismatches = GrowableArray(np.int64)  # documents with a value that does not fit
        self._texts: list[str] = []
        self._content = 0  # bytes of the texts
        self._numbers: dict[str, int] = {}
        if kind is not None:
            self._set_kind(kind)

    def extend(self, batch: Sequence[object]) -> None:
        """Append the value of each document, None if it has none."""
        coerced: list[Any] = []
        ends: list[int] = []
        mismatches: list[int] = []
        before = int(self._starts.rows[-1])
        for document, value in enumerate(batch, len(self._starts) - 1):
            if values := elements(value):
                if self.kind is None and (kind := first_type(values)) is not None:
                    self._set_kind(kind)
                fits, all_fit = self._coerced(values)
                coerced += fits
                if not all_fit:
                    mismatches.append(document)
            ends.append(before + len(coerced))
        if self.kind is not None:
            self._values.extend(np.array(coerced, DTYPES[self.kind]))
        self._starts.extend(np.array(ends, np.int64))
        self._mismatches.extend(np.array(mismatches, np.int64))

    def has_values(self, live: DocumentMask) -> bool:
        """Return whether the build or a live document has a value, of any type."""
        if self.built is not None or live[self._mismatches.rows].any():
            return True
        return bool((np.diff(self._starts.rows) * live).any())

    def type_mismatches(self, live: DocumentMask) -> int:
        """Return how many documents have a value that does not fit.

        Documents of the build count until a refit, even if deleted.
        """
        built = self.built.type_mismatches if self.built is not None else 0
        return built + int(np.count_nonzero(live[self._mismatches.rows]))

    def column(self, kind: FieldType) -> Column:
        """Return the column of the present later documents."""
        starts = self._starts.rows
        make = partial(self._arrays, kind, self._values.rows, starts, len(self._texts))
        return Column(self._name, kind, len(starts) - 1, make, int(starts[-1]), self._content)

    def _set_kind(self, kind: FieldType) -> None:
        self.kind = kind
        self._values = GrowableArray(DTYPES[kind])
        self._coerce = coercion(
            kind,
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

    def _arrays(
        self, kind: FieldType, values: npt.NDArray[Any], starts: npt.NDArray[np.int64], texts: int
    ) -> ColumnArrays:
        """Return values with texts in order."""
        distinct_texts = self._texts[:texts]
        if kind == "keyword":
            order = sorted(range(texts), key=distinct_texts.__getitem__)
            codes = np.empty(texts, np.int32)
            codes[order] = np.arange(texts, dtype=np.int32)
            values, distinct_texts = codes[values], [distinct_texts[number] for number in order]
        return ColumnArrays(values, starts, SortedTexts.of(distinct_texts))
