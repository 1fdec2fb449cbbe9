"""Write the columns of metadata fields, whose types are detected by their values.

A first pass over the documents shows the types; then they are read again for the columns, once for
as many columns as fit into memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.columns import names_codes
from klsa_search.collection.model import Document
from klsa_search.core.build_settings import MAX_FIELDS, FieldType
from klsa_search.storage.columns.column import ColumnFiles
from klsa_search.storage.columns.detected_fields import DetectedField, FieldCandidate
from klsa_search.storage.columns.growing_columns import GrowingColumn
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms
from klsa_search.storage.columns.values import MAX_NAME, plain
from klsa_search.storage.manifest import ColumnEntry, FieldsEntry

PASS_BYTES: Final = 2**28
"""Bytes of the columns that are made in one pass."""

BYTES_PER_DOCUMENT: Final = 16
"""Bytes of a column for each document, also without a value."""

MIN_CODES: Final = 20
"""Numbers that are codes whatever the name of their field, at least."""

MIN_DIGITS: Final = 8
"""Digits of each of them, at least."""

_log = logging.getLogger(__name__)


class FieldsWriter:
    """Detects the fields of documents in order, and writes the columns at the end.

    types  of declared fields; `DeclaredFields` has checked that all documents fit
    types_before  of fields that an earlier build of the same documents detected: they stay, and
           values that do not fit count as missing
    keeps_empty
           fields without a value have a column too, as other partitions have values
    forms  of dates and numbers; those that are None are decided by the values of all fields when
           `finish` is called, unless fields disagree; units by the values of each field
    The type of any other field is detected (`DetectedField.chosen`). Raise CollectionError if a
    declared field cannot be a column. Cost: 1 µs a value, 4 µs for a date.
    """

    def __init__(
        self,
        types: Mapping[str, FieldType | None],
        types_before: Mapping[str, FieldType],
        *,
        keeps_empty: bool = False,
        forms: LocalForms = GENERAL,
    ) -> None:
        self.forms = forms
        self._types, self._types_before = types, types_before
        self._keeps_empty = keeps_empty
        self._fields = {name: DetectedField(name, forms, declared=True) for name in types}
        self._free = MAX_FIELDS - len({*types, *self._types_before})
        self._more = False
        self._documents = 0

    def extend(self, documents: Sequence[Document]) -> None:
        """Look at the next documents."""
        self._documents += len(documents)
        batch = [plain(document.metadata) for document in documents]
        for metadata in batch:
            for name in sorted(metadata.keys() - self._fields.keys()):
                if name in self._types_before or (self._free > 0 and len(name) <= MAX_NAME):
                    self._free -= name not in self._types_before
                    self._fields[name] = DetectedField(name, self.forms)
                else:
                    self._more = True
        origins = [document.origin or f"document {document.id!r}" for document in documents]
        for name, field in self._fields.items():
            values = [metadata.get(name) for metadata in batch]
            field.extend(values, self._type(name), origins)

    def finish(
        self, generation: Path, metadata: Callable[[], Iterable[list[Mapping[str, Any]]]]
    ) -> FieldsEntry:
        """Write the columns, and log what is unexpected about the types of detected fields.

        metadata  returns those of the documents again, in batches
        Cost and memory: see `write_columns`.
        """
        if self._keeps_empty:
            for name in self._types_before:
                field = self._fields.setdefault(name, DetectedField(name, self.forms))
                field.keeps_empty = True
        self._decide_forms()
        types = self._decide_types()
        others = {
            name: field.reason()
            for name, field in sorted(self._fields.items())
            if name not in types
        }
        columns = write_columns(generation, types, self._documents, metadata)
        return FieldsEntry(columns=columns, others=others, more=self._more)

    def _decide_forms(self) -> None:
        before = self.forms
        votes = [field.local_forms() for field in self._fields.values()]
        dates = {vote.dates for vote in votes} - {None}
        signs = {vote.decimal for vote in votes} - {None}
        self.forms = LocalForms(
            self.forms.dates or (dates.pop() if len(dates) == 1 else None),
            self.forms.decimal or (signs.pop() if len(signs) == 1 else None),
            self.forms.units,
        )
        if self.forms.dates != before.dates:
            _log.warning("dates such as 3/5/2025 are read %s; --dates decides", self.forms.dates)
        if self.forms.decimal == "comma" != before.decimal:
            _log.warning("numbers such as 1.250 are read as thousands; --decimal decides")

    def _decide_types(self) -> dict[str, FieldCandidate]:
        units = set(self.forms.units)
        types: dict[str, FieldCandidate] = {}
        for name, field in sorted(self._fields.items()):
            chosen = field.chosen(self._type(name), self.forms)
            if self._type(name) is None and (hint := field.hint(chosen)):
                _log.warning("field %r %s", name, hint)
            if chosen is not None:
                types[name] = chosen
                if chosen.kind == "number" and field.unit:
                    units.add(f"{name}={field.unit}")
        self.forms = self.forms._replace(units=tuple(sorted(units)))
        return types

    def _type(self, name: str) -> FieldType | None:
        """Return the declared or known type of a field; None if its values decide."""
        return self._types.get(name) or self._types_before.get(name)


def write_columns(
    generation: Path,
    types: Mapping[str, FieldCandidate],
    documents: int,
    metadata: Callable[[], Iterable[list[Mapping[str, Any]]]],
) -> dict[str, ColumnEntry]:
    """Write the columns of a build, by name.

    documents  their number
    metadata   returns those of the documents, in batches
    Memory: 256 MB, at least 16 bytes a document; the texts of keyword fields; and 8 bytes for each
    further value of a document. Cost: a pass over the documents for each 256 MB.
    """
    names, entries = list(types), dict[str, ColumnEntry]()
    step = max(PASS_BYTES // max(BYTES_PER_DOCUMENT * documents, 1), 1)
    with ExitStack() as stack:
        files = ColumnFiles(generation, stack)
        for start in range(0, len(names), step):
            columns = {
                name: GrowingColumn(types[name].kind, types[name].coerce, types[name].max_texts)
                for name in names[start : start + step]
            }
            for batch in metadata():
                fields_of = list(map(plain, batch))
                for name, column in columns.items():
                    column.extend([fields.get(name) for fields in fields_of])
            for name, column in columns.items():
                missing = int(np.count_nonzero(column.counts() == 0))
                arrays, mismatches = column.present(name).arrays, len(column.mismatches)
                entry = files.write(types[name].kind, arrays, missing, mismatches)
                codes = are_codes(name, entry.type, arrays.values)
                entries[name] = entry.model_copy(update={"codes": codes})
    return entries


def are_codes(name: str, kind: FieldType, values: npt.NDArray[Any]) -> bool:
    """Return whether the values of a field are numbers that are codes rather than quantities.

    They are if their name says so and most are different, or if there are many, all are whole,
    different and long, and all have as many digits.

    >>> are_codes("ean", "number", np.array([4006381333931.0, 96385074.0]))
    True
    >>> are_codes("release", "number", np.array([2024.0, 2024.0, 2025.0, 2025.0]))
    False
    """
    is_named = names_codes(name)
    numbers = values[~np.isnan(values)] if kind == "number" else values[:0]
    if len(numbers) < (1 if is_named else MIN_CODES):
        return False
    digits = {len(f"{number:.0f}") for number in (numbers.min(), numbers.max())}
    is_long = len(digits) == 1 and min(digits) >= MIN_DIGITS
    if not is_named and not (is_long and numbers.min() > 0 and (numbers % 1 == 0).all()):
        return False
    different = len(np.unique(numbers))
    return 2 * different > len(numbers) if is_named else different == len(numbers)
