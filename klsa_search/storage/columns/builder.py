"""Build a column of one type, batch by batch, in a temporary file, and write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import SortedTexts, Spool
from klsa_search.core.build_settings import FieldType
from klsa_search.storage.arrays import ArrayWriter
from klsa_search.storage.columns.column import (
    DTYPES,
    FILES,
    MISSING,
    STARTS,
    TEXT_STARTS,
    TEXTS,
    ColumnArrays,
)
from klsa_search.storage.columns.values import Code, TypeMismatch, is_placeholder
from klsa_search.storage.manifest import ColumnEntry

_COUNTS: Final = np.dtype(np.int32)


class _Piece(NamedTuple):
    """A batch of consecutive documents in the spool: documents, values, and their offset.

    counted  whether the values are followed by counts for each document; else all have one, or none
    """

    documents: int
    values: int
    begin: int
    counted: bool


class ColumnBuilder:
    """A column of one type, built by batches of documents.

    kind     its type
    lists    whether a document has several values
    values   number of stored values
    present  documents with a value
    fitting  values of its type, repeated ones included
    others   values of another type, except conventional placeholders for missing values
    codes    those of the others that are strings of digits
    type_mismatches
             documents with a value that does not fit, which counts as missing
    reason   description of the first of the others
    odd      the first of the others, and the number of its document in the batch
    texts    numbers of the distinct texts, unordered
    Memory: the texts, and 100 bytes a batch.
    """

    def __init__(
        self,
        kind: FieldType,
        max_texts: int,
        spool: Spool,
        coerce: Callable[[object], Any],
    ) -> None:
        self.kind: FieldType = kind
        self.lists = False
        self.values = self.present = 0
        self.fitting = self.others = self.codes = self.type_mismatches = 0
        self.reason: str | None = None
        self.odd: tuple[object, int] | None = None
        self._coerce = coerce
        self.texts: dict[str, int] = {}
        self._max_texts, self._spool = max_texts, spool
        self._pieces: list[_Piece] = []

    def skip(self, documents: int) -> None:
        """Append documents without a value."""
        if self._pieces and not self._pieces[-1].values:
            documents += self._pieces.pop().documents
        if documents:
            self._pieces.append(_Piece(documents, 0, 0, False))

    def extend(self, flat: list[object], counts: list[int] | None) -> None:
        """Append the values of a batch in the form of `flattened`.

        The values of a document are stored once each, in ascending order. Raise TypeMismatch, with
        nothing stored, if there are too many distinct texts.
        """
        try:
            values = list(map(self._coerce, flat))
        except TypeMismatch:
            values = self._fit(flat, counts)
        self.fitting += len(values) - values.count(None)
        documents = len(flat) if counts is None else len(counts)
        if counts is not None or None in values:
            values, counts = distinct(values, counts)
        if not values:
            self.skip(documents)
            return
        begin = len(self._spool)
        self._append(np.array(self._coded(values), DTYPES[self.kind]))
        if counts is None:
            self.present += documents
        else:
            self._append(np.array(counts, _COUNTS))
            self.present += documents - counts.count(0)
            self.lists = self.lists or max(counts) > 1
        self.values += len(values)
        self._pieces.append(_Piece(documents, len(values), begin, counts is not None))

    def pieces(
        self, table: npt.NDArray[np.int32]
    ) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.int32]]]:
        """Yield concatenated values of documents in order, and the number of values of each.

        table  code of each number of a keyword field
        """
        dtype = DTYPES[self.kind]
        for documents, size, begin, counted in self._pieces:
            middle = begin + size * dtype.itemsize
            values = self._spool.read(begin, middle).view(dtype)
            counts = np.full(documents, bool(size), _COUNTS)
            if counted:
                end = middle + documents * _COUNTS.itemsize
                counts = self._spool.read(middle, end).view(_COUNTS)
            yield (table[values] if self.kind == "keyword" else values), counts

    def _fit(self, flat: list[object], counts: list[int] | None) -> list[Any]:
        """Coerce values one by one, with None for each that does not fit."""
        values: list[Any] = []
        at = 0
        for document, size in enumerate(repeat(1, len(flat)) if counts is None else counts):
            fits = True
            for value in flat[at : at + size]:
                try:
                    values.append(self._coerce(value))
                except TypeMismatch as mismatch:
                    values.append(None)
                    fits = False
                    if not is_placeholder(value):
                        self.others += 1
                        self.codes += isinstance(mismatch, Code)
                        self.reason = self.reason or str(mismatch)
                        self.odd = self.odd or (value, document)
            self.type_mismatches += not fits
            at += size
        return values

    def _coded(self, values: list[Any]) -> list[Any]:
        if self.kind != "keyword":
            return values
        numbers = self.texts
        new = set(values) - numbers.keys()
        if len(numbers) + len(new) > self._max_texts:
            raise TypeMismatch(f"more than {self._max_texts:,} different texts")
        for text in new:
            numbers[text] = len(numbers)
        return [numbers[text] for text in values]

    def _append(self, array: npt.NDArray[Any]) -> None:
        self._spool.append(array.view(np.uint8))


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
            self._write_texts(SortedTexts.of(texts))
        return ColumnEntry(
            type=builder.kind,
            missing=documents - builder.present,
            type_mismatches=builder.type_mismatches,
            values=builder.values if builder.lists else documents,
            lists=builder.lists,
            texts=len(texts),
        )

    def write_arrays(
        self, kind: FieldType, arrays: ColumnArrays, missing: int, type_mismatches: int
    ) -> ColumnEntry:
        """Write a column that is in memory.

        missing, type_mismatches  as in `ColumnEntry`
        """
        values, starts, texts = arrays
        self._file(FILES[kind], DTYPES[kind]).append(values.tobytes())
        if starts is not None:
            self._file(STARTS, np.dtype(np.int64)).append(starts.tobytes())
        if kind == "keyword":
            self._write_texts(texts)
        return ColumnEntry(
            type=kind,
            missing=missing,
            type_mismatches=type_mismatches,
            values=len(values),
            lists=starts is not None,
            texts=len(texts),
        )

    def _write_texts(self, texts: SortedTexts) -> None:
        self._file(TEXTS, np.dtype(np.uint8)).append(texts.content.tobytes())
        self._file(TEXT_STARTS, np.dtype(np.int64)).append(texts.starts + self._text_bytes)
        self._text_bytes += texts.size

    def _file(self, name: str, kind: np.dtype[Any]) -> ArrayWriter:
        if name not in self._open:
            writer = ArrayWriter(self._generation, name, kind)
            self._open[name] = self._stack.enter_context(writer)
        return self._open[name]


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
