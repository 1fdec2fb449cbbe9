"""Write the metadata fields of documents as columns: those declared, and those that are found.

    fields_codes.npy        int32    keyword fields: number of each value in the order of its texts
    fields_numbers.npy      float64  number fields
    fields_dates.npy        int64    date fields: microseconds since 1970 in UTC
    fields_starts.npy       int64    of each field with lists N + 1: where each document's begin
    fields_texts.npy        uint8    the texts of keyword fields in UTF-8, ascending in each field
    fields_text_starts.npy  int64    where each text begins

Each holds all fields of its kind, one after the other in the order of their names, and is there if
there is such a field. A field without lists has one value a document: -1, NaN or the least int64
where it has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search.collection import Document
from klsa_search.config import MOST_FIELDS, FieldType
from klsa_search.errors import CollectionError
from klsa_search.features.spool import Spool
from klsa_search.store.arrays import ArrayWriter
from klsa_search.store.fields.making import KEPT, MISSING, Making
from klsa_search.store.fields.values import DECLARED, FOUND, Misfit, flattened, plain
from klsa_search.store.manifest import ColumnEntry, FieldsEntry

FILES: Final[dict[FieldType, str]] = {
    "keyword": "fields_codes",
    "number": "fields_numbers",
    "date": "fields_dates",
}
STARTS: Final = "fields_starts"
TEXTS: Final = "fields_texts"
TEXT_STARTS: Final = "fields_text_starts"

NESTED: Final = "nested values"
NO_VALUE: Final = "no value"
"""Why fields are none."""

NAMED: Final[dict[type, str]] = {
    str: "texts",
    bool: "true or false",
    int: "numbers",
    float: "numbers",
}
TYPES: Final[dict[str, tuple[FieldType, ...]]] = {
    "texts": ("date", "keyword"),
    "true or false": ("keyword",),
    "numbers": ("number",),
}
"""What may become of values of each kind, the first that fits."""
NAME: Final = 256
"""Characters of a name."""


class FieldsWriter:
    """Takes documents in order, and writes their fields at the end.

    types  of the fields that were declared, which `Declared` has found all documents to fit
    spool  of bytes, for what is held meanwhile
    CollectionError where a declared field cannot be a column.
    Cost: 1 µs a value, 4 µs where it is a date.
    """

    def __init__(self, types: Mapping[str, FieldType | None], spool: Spool) -> None:
        self._types, self._spool = types, spool
        self._fields = {name: _Field(name, spool) for name in types}
        self._documents = 0
        self._more = False

    def extend(self, documents: Sequence[Document]) -> None:
        """Go on by the next documents."""
        found = [plain(document.metadata) for document in documents]
        for metadata in found:
            for name in sorted(metadata.keys() - self._fields.keys()):
                if len(self._fields) < MOST_FIELDS and len(name) <= NAME:
                    self._fields[name] = _Field(name, self._spool, self._documents)
                else:
                    self._more = True
        for name, field in self._fields.items():
            field.extend([metadata.get(name) for metadata in found], self._types.get(name))
        self._documents += len(documents)

    def finish(self, generation: Path) -> FieldsEntry:
        """Write the columns. Memory: the largest batch, and the texts of one field."""
        columns, others = {}, {}
        with ExitStack() as stack:
            files = _Files(generation, stack)
            for name, field in sorted(self._fields.items()):
                making = field.chosen(self._types.get(name), self._documents)
                if making is None:
                    others[name] = field.reason or NO_VALUE
                else:
                    columns[name] = files.write(making, self._documents)
        return FieldsEntry(columns=columns, others=others, more=self._more)


class _Field:
    """One field: the columns that it may become, and why it cannot be one."""

    def __init__(self, name: str, spool: Spool, documents: int = 0) -> None:
        self.reason: str | None = None
        self._name, self._spool = name, spool
        self._passed = documents
        self._kind: str | None = None
        self._may_be: list[Making] = []

    def extend(self, batch: list[object], declared: FieldType | None) -> None:
        """Go on by the values of a batch, None where a document has none."""
        if self.reason is not None:
            return
        flat, counts = flattened(batch)
        if not flat and not self._may_be:
            self._passed += len(batch)
            return
        if declared is None:
            self._look_at(flat)
        elif not self._may_be:
            self._begin((declared,))
        for making in list(self._may_be):
            try:
                making.extend(flat, counts)
            except Misfit as misfit:
                self._may_be.remove(making)
                if not self._may_be:
                    self.reason = str(misfit)
        if self.reason and declared:
            raise CollectionError(
                f"the {declared} field {self._name!r} has {self.reason}: leave it out of the "
                "declared fields, or shorten its values"
            )

    def chosen(self, declared: FieldType | None, documents: int) -> Making | None:
        """The column that the field becomes; None if it becomes none."""
        if declared and not self._may_be:
            self._begin((declared,))
        # A date field of blank texts alone is none.
        return next((one for one in self._may_be if one.values or declared), None)

    def _look_at(self, flat: list[object]) -> None:
        """Tell from the kinds of values whether the field can still be a column."""
        for kind in dict.fromkeys(
            NAMED.get(each, NESTED) for each in dict.fromkeys(map(type, flat))
        ):
            if self._kind is None and kind != NESTED:
                self._kind = kind
                self._begin(TYPES[kind])
            elif kind != self._kind:
                self.reason = f"{self._kind} and {kind}" if self._kind else kind
                self._may_be.clear()
                return

    def _begin(self, types: Sequence[FieldType]) -> None:
        limits = FOUND if self._kind else DECLARED
        self._may_be = [Making(kind, limits, self._spool) for kind in types]
        for making in self._may_be:
            making.pass_over(self._passed)


class _Files:
    """The files of all columns, each made when the first column needs it."""

    def __init__(self, generation: Path, stack: ExitStack) -> None:
        self._generation, self._stack = generation, stack
        self._open: dict[str, ArrayWriter] = {}
        self._text_bytes = 0

    def write(self, making: Making, documents: int) -> ColumnEntry:
        """Write a column."""
        texts = sorted(making.texts)
        table = np.zeros(len(texts), np.int32)
        table[[making.texts[text] for text in texts]] = np.arange(len(texts), dtype=np.int32)
        values = self._file(FILES[making.kind], KEPT[making.kind])
        starts = [np.zeros(1, np.int64)]
        for piece, counts in making.pieces(table):
            if making.lists:
                values.append(piece)
                starts.append(starts[-1][-1] + np.cumsum(counts, dtype=np.int64))
            else:
                dense = np.full(len(counts), MISSING[making.kind], KEPT[making.kind])
                dense[counts > 0] = piece
                values.append(dense)
        if making.lists:
            self._file(STARTS, np.dtype(np.int64)).append(np.concatenate(starts))
        if making.kind == "keyword":
            self._write_texts(texts)
        return ColumnEntry(
            type=making.kind,
            missing=documents - making.present,
            values=making.values if making.lists else documents,
            lists=making.lists,
            texts=len(texts),
        )

    def _write_texts(self, texts: list[str]) -> None:
        written = [text.encode() for text in texts]
        ends = self._text_bytes + np.cumsum([0, *map(len, written)], dtype=np.int64)
        self._file(TEXTS, np.dtype(np.uint8)).append(b"".join(written))
        self._file(TEXT_STARTS, np.dtype(np.int64)).append(ends)
        self._text_bytes = int(ends[-1])

    def _file(self, name: str, kind: np.dtype[Any]) -> ArrayWriter:
        if name not in self._open:
            writer = ArrayWriter(self._generation, name, kind)
            self._open[name] = self._stack.enter_context(writer)
        return self._open[name]


def columns_bytes(generation: Path) -> int:
    """Bytes of the columns that a generation holds."""
    names = (*FILES.values(), STARTS, TEXTS, TEXT_STARTS)
    paths = (generation / f"{name}.npy" for name in names)
    return sum(path.stat().st_size for path in paths if path.exists())
