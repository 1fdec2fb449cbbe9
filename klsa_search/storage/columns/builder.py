"""Build the columns of metadata fields, batch by batch.

    fields_codes.npy        int32    keyword fields: codes of values, in the order of their texts
    fields_numbers.npy      float64  number fields
    fields_dates.npy        int64    date fields: microseconds since 1970 in UTC
    fields_starts.npy       int64    N + 1 for each field with lists: starts of the documents
    fields_texts.npy        uint8    texts of keyword fields in UTF-8, ascending in each field
    fields_text_starts.npy  int64    start of each text

Each file concatenates all fields of its kind in the order of their names, and exists if there is
such a field. A field without lists has one value a document: -1, NaN or the least int64 if it is
missing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.config import MAX_FIELDS, DateOrder, DecimalSign, FieldType
from klsa_search.errors import CollectionError
from klsa_search.kernels.spool import Spool
from klsa_search.storage.arrays import ArrayWriter
from klsa_search.storage.columns.local_forms import GENERAL, LocalForms, decimal_sign
from klsa_search.storage.columns.values import (
    DECLARED_LIMITS,
    DETECTED_LIMITS,
    Code,
    Limits,
    TypeMismatch,
    coercion,
    flattened,
    is_placeholder,
    local_candidate,
    plain,
)
from klsa_search.storage.manifest import ColumnEntry, FieldsEntry

_log = logging.getLogger(__name__)

DTYPES: Final[dict[FieldType, np.dtype[Any]]] = {
    "keyword": np.dtype(np.int32),
    "number": np.dtype(np.float64),
    "date": np.dtype(np.int64),
}
"""Storage type of each field type."""

MISSING: Final[dict[FieldType, Any]] = {
    "keyword": -1,
    "number": np.nan,
    "date": np.iinfo(np.int64).min,
}
"""Missing values of fields without lists."""

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
    misfits  documents with a value that does not fit, which counts as missing
    reason   description of the first of the others
    odd      the first of the others, and the number of its document in the batch
    texts    numbers of the distinct texts, unordered
    Memory: the texts, and 100 bytes a batch.
    """

    def __init__(
        self,
        kind: FieldType,
        limits: Limits,
        spool: Spool,
        coerce: Callable[[object], Any],
    ) -> None:
        self.kind: FieldType = kind
        self.lists = False
        self.values = self.present = 0
        self.fitting = self.others = self.codes = self.misfits = 0
        self.reason: str | None = None
        self.odd: tuple[object, int] | None = None
        self._coerce = coerce
        self.texts: dict[str, int] = {}
        self._limits, self._spool = limits, spool
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


def distinct(values: list[Any], counts: list[int] | None) -> tuple[list[Any], list[int]]:
    """Return the distinct values of each document, ascending, without None; and their counts."""
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
"""Why a field is not filterable."""

NUMBERS: Final = "numbers"
NAMED: Final[dict[type, str]] = {
    str: "texts",
    bool: "true or false",
    int: NUMBERS,
    float: NUMBERS,
}
_NEARLY: Final = 9
"""Fitting values for each other value, from which a keyword field is nearly of another type."""

_LOCAL_FORMS: Final = (
    (
        "number",
        re.compile(r"[+-]?\d{1,3}[.,]\d{3}|[+-]?\d+,\d+", re.ASCII),
        "--decimal comma or --decimal point decides (in Python decimal=)",
    ),
    (
        "date",
        re.compile(r"\d\d?([/-])\d\d?\1(19|20)\d\d([ T,].*)?", re.ASCII),
        "--dates day-first or --dates month-first decides (in Python dates=)",
    ),
)
"""Forms of numbers and dates that are not recognised, because they are ambiguous."""

_LOCAL: Final[tuple[tuple[FieldType, LocalForms], ...]] = (
    ("number", LocalForms(decimal="comma")),
    ("number", LocalForms(decimal="point")),
    ("date", LocalForms(dates="day-first")),
    ("date", LocalForms(dates="month-first")),
)
"""Candidates that all values of the fields decide between."""

_THREE_DECIMALS: Final = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
"""Numbers that would be thousands with a decimal comma."""

_SHOWN: Final = 60
"""Characters of a value in a message."""

CANDIDATES: Final[tuple[FieldType, ...]] = ("number", "date", "keyword")
"""Types that a field may have, in order of preference."""
MIN_FITTING: Final = 99
"""Fitting values of a string field required for each other value."""
MAX_OTHERS: Final = 10_000
"""Limit of values of another type in a detected field."""
MAX_NAME: Final = 256
"""Characters of a name."""


class FieldsWriter:
    """Collects the fields of documents in order, and writes the columns at the end.

    types  of declared fields; `DeclaredFields` has checked that all documents fit
    spool  buffer for the values
    known  types of fields detected by an earlier build of the same documents: they stay, and values
           that do not fit count as missing
    keeps_empty
           known fields without a value have a column too, as other partitions have values
    forms  of dates and numbers; those that are None are decided by the values of all fields when
           `finish` is called, unless fields disagree
    The type of any other field is detected (`_Field.chosen`). Raise CollectionError if a declared
    field cannot be a column. Cost: 1 µs a value, 4 µs for a date.
    """

    def __init__(
        self,
        types: Mapping[str, FieldType | None],
        spool: Spool,
        known: Mapping[str, FieldType] | None = None,
        *,
        keeps_empty: bool = False,
        forms: LocalForms = GENERAL,
    ) -> None:
        self.forms = forms
        self._types, self._known, self._spool = types, dict(known or {}), spool
        self._keeps_empty = keeps_empty
        self._fields = {name: _Field(name, spool, forms, declared=True) for name in types}
        self._free = MAX_FIELDS - len({*types, *self._known})
        self._documents = 0
        self._more = False

    def extend(self, documents: Sequence[Document]) -> None:
        """Append the next documents."""
        batch = [plain(document.metadata) for document in documents]
        for metadata in batch:
            for name in sorted(metadata.keys() - self._fields.keys()):
                if name in self._known or (self._free > 0 and len(name) <= MAX_NAME):
                    self._free -= name not in self._known
                    self._fields[name] = _Field(name, self._spool, self.forms, self._documents)
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
            for name in self._known.keys() - self._fields.keys():
                self._fields[name] = _Field(
                    name, self._spool, self.forms, self._documents, declared=True
                )
        votes = [field.local_forms() for field in self._fields.values()]
        dates = {vote.dates for vote in votes} - {None}
        signs = {vote.decimal for vote in votes} - {None}
        before = self.forms
        self.forms = LocalForms(
            self.forms.dates or (dates.pop() if len(dates) == 1 else None),
            self.forms.decimal or (signs.pop() if len(signs) == 1 else None),
        )
        if self.forms.dates != before.dates:
            _log.warning("dates such as 3/5/2025 are read %s; --dates decides", self.forms.dates)
        if self.forms.decimal != before.decimal:
            _log.warning(
                "numbers such as 1.250 are read with a decimal %s; --decimal decides",
                self.forms.decimal,
            )
        with ExitStack() as stack:
            files = _Files(generation, stack)
            for name, field in sorted(self._fields.items()):
                builder = field.chosen(self._type(name), self.forms)
                if self._type(name) is None and (hint := field.hint(builder)):
                    _log.warning("field %r %s", name, hint)
                if builder is None:
                    others[name] = field.reason()
                else:
                    columns[name] = files.write(builder, self._documents)
        return FieldsEntry(columns=columns, others=others, more=self._more)

    def _type(self, name: str) -> FieldType | None:
        """Return the declared or known type of a field; None if its values decide."""
        return self._types.get(name) or self._known.get(name)


class _Field:
    """One field, with a builder for each type that it may have."""

    def __init__(
        self,
        name: str,
        spool: Spool,
        forms: LocalForms,
        documents: int = 0,
        *,
        declared: bool = False,
    ) -> None:
        self._forms = forms
        self._local: dict[tuple[FieldType, LocalForms], ColumnBuilder] = {}
        self._signs: set[str] = set()  # decimal signs that its numbers show
        self._points: bool | None = None  # whether all numbers with a point may be thousands
        self._name, self._spool, self._declared = name, spool, declared
        self._skipped = documents
        self._kinds: dict[str, None] = {}  # of its values, in order of appearance
        self._begun = self._decided = False
        self._builders: list[ColumnBuilder] = []
        self._rejected: dict[FieldType, str] = {}  # types that do not fit, and why
        self._first: tuple[object, str] | None = None  # value, and origin of its document
        self._odd: dict[FieldType, tuple[object, str]] = {}  # likewise, first that does not fit

    def extend(self, batch: list[object], type_: FieldType | None, origins: Sequence[str]) -> None:
        """Append the values of a batch, None for a document without one.

        origins  of its documents, as "file:line"
        """
        if self._begun and not self._builders:
            return
        flat, counts = flattened(batch)
        if not flat and not self._begun:
            self._skipped += len(batch)
            return
        if self._first is None:
            at = 0 if counts is None else next(at for at, count in enumerate(counts) if count)
            self._first = flat[0], origins[at]
        self._kinds |= dict.fromkeys(
            NAMED.get(each, NESTED) for each in dict.fromkeys(map(type, flat))
        )
        if not self._begun:
            self._begin(CANDIDATES if type_ is None else (type_,))
        if type_ is None and NUMBERS in self._kinds:
            self._builders = [each for each in self._builders if each.kind == "number"]
        for builder in list(self._builders):
            try:
                builder.extend(flat, counts)
            except TypeMismatch as mismatch:
                self._builders.remove(builder)
                self._rejected[builder.kind] = str(mismatch)
            else:
                if builder.odd is not None and builder.kind not in self._odd:
                    value, at = builder.odd
                    self._odd[builder.kind] = value, origins[at]
                if type_ is None and builder.others > MAX_OTHERS:
                    self._builders.remove(builder)
                    self._rejected[builder.kind] = builder.reason or NO_VALUE
        self._extend_local(flat, counts)
        if not self._builders and self._declared and type_ is not None:
            raise CollectionError(
                f"the {type_} field {self._name!r} has {self._rejected[type_]}; remove "
                "its declaration, or shorten its values"
            )

    def _extend_local(self, flat: list[object], counts: list[int] | None) -> None:
        """Append values to the candidates in local forms, as long as they may be needed."""
        if self._local and NUMBERS in self._kinds:
            self._local = {}
        for key, builder in list(self._local.items()):
            builder.extend(flat, counts)
            if builder.others > MAX_OTHERS:
                del self._local[key]
        if any(kind == "number" for kind, _ in self._local):
            texts = [each.strip() for each in flat if isinstance(each, str)]
            if pointed := [text for text in texts if "." in text]:
                may_be = all(map(_THREE_DECIMALS.fullmatch, pointed))
                self._points = may_be and self._points is not False
            self._signs |= {
                sign
                for text in texts
                if "," in text or "." in text
                if (sign := decimal_sign(text)) is not None
            }
            whole = next(each for each in self._builders if each.kind == "number")
            if not self._signs and not whole.others and whole.fitting > MAX_OTHERS:
                self._local = {key: each for key, each in self._local.items() if key[0] == "date"}

    def local_forms(self) -> LocalForms:
        """Return the forms that the values of the field show."""
        fits = {key: each for key, each in self._local.items() if self._fits(each, None)}
        signs = self._signs if any(kind == "number" for kind, _ in fits) else set()
        dates = sorted(
            (each.others, str(forms.dates))
            for (kind, forms), each in self._local.items()
            if kind == "date"
        )
        order: DateOrder | None = None
        for (kind, forms), each in fits.items():
            if kind == "date" and all(
                each.others < others or forms.dates == name for others, name in dates
            ):
                order = forms.dates
        sign: DecimalSign | None = None
        if len(signs) == 1:
            sign = "comma" if "comma" in signs else "point"
        return LocalForms(order, sign)

    def chosen(self, type_: FieldType | None, forms: LocalForms = GENERAL) -> ColumnBuilder | None:
        """Return the column of the field; None if it is not filterable.

        A field with JSON numbers is a number field if most of its values are numbers. A field of
        strings has the first type that fits 99 of 100 of them; the rest counts as missing.
        Placeholders such as "N/A" are ignored, except by a keyword field, where they are values.
        A single code such as 00123 makes a field of numeric strings a keyword field.
        """
        if self._declared and not self._begun and type_ is not None:
            self._begin((type_,))
        self._decided = forms.decimal is not None
        if type_ is None:
            for (kind, local), builder in self._local.items():
                decided = local in (LocalForms(forms.dates), LocalForms(None, forms.decimal))
                if decided and self._fits(builder, None) and not self._has_general(kind, builder):
                    return builder
        return next((each for each in self._builders if self._fits(each, type_)), None)

    def _has_general(self, kind: FieldType, local: ColumnBuilder) -> bool:
        """Return whether the general form fits more values than a local one."""
        return any(
            each.kind == kind and each.others < local.others and self._fits(each, None)
            for each in self._builders
        )

    def reason(self) -> str:
        """Return why the field is not filterable."""
        kinds = list(self._kinds)
        if NESTED in kinds or (NUMBERS in kinds and len(kinds) > 1):
            return " and ".join(kinds)
        last: FieldType = "number" if NUMBERS in kinds else "keyword"
        reasons = {each.kind: each.reason for each in self._builders} | self._rejected
        return reasons.get(last) or NO_VALUE

    def hint(self, chosen: ColumnBuilder | None) -> str | None:
        """Return what is unexpected about the detected type of the field; None if nothing is."""
        if chosen is None or self._first is None:
            return None
        if chosen.misfits and chosen.kind in self._odd:
            documents = "document has" if chosen.misfits == 1 else "documents have"
            return (
                f"is a {chosen.kind} field: {chosen.misfits:,} {documents} another value, which "
                f"counts as missing; the first is {_quoted(self._odd[chosen.kind])}"
            )
        if chosen.kind == "number" and self._points and not self._decided:
            return (
                "is a number field: all numbers with a point are as 1.250, and are read as 1.25; "
                "--decimal comma reads them as thousands (in Python decimal=)"
            )
        if chosen.kind != "keyword":
            return None
        for kind, pattern, fix in _LOCAL_FORMS:
            if isinstance(self._first[0], str) and pattern.fullmatch(self._first[0].strip()):
                return f"is a keyword field: {_quoted(self._first)} could be two {kind}s; {fix}"
        for builder in self._builders:
            if builder.kind in self._odd and builder.fitting >= _NEARLY * builder.others:
                every = builder.fitting + builder.others
                return (
                    f"is a keyword field: {builder.fitting:,} of {every:,} values are "
                    f"{builder.kind}s, but not {_quoted(self._odd[builder.kind])}; correct the "
                    f"others for a {builder.kind} field"
                )
        return None

    def _fits(self, builder: ColumnBuilder, type_: FieldType | None) -> bool:
        if type_ is not None:
            return self._declared or builder.fitting > 0 or builder.misfits > 0
        if NUMBERS in self._kinds:
            return builder.fitting > builder.others
        fits = builder.fitting >= MIN_FITTING * builder.others
        return builder.fitting > 0 and not builder.codes and fits

    def _begin(self, types: Sequence[FieldType]) -> None:
        self._begun = True
        limits = DECLARED_LIMITS if self._declared else DETECTED_LIMITS
        self._builders = [
            ColumnBuilder(
                kind,
                limits,
                self._spool,
                coercion(kind, limits, declared=self._declared, forms=self._forms),
            )
            for kind in types
        ]
        if len(types) > 1 and not self._declared:
            self._local = {
                (kind, forms): ColumnBuilder(
                    kind, limits, self._spool, local_candidate(kind, forms)
                )
                for kind, forms in _LOCAL
                if not (self._forms.dates if kind == "date" else self._forms.decimal)
            }
        for builder in [*self._builders, *self._local.values()]:
            builder.skip(self._skipped)


def _quoted(found: tuple[object, str]) -> str:
    value, origin = found
    text = repr(value)
    return f"{text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'} in {origin}"


class _Files:
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


def columns_bytes(generation: Path) -> int:
    """Return the size of the columns of a generation in bytes."""
    names = (*FILES.values(), STARTS, TEXTS, TEXT_STARTS)
    paths = (generation / f"{name}.npy" for name in names)
    return sum(path.stat().st_size for path in paths if path.exists())
