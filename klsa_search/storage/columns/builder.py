"""Build the columns of metadata fields, batch by batch.

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

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.config import MAX_FIELDS, FieldType
from klsa_search.errors import CollectionError
from klsa_search.kernels.spool import Spool
from klsa_search.storage.arrays import ArrayWriter
from klsa_search.storage.columns.values import (
    DECLARED,
    FOUND,
    Code,
    Limits,
    TypeMismatch,
    flattened,
    is_placeholder,
    plain,
    taker,
)
from klsa_search.storage.manifest import ColumnEntry, FieldsEntry

KEPT: Final[dict[FieldType, np.dtype[Any]]] = {
    "keyword": np.dtype(np.int32),
    "number": np.dtype(np.float64),
    "date": np.dtype(np.int64),
}
"""Type of the numbers that stand for values."""

MISSING: Final[dict[FieldType, Any]] = {
    "keyword": -1,
    "number": np.nan,
    "date": np.iinfo(np.int64).min,
}
"""What stands for a document without a value, where no document has several."""

_COUNTS: Final = np.dtype(np.int32)


class _Piece(NamedTuple):
    """Documents in order: how many they are, how many values they have, and where those are.

    counted  whether behind the values it says how many each document has; else all have one, or
             none
    """

    documents: int
    values: int
    begin: int
    counted: bool


class ColumnBuilder:
    """A column of one type that grows by batches of documents.

    kind     its type
    lists    whether some document has several values
    values   so far
    present  documents that have a value
    fitting  values that are of its type, those that a document repeats included
    others   values that are not, without those that conventionally stand for a missing one
    codes    of the others: texts of digits that are codes
    misfits  documents with a value that does not fit, which counts as missing
    reason   what the first of the others is
    texts    numbers of the different texts, in no order
    Memory: the texts, and 100 bytes a batch.
    """

    def __init__(
        self, kind: FieldType, limits: Limits, spool: Spool, *, declared: bool = False
    ) -> None:
        self.kind: FieldType = kind
        self.lists = False
        self.values = self.present = 0
        self.fitting = self.others = self.codes = self.misfits = 0
        self.reason: str | None = None
        self._take = taker(kind, limits, declared=declared)
        self.texts: dict[str, int] = {}
        self._limits, self._spool = limits, spool
        self._pieces: list[_Piece] = []

    def pass_over(self, documents: int) -> None:
        """Go on by documents without a value."""
        if self._pieces and not self._pieces[-1].values:
            documents += self._pieces.pop().documents
        if documents:
            self._pieces.append(_Piece(documents, 0, 0, False))

    def extend(self, flat: list[object], counts: list[int] | None) -> None:
        """Go on by the values of a batch, as `flattened` gives them.

        Of several values of a document each is kept once, in their order. TypeMismatch where there are
        too many different texts: then nothing is kept.
        """
        try:
            values = list(map(self._take, flat))
        except TypeMismatch:
            values = self._fit(flat, counts)
        self.fitting += len(values) - values.count(None)
        documents = len(flat) if counts is None else len(counts)
        if counts is not None or None in values:
            values, counts = in_order(values, counts)
        if not values:
            self.pass_over(documents)
            return
        begin = len(self._spool)
        self._append(np.array(self._coded(values), KEPT[self.kind]))
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
        """Yield values of documents in order, end to end, and how many each document has.

        table  of a keyword field the code of each number
        """
        kept = KEPT[self.kind]
        for documents, size, begin, counted in self._pieces:
            middle = begin + size * kept.itemsize
            values = self._spool.read(begin, middle).view(kept)
            counts = np.full(documents, bool(size), _COUNTS)
            if counted:
                end = middle + documents * _COUNTS.itemsize
                counts = self._spool.read(middle, end).view(_COUNTS)
            yield (table[values] if self.kind == "keyword" else values), counts

    def _fit(self, flat: list[object], counts: list[int] | None) -> list[Any]:
        """Take values one by one, with None for each that does not fit."""
        values: list[Any] = []
        at = 0
        for size in repeat(1, len(flat)) if counts is None else counts:
            fits = True
            for value in flat[at : at + size]:
                try:
                    values.append(self._take(value))
                except TypeMismatch as misfit:
                    values.append(None)
                    fits = False
                    if not is_placeholder(value):
                        self.others += 1
                        self.codes += isinstance(misfit, Code)
                        self.reason = self.reason or str(misfit)
            self.misfits += not fits
            at += size
        return values

    def _coded(self, values: list[Any]) -> list[Any]:
        if self.kind != "keyword":
            return values
        numbers, limits = self.texts, self._limits
        new = set(values) - numbers.keys()
        if len(numbers) + len(new) > limits.texts:
            raise TypeMismatch(f"more than {limits.texts:,} different texts")
        for text in new:
            numbers[text] = len(numbers)
        return [numbers[text] for text in values]

    def _append(self, array: npt.NDArray[Any]) -> None:
        self._spool.append(array.view(np.uint8))


def in_order(values: list[Any], counts: list[int] | None) -> tuple[list[Any], list[int]]:
    """Each value of a document once, ascending, blank ones left out; and how many are left."""
    left, sizes = [], []
    at = 0
    for size in repeat(1, len(values)) if counts is None else counts:
        own = values[at : at + size]
        at += size
        if size > 1 or None in own:
            own = sorted({value for value in own if value is not None})
        left += own
        sizes.append(len(own))
    return left, sizes


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

NUMBERS: Final = "numbers"
NAMED: Final[dict[type, str]] = {
    str: "texts",
    bool: "true or false",
    int: NUMBERS,
    float: NUMBERS,
}
CANDIDATES: Final[tuple[FieldType, ...]] = ("number", "date", "keyword")
"""What a field may become, the first that fits."""
SHARE: Final = 99
"""Fitting values for each other one that a field found among texts may have."""
MOST_OTHERS: Final = 10_000
"""Values that are not of its type that a field may have."""
NAME: Final = 256
"""Characters of a name."""


class FieldsWriter:
    """Takes documents in order, and writes their fields at the end.

    types  of the fields that were declared, which `Declared` has found all documents to fit
    spool  of bytes, for what is held meanwhile
    known  types of the fields that were found before, by an index whose documents these are: they
           stay, and what does not fit counts as missing
    Any other field is found by its values (`_Field.chosen`). CollectionError where a declared field
    cannot be a column.
    Cost: 1 µs a value, 4 µs where it is a date.
    """

    def __init__(
        self,
        types: Mapping[str, FieldType | None],
        spool: Spool,
        known: Mapping[str, FieldType] | None = None,
    ) -> None:
        self._types, self._known, self._spool = types, dict(known or {}), spool
        self._fields = {name: _Field(name, spool, declared=True) for name in types}
        self._room = MAX_FIELDS - len({*types, *self._known})
        self._documents = 0
        self._more = False

    def extend(self, documents: Sequence[Document]) -> None:
        """Go on by the next documents."""
        found = [plain(document.metadata) for document in documents]
        for metadata in found:
            for name in sorted(metadata.keys() - self._fields.keys()):
                if name in self._known or (self._room > 0 and len(name) <= NAME):
                    self._room -= name not in self._known
                    self._fields[name] = _Field(name, self._spool, self._documents)
                else:
                    self._more = True
        for name, field in self._fields.items():
            field.extend([metadata.get(name) for metadata in found], self._type(name))
        self._documents += len(documents)

    def finish(self, generation: Path) -> FieldsEntry:
        """Write the columns. Memory: the largest batch, and the texts of one field."""
        columns, others = {}, {}
        with ExitStack() as stack:
            files = _Files(generation, stack)
            for name, field in sorted(self._fields.items()):
                making = field.chosen(self._type(name))
                if making is None:
                    others[name] = field.reason()
                else:
                    columns[name] = files.write(making, self._documents)
        return FieldsEntry(columns=columns, others=others, more=self._more)

    def _type(self, name: str) -> FieldType | None:
        """Return the type that a field has whatever its values; None if they decide."""
        return self._types.get(name) or self._known.get(name)


class _Field:
    """One field: the columns that it may become."""

    def __init__(
        self, name: str, spool: Spool, documents: int = 0, *, declared: bool = False
    ) -> None:
        self._name, self._spool, self._declared = name, spool, declared
        self._passed = documents
        self._kinds: dict[str, None] = {}  # of its values, in the order they were met
        self._begun = False
        self._may_be: list[ColumnBuilder] = []
        self._gone: dict[FieldType, str] = {}  # those it can no longer become, and why

    def extend(self, batch: list[object], type_: FieldType | None) -> None:
        """Go on by the values of a batch, None where a document has none."""
        if self._begun and not self._may_be:
            return
        flat, counts = flattened(batch)
        if not flat and not self._begun:
            self._passed += len(batch)
            return
        self._kinds |= dict.fromkeys(
            NAMED.get(each, NESTED) for each in dict.fromkeys(map(type, flat))
        )
        if not self._begun:
            self._begin(CANDIDATES if type_ is None else (type_,))
        if type_ is None and NUMBERS in self._kinds:
            self._may_be = [making for making in self._may_be if making.kind == "number"]
        for making in list(self._may_be):
            try:
                making.extend(flat, counts)
            except TypeMismatch as misfit:
                self._may_be.remove(making)
                self._gone[making.kind] = str(misfit)
            else:
                if type_ is None and making.others > MOST_OTHERS:
                    self._may_be.remove(making)
                    self._gone[making.kind] = making.reason or NO_VALUE
        if not self._may_be and self._declared and type_ is not None:
            raise CollectionError(
                f"the {type_} field {self._name!r} has {self._gone[type_]}; remove "
                "its declaration, or shorten its values"
            )

    def chosen(self, type_: FieldType | None) -> ColumnBuilder | None:
        """Return the column that the field becomes; None if it becomes none.

        A field with JSON numbers is a number field if most of its values are numbers; one without
        is what all its texts are but one in a hundred. What does not fit then counts as missing.
        Texts such as "N/A" count neither way, but for a keyword field, of which they are values;
        a single text of digits that is a code, such as 00123, makes all of them texts.
        """
        if self._declared and not self._begun and type_ is not None:
            self._begin((type_,))
        return next((one for one in self._may_be if self._fits(one, type_)), None)

    def reason(self) -> str:
        """Say why the field is no column."""
        kinds = list(self._kinds)
        if NESTED in kinds or (NUMBERS in kinds and len(kinds) > 1):
            return " and ".join(kinds)
        last: FieldType = "number" if NUMBERS in kinds else "keyword"
        reasons = {each.kind: each.reason for each in self._may_be} | self._gone
        return reasons.get(last) or NO_VALUE

    def _fits(self, making: ColumnBuilder, type_: FieldType | None) -> bool:
        if type_ is not None:
            return self._declared or making.fitting > 0 or making.misfits > 0
        if NUMBERS in self._kinds:
            return making.fitting > making.others
        return making.fitting > 0 and not making.codes and making.fitting >= SHARE * making.others

    def _begin(self, types: Sequence[FieldType]) -> None:
        self._begun = True
        limits = DECLARED if self._declared else FOUND
        self._may_be = [
            ColumnBuilder(kind, limits, self._spool, declared=self._declared) for kind in types
        ]
        for making in self._may_be:
            making.pass_over(self._passed)


class _Files:
    """The files of all columns, each made when the first column needs it."""

    def __init__(self, generation: Path, stack: ExitStack) -> None:
        self._generation, self._stack = generation, stack
        self._open: dict[str, ArrayWriter] = {}
        self._text_bytes = 0

    def write(self, making: ColumnBuilder, documents: int) -> ColumnEntry:
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
            misfits=making.misfits,
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
