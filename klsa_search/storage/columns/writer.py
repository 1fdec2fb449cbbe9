"""Write the columns of metadata fields."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search.collection.model import Document
from klsa_search.core.array_types import Spool
from klsa_search.core.build_settings import MAX_FIELDS, FieldType
from klsa_search.storage.arrays import ArrayWriter
from klsa_search.storage.columns.builder import ColumnBuilder
from klsa_search.storage.columns.column import DTYPES, FILES, MISSING, STARTS, TEXT_STARTS, TEXTS
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms
from klsa_search.storage.columns.type_detection import DetectedField
from klsa_search.storage.columns.values import plain
from klsa_search.storage.manifest import ColumnEntry, FieldsEntry

_log = logging.getLogger(__name__)

MAX_NAME: Final = 256
"""Characters of a name."""


class FieldsWriter:
    """Collects the fields of documents in order, and writes the columns at the end.

    types  of declared fields; `DeclaredFields` has checked that all documents fit
    spool  buffer for the values
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
        spool: Spool,
        types_before: Mapping[str, FieldType] | None = None,
        *,
        keeps_empty: bool = False,
        forms: LocalForms = GENERAL,
    ) -> None:
        self.forms = forms
        self._types, self._types_before, self._spool = types, dict(types_before or {}), spool
        self._keeps_empty = keeps_empty
        self._fields = {name: DetectedField(name, spool, forms, declared=True) for name in types}
        self._free = MAX_FIELDS - len({*types, *self._types_before})
        self._documents = 0
        self._more = False

    def extend(self, documents: Sequence[Document]) -> None:
        """Append the next documents."""
        batch = [plain(document.metadata) for document in documents]
        for metadata in batch:
            for name in sorted(metadata.keys() - self._fields.keys()):
                if name in self._types_before or (self._free > 0 and len(name) <= MAX_NAME):
                    self._free -= name not in self._types_before
                    self._fields[name] = DetectedField(
                        name, self._spool, self.forms, self._documents
                    )
                else:
                    self._more = True
        origins = [document.origin or f"document {document.id!r}" for document in documents]
        for name, field in self._fields.items():
            values = [metadata.get(name) for metadata in batch]
            field.extend(values, self._type(name), origins)
        self._documents += len(documents)

    def finish(self, generation: Path) -> FieldsEntry:
        """Write the columns, and log what is unexpected about the types of detected fields.

        Memory: the largest batch, and the texts of one field.
        """
        columns, others = {}, {}
        if self._keeps_empty:
            for name in self._types_before.keys() - self._fields.keys():
                self._fields[name] = DetectedField(
                    name, self._spool, self.forms, self._documents, declared=True
                )
        votes = [field.local_forms() for field in self._fields.values()]
        dates = {vote.dates for vote in votes} - {None}
        signs = {vote.decimal for vote in votes} - {None}
        before = self.forms
        self.forms = LocalForms(
            self.forms.dates or (dates.pop() if len(dates) == 1 else None),
            self.forms.decimal or (signs.pop() if len(signs) == 1 else None),
            self.forms.units,
        )
        if self.forms.dates != before.dates:
            _log.warning("dates such as 3/5/2025 are read %s; --dates decides", self.forms.dates)
        if self.forms.decimal == "comma" != before.decimal:
            _log.warning("numbers such as 1.250 are read as thousands; --decimal decides")
        units = set(self.forms.units)
        with ExitStack() as stack:
            files = ColumnFiles(generation, stack)
            for name, field in sorted(self._fields.items()):
                builder = field.chosen(self._type(name), self.forms)
                if self._type(name) is None and (hint := field.hint(builder)):
                    _log.warning("field %r %s", name, hint)
                if builder is None:
                    others[name] = field.reason()
                else:
                    columns[name] = files.write(builder, self._documents)
                    if builder.kind == "number" and field.unit:
                        units.add(f"{name}={field.unit}")
        self.forms = self.forms._replace(units=tuple(sorted(units)))
        return FieldsEntry(columns=columns, others=others, more=self._more)

    def _type(self, name: str) -> FieldType | None:
        """Return the declared or known type of a field; None if its values decide."""
        return self._types.get(name) or self._types_before.get(name)


class ColumnFiles:
    """The files of all columns, each created when the first column needs it."""

    def __init__(self, generation: Path, stack: ExitStack) -> None:
        self._generation, self._stack = generation, stack
        self._open: dict[str, ArrayWriter] = {}
        self._text_bytes = 0

    def write(self, builder: ColumnBuilder, documents: int) -> ColumnEntry:
        """Write a column."""
        texts = sorted(builder.texts)
        table = np.zeros(len(texts), np.int32)
        table[[builder.texts[text] for text in texts]] = np.arange(len(texts), dtype=np.int32)
        values = self._file(FILES[builder.kind], DTYPES[builder.kind])
        starts = [np.zeros(1, np.int64)]
        for piece, counts in builder.pieces(table):
            if builder.lists:
                values.append(piece)
                starts.append(starts[-1][-1] + np.cumsum(counts, dtype=np.int64))
            else:
                dense = np.full(len(counts), MISSING[builder.kind], DTYPES[builder.kind])
                dense[counts > 0] = piece
                values.append(dense)
        if builder.lists:
            self._file(STARTS, np.dtype(np.int64)).append(np.concatenate(starts))
        if builder.kind == "keyword":
            self._write_texts(texts)
        return ColumnEntry(
            type=builder.kind,
            missing=documents - builder.present,
            misfits=builder.misfits,
            values=builder.values if builder.lists else documents,
            lists=builder.lists,
            texts=len(texts),
        )

    def _write_texts(self, texts: list[str]) -> None:
        encoded = [text.encode() for text in texts]
        ends = self._text_bytes + np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        self._file(TEXTS, np.dtype(np.uint8)).append(b"".join(encoded))
        self._file(TEXT_STARTS, np.dtype(np.int64)).append(ends)
        self._text_bytes = int(ends[-1])

    def _file(self, name: str, kind: np.dtype[Any]) -> ArrayWriter:
        if name not in self._open:
            writer = ArrayWriter(self._generation, name, kind)
            self._open[name] = self._stack.enter_context(writer)
        return self._open[name]
