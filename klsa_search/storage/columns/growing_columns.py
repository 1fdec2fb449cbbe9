"""Columns to which documents are appended: those of a build, or written after it.

A build writes its columns to files at its end. Those of later documents stay in memory. Their
fields keep their types, as declared or as detected by the build; a new field has the type of its
first value in the order of the log. A value that does not fit counts as missing, and its document
among its type mismatches. A field that the build did not make filterable stays so. The fields
follow from the build and the log alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocumentMask, GrowableArray, Numbers, SortedTexts
from klsa_search.core.build_settings import MAX_FIELDS, FieldType
from klsa_search.storage.columns.column import DTYPES, Column, ColumnArrays, TextsAlike, packed
from klsa_search.storage.columns.columns import Field, Fields, extended
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms
from klsa_search.storage.columns.values import (
    MAX_NAME,
    NESTED,
    NO_VALUE,
    TypeMismatch,
    coercion,
    elements,
    first_type,
    flattened,
    limits_of,
    plain,
)
from klsa_search.storage.manifest import FieldsEntry

NOT_BUILT: Final = (
    "it first occurs in documents added after the build, and the index has partitions; declare it "
    "with --field NAME:TYPE and build again"
)


class GrowingColumn:
    """A column to which documents are appended; arrays that it returned do not change.

    kind         its type
    content      bytes of the distinct texts of a keyword field
    mismatches   documents with a value that does not fit, which counts as missing
    """

    def __init__(
        self, kind: FieldType, coerce: Callable[[object], Any], max_texts: int, skipped: int = 0
    ) -> None:
        """Begin with `skipped` documents without a value."""
        self.kind: FieldType = kind
        self.content = 0
        self.mismatches = GrowableArray(np.int64)
        self._coerce, self._max_texts = coerce, max_texts
        self._values = GrowableArray(DTYPES[kind])
        self._starts = GrowableArray(np.int64)
        self._starts.extend(np.zeros(skipped + 1, np.int64))
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._alike = TextsAlike(self._texts)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._starts) - 1

    def extend(self, batch: list[object]) -> None:
        """Append the value of each document, None if it has none.

        The values of a document are stored once each, in ascending order.
        """
        flat, counts = flattened(batch)
        coerce = self._number_of if self.kind == "keyword" else self._coerce
        values, misfits = coerced(coerce, flat, counts)
        self.mismatches.extend(_documents_of(misfits, len(self)))
        if counts is not None or None in values:
            values, counts = distinct(values, counts)
        sizes = np.ones(len(batch), np.int64) if counts is None else np.array(counts, np.int64)
        self._values.extend(np.array(values, self._values.rows.dtype))
        self._starts.extend(self._starts.rows[-1] + np.cumsum(sizes))

    def counts(self) -> Numbers:
        """Return the number of values of each document."""
        return np.diff(self._starts.rows)

    def present(self, name: str) -> Column:
        """Return the column of the present documents, whose arrays are made at the first use."""
        make = partial(self._arrays, self._values.rows, self._starts.rows, len(self._texts))
        values = len(self._values)
        return Column(name, self.kind, len(self), make, values, self.content, self._alike)

    def _number_of(self, value: object) -> int | None:
        text = self._coerce(value)
        if text is None:
            return None
        number = self._numbers.get(text)
        if number is None:
            number = len(self._texts)
            if number == self._max_texts:
                raise TypeMismatch("a text beyond the limit")
            self._numbers[text] = number
            self._texts.append(text)
            self.content += len(text.encode())
        return number

    def _arrays(self, values: npt.NDArray[Any], starts: Numbers, size: int) -> ColumnArrays:
        counts, texts = np.diff(starts), self._texts[:size]
        if self.kind == "keyword":
            order = sorted(range(size), key=texts.__getitem__)
            texts = [texts[number] for number in order]
            values = np.argsort(order)[values]
            if (counts > 1).any():
                documents = np.repeat(np.arange(len(counts)), counts)
                values = values[np.lexsort((values, documents))]
        return packed(self.kind, values, counts, SortedTexts.of(texts))


def coerced(
    coerce: Callable[[object], Any], flat: list[object], counts: list[int] | None
) -> tuple[list[Any], list[tuple[int, object, TypeMismatch]]]:
    """Return the values of a batch of documents, None for one that does not fit, and these.

    flat, counts  see `flattened`
    Of each value that does not fit: number of its document, the value and what it is.
    """
    with suppress(TypeMismatch):
        return list(map(coerce, flat)), []
    values, misfits, at = list[Any](), list[tuple[int, object, TypeMismatch]](), 0
    for document, size in enumerate(repeat(1, len(flat)) if counts is None else counts):
        for value in flat[at : at + size]:
            try:
                values.append(coerce(value))
            except TypeMismatch as mismatch:
                values.append(None)
                # A traceback would keep the frames of the calls, and the garbage collector busy.
                misfits.append((document, value, mismatch.with_traceback(None)))
        at += size
    return values, misfits


def _documents_of(misfits: Iterable[tuple[int, object, TypeMismatch]], first: int) -> Numbers:
    """Return the documents of values that do not fit, ascending, counted from `first`."""
    return np.array(sorted({first + document for document, *_ in misfits}), np.int64)


def distinct(values: list[Any], counts: list[int] | None) -> tuple[list[Any], list[int]]:
    """Return the distinct values of each document, ascending, without None; and their counts."""
    left, sizes = [], []
    at = 0
    for size in repeat(1, len(values)) if counts is None else counts:
        document_values = values[at : at + size]
        at += size
        if size > 1 or None in document_values:
            document_values = sorted({value for value in document_values if value is not None})
        left += document_values
        sizes.append(len(document_values))
    return left, sizes


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
        self._forms, self._declared = forms, declared
        self._first, self._documents = first, 0
        # If the build did not examine all fields, documents of the build may have any new name.
        self._free = 0 if entry.more else MAX_FIELDS - len(entry.columns) - len(entry.others)
        self._others = {n: why for n, why in entry.others.items() if why != NO_VALUE}
        self._fields = {
            name: _LaterField(
                name, column.type, built[name], forms=forms, declared=name in declared
            )
            for name, column in entry.columns.items()
        }
        for name in entry.others.keys() - self._others.keys():
            self._fields[name] = _LaterField(name, forms=forms)

    def extend(self, documents: Sequence[Document]) -> None:
        """Append the next documents. Cost: 3 µs a value."""
        batch = [plain(document.metadata) for document in documents]
        for metadata in batch:
            for name in sorted(metadata.keys() - self._fields.keys() - self._others.keys()):
                if self._free > 0 and len(name) <= MAX_NAME:
                    self._fields[name] = _LaterField(
                        name, skipped=self._documents, forms=self._forms
                    )
                    self._free -= 1
        self._documents += len(documents)
        for name, field in self._fields.items():
            field.extend([metadata.get(name) for metadata in batch])

    def fields(self, live: DocumentMask, *, only_built: bool = False) -> Fields:
        """Return the present fields; `live` is (N,), whether a doc id has a document.

        only_built  whether fields that the build did not have are left out: in partitions, as
                    the same field could have another type in each
        Cost: 1 ns a later document and field; columns are made on first use.
        """
        columns: dict[str, Field] = {}
        others = dict(self._others)
        for name, later in sorted(self._fields.items()):
            field = later.present(self._first, live, only_built=only_built)
            if isinstance(field, Field):
                columns[name] = field
            else:
                others[name] = field
        return Fields(columns, others, len(live), self._forms, self._declared)


class _LaterField:
    """One field of later documents; it has a column once its type is known.

    built  its column of the build
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
        self._name, self._built, self._forms, self._declared = name, built, forms, declared
        self._reason = NO_VALUE  # why it is not filterable, while it has no type
        self._untyped = skipped  # documents before the type was known
        self._mismatches = GrowableArray(np.int64)  # those of them with a value that does not fit
        self._column = None if kind is None else self._column_of(kind)

    def extend(self, batch: list[object]) -> None:
        """Append the value of each document; the first that has a type decides it."""
        if self._column is None:
            kinds = map(first_type, map(elements, batch))
            at, kind = next(
                ((at, kind) for at, kind in enumerate(kinds) if kind), (len(batch), None)
            )
            self._extend_untyped(batch[:at])
            if kind is None:
                return
            self._column, batch = self._column_of(kind), batch[at:]
        self._column.extend(batch)

    def present(self, first: int, live: DocumentMask, *, only_built: bool) -> Field | str:
        """Return the present field, or why it is not filterable: see `LaterColumns.fields`.

        first  number of documents of the build, whose type mismatches count even if deleted
        """
        column, built, name = self._column, self._built, self._name
        if column is None:
            return self._reason
        if only_built and built is None:
            return NOT_BUILT
        later = live[first:]
        mismatches = np.concatenate((self._mismatches.rows, column.mismatches.rows))
        misfits = int(np.count_nonzero(later[mismatches]))
        if built is None and not misfits and not (column.counts() * later).any():
            return NO_VALUE
        built = built or Field(name, column.kind, [Column.blank(name, column.kind, first)])
        return extended(built, column.present(name), live, built.type_mismatches + misfits)

    def _extend_untyped(self, batch: list[object]) -> None:
        flat, counts = flattened(batch)
        _, misfits = coerced(_as_blank, flat, counts)
        self._mismatches.extend(_documents_of(misfits, self._untyped))
        self._untyped += len(batch)
        if any(not isinstance(value, str) for value in flat):
            self._reason = NESTED

    def _column_of(self, kind: FieldType) -> GrowingColumn:
        forms, declared = self._forms, self._declared
        coerce = coercion(kind, declared=declared, forms=forms, unit=forms.unit(self._name))
        return GrowingColumn(kind, coerce, limits_of(declared=declared).texts, self._untyped)


def _as_blank(value: object) -> None:
    """Coerce a value of a field without a type: none fits but a blank text."""
    if not isinstance(value, str) or value.strip():
        raise TypeMismatch(NO_VALUE)
