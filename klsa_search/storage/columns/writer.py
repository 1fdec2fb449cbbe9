"""Write the columns of metadata fields, whose types are detected by their values.

A first pass over the documents shows the types; then they are read again for the columns, once for
as many columns as fit into memory.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.model import Document
from klsa_search.core.build_settings import MAX_FIELDS, DateOrder, DecimalSign, FieldType
from klsa_search.errors import CollectionError
from klsa_search.storage.columns.growing_columns import coerced, write_columns
from klsa_search.storage.columns.local_forms import (
    GENERAL,
    LocalForms,
    decimal_sign,
    has_short_year,
    number_of,
)
from klsa_search.storage.columns.values import (
    MAX_NAME,
    NESTED,
    NO_VALUE,
    Code,
    coercion,
    flattened,
    is_placeholder,
    limits_of,
    local_candidate,
    plain,
    unit_of,
)
from klsa_search.storage.manifest import FieldsEntry

_log = logging.getLogger(__name__)

_NUMBERS: Final = "numbers"
_NAMED: Final[dict[type, str]] = {
    str: "texts",
    bool: "true or false",
    int: _NUMBERS,
    float: _NUMBERS,
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
        re.compile(r"\d\d?([/-])\d\d?\1((19|20)\d\d|\d\d)([ T,].*)?", re.ASCII),
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

_CANDIDATES: Final[tuple[FieldType, ...]] = ("number", "date", "keyword")
"""Types that a field may have, in order of preference."""
_MIN_FITTING: Final = 99
"""Fitting values of a string field required for each other value."""
MAX_OTHERS: Final = 10_000
"""Limit of values of another type in a detected field."""


class FieldsWriter:
    """Detects the fields of documents in order, and writes the columns at the end.

    types  of declared fields; `DeclaredFields` has checked that all documents fit
    types_before  of fields that an earlier build of the same documents detected: they stay, and
           values that do not fit count as missing
    keeps_empty
           fields without a value have a column too, as other partitions have values
    forms  of dates and numbers; those that are None are decided by the values of all fields when
           `finish` is called, unless fields disagree; units by the values of each field
    The type of any other field is detected (`_DetectedField.chosen`). Raise CollectionError if a
    declared field cannot be a column. Cost: 1 µs a value, 4 µs for a date.
    """

    def __init__(
        self,
        types: Mapping[str, FieldType | None],
        types_before: Mapping[str, FieldType] | None = None,
        *,
        keeps_empty: bool = False,
        forms: LocalForms = GENERAL,
    ) -> None:
        self.forms = forms
        self._types, self._types_before = types, dict(types_before or {})
        self._keeps_empty = keeps_empty
        self._fields = {name: _DetectedField(name, forms, declared=True) for name in types}
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
                    self._fields[name] = _DetectedField(name, self.forms)
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
            for name in self._types_before.keys() - self._fields.keys():
                self._fields[name] = _DetectedField(name, self.forms, declared=True)
        self._decide_forms()
        chosen, rejected = self._decide_types()
        columns = write_columns(generation, chosen, self._documents, metadata)
        return FieldsEntry(columns=columns, others=rejected, more=self._more)

    def _decide_forms(self) -> None:
        """Read dates and numbers as the fields show, unless these disagree."""
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

    def _decide_types(self) -> tuple[dict[str, _Candidate], dict[str, str]]:
        """Return the types of the fields that are columns, and why each other field is none."""
        units = set(self.forms.units)
        types: dict[str, _Candidate] = {}
        rejected: dict[str, str] = {}
        for name, field in sorted(self._fields.items()):
            chosen = field.chosen(self._type(name), self.forms)
            if self._type(name) is None and (hint := field.hint(chosen)):
                _log.warning("field %r %s", name, hint)
            if chosen is None:
                rejected[name] = field.reason()
            else:
                types[name] = chosen
                if chosen.kind == "number" and field.unit:
                    units.add(f"{name}={field.unit}")
        self.forms = self.forms._replace(units=tuple(sorted(units)))
        return types, rejected

    def _type(self, name: str) -> FieldType | None:
        """Return the declared or known type of a field; None if its values decide."""
        return self._types.get(name) or self._types_before.get(name)


class _Candidate:
    """A type that a field may have, and how far its values fit.

    coerce   returns a value as a column of the type stores it
    fitting  values of its type, repeated ones included
    others   values of another type, except conventional placeholders for missing values
    codes    those of the others that are strings of digits
    type_mismatches
             documents with a value that does not fit
    reason   description of the first of the others, or why it is rejected
    odd      the first of the others, and the origin of its document
    Memory: the distinct texts of a keyword field.
    """

    def __init__(self, kind: FieldType, max_texts: int, coerce: Callable[[object], Any]) -> None:
        self.kind: FieldType = kind
        self.coerce, self.max_texts = coerce, max_texts
        self.fitting = self.others = self.codes = self.type_mismatches = 0
        self.reason: str | None = None
        self.odd: tuple[object, str] | None = None
        self.is_rejected = False
        self._texts: set[str] = set()

    def extend(self, flat: list[object], counts: list[int] | None, origins: Sequence[str]) -> None:
        """Add the values of a batch; reject the type if there are too many distinct texts."""
        values, misfits = coerced(self.coerce, flat, counts)
        self.fitting += len(values) - values.count(None)
        self.type_mismatches += len({document for document, *_ in misfits})
        for document, value, mismatch in misfits:
            if not is_placeholder(value):
                self.others += 1
                self.codes += isinstance(mismatch, Code)
                self.reason = self.reason or str(mismatch)
                self.odd = self.odd or (value, origins[document])
        if self.kind == "keyword":
            self._texts.update(values)
            self._texts.discard(None)
            if len(self._texts) > self.max_texts:
                self.is_rejected = True
                self.reason = f"more than {self.max_texts:,} different texts"


class _DetectedField:
    """One field, with a candidate for each type that it may have.

    unit  of its numbers, by the settings or the first value
    """

    def __init__(self, name: str, forms: LocalForms, *, declared: bool = False) -> None:
        self._forms = forms
        self.unit = forms.unit(name)
        self._local: dict[tuple[FieldType, LocalForms], _Candidate] = {}
        self._signs: set[str] = set()  # decimal signs that its numbers show
        self._points: bool | None = None  # whether all numbers with a point may be thousands
        self._name, self._declared = name, declared
        self._kinds: dict[str, None] = {}  # of its values, in order of appearance
        self._begun = self._decided = False
        self._candidates: dict[FieldType, _Candidate] = {}
        self._first: tuple[object, str] | None = None  # value, and origin of its document

    def extend(self, batch: list[object], type_: FieldType | None, origins: Sequence[str]) -> None:
        """Look at the values of a batch, None for a document without one.

        origins  of its documents, as "file:line"
        """
        if self._begun and not self._left:
            return
        flat, counts = flattened(batch)
        if not flat and not self._begun:
            return
        if self._first is None:
            at = 0 if counts is None else next(at for at, count in enumerate(counts) if count)
            self._first = flat[0], origins[at]
        self._kinds |= dict.fromkeys(
            _NAMED.get(type_, NESTED) for type_ in dict.fromkeys(map(type, flat))
        )
        if not self._begun:
            self.unit = self.unit or unit_of(flat)
            self._begin(_CANDIDATES if type_ is None else (type_,))
        for candidate in self._left:
            if type_ is None and _NUMBERS in self._kinds and candidate.kind != "number":
                candidate.is_rejected = True
                continue
            candidate.extend(flat, counts, origins)
            candidate.is_rejected |= type_ is None and candidate.others > MAX_OTHERS
        self._extend_local(flat, counts, origins)
        if not self._left and self._declared and type_ is not None:
            raise CollectionError(
                f"the {type_} field {self._name!r} has {self._candidates[type_].reason}; remove "
                "its declaration, or shorten its values"
            )

    @property
    def _left(self) -> list[_Candidate]:
        """Return the candidates that are not rejected, in order of preference."""
        return [one for one in self._candidates.values() if not one.is_rejected]

    def _extend_local(
        self, flat: list[object], counts: list[int] | None, origins: Sequence[str]
    ) -> None:
        """Append values to the candidates in local forms, as long as they may be needed."""
        if self._local and _NUMBERS in self._kinds:
            self._local = {}
        for key, candidate in list(self._local.items()):
            candidate.extend(flat, counts, origins)
            if candidate.others > MAX_OTHERS:
                del self._local[key]
        if any(kind == "number" for kind, _ in self._local):
            texts = [number_of(item) for item in flat if isinstance(item, str)]
            if pointed := [text for text in texts if "." in text]:
                may_be = all(map(_THREE_DECIMALS.fullmatch, pointed))
                self._points = may_be and self._points is not False
            self._signs |= {
                sign
                for text in texts
                if "," in text or "." in text
                if (sign := decimal_sign(text)) is not None
            }
            numbers = self._candidates["number"]
            if not self._signs and not numbers.others and numbers.fitting > MAX_OTHERS:
                self._local = {
                    key: candidate for key, candidate in self._local.items() if key[0] == "date"
                }

    def local_forms(self) -> LocalForms:
        """Return the forms that the values of the field show."""
        fits = {key: one for key, one in self._local.items() if self._fits(one, None)}
        signs = self._signs if any(kind == "number" for kind, _ in fits) else set()
        dates = sorted(
            (candidate.others, str(forms.dates))
            for (kind, forms), candidate in self._local.items()
            if kind == "date"
        )
        order: DateOrder | None = None
        for (kind, forms), candidate in fits.items():
            if kind == "date" and all(
                candidate.others < others or forms.dates == name for others, name in dates
            ):
                order = forms.dates
        sign: DecimalSign | None = None
        if len(signs) == 1:
            sign = "comma" if "comma" in signs else "point"
        return LocalForms(order, sign)

    def chosen(self, type_: FieldType | None, forms: LocalForms = GENERAL) -> _Candidate | None:
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
            for (kind, local), candidate in self._local.items():
                decided = local in (LocalForms(forms.dates), LocalForms(None, forms.decimal))
                if (
                    decided
                    and self._fits(candidate, None)
                    and not any(
                        one.kind == kind and one.others < candidate.others and self._fits(one, None)
                        for one in self._left  # the general form, if it fits more values
                    )
                ):
                    return candidate
        return next((one for one in self._left if self._fits(one, type_)), None)

    def reason(self) -> str:
        """Return why the field is not filterable."""
        kinds = list(self._kinds)
        if NESTED in kinds or (_NUMBERS in kinds and len(kinds) > 1):
            return " and ".join(kinds)
        last: FieldType = "number" if _NUMBERS in kinds else "keyword"
        candidate = self._candidates.get(last)
        return (candidate and candidate.reason) or NO_VALUE

    def hint(self, chosen: _Candidate | None) -> str | None:
        """Return what is unexpected about the detected type of the field; None if nothing is."""
        if chosen is None or self._first is None:
            return None
        if chosen.type_mismatches and chosen.odd:
            documents = "document has" if chosen.type_mismatches == 1 else "documents have"
            return (
                f"is a {chosen.kind} field: {chosen.type_mismatches:,} {documents} another value, "
                f"which counts as missing; the first is {_quoted(chosen.odd)}"
            )
        if chosen.kind == "number" and self.unit:
            return f"is a number field: its values are in {self.unit}"
        if chosen.kind == "date" and has_short_year(str(self._first[0]).strip()):
            first = _quoted(self._first)
            return f"is a date field: years of two digits, as of {first}, are from 1969 to 2068"
        if chosen.kind == "number" and self._points and not self._decided:
            return (
                "is a number field: all numbers with a point are as 1.250, and are read as 1.25; "
                "--decimal comma reads them as thousands (in Python decimal=)"
            )
        if chosen.kind != "keyword":
            return None
        numbers = self._candidates.get("number")
        if self.unit and numbers and numbers.odd:
            first, odd = _quoted(self._first), _quoted(numbers.odd)
            return (
                f"is a keyword field: it has {first} and {odd}; a number field needs one currency "
                "or sign"
            )
        for kind, pattern, fix in _LOCAL_FORMS:
            if isinstance(self._first[0], str) and pattern.fullmatch(self._first[0].strip()):
                return f"is a keyword field: {_quoted(self._first)} could be two {kind}s; {fix}"
        for candidate in self._left:
            if candidate.odd and candidate.fitting >= _NEARLY * candidate.others:
                every = candidate.fitting + candidate.others
                return (
                    f"is a keyword field: {candidate.fitting:,} of {every:,} values are "
                    f"{candidate.kind}s, but not {_quoted(candidate.odd)}; correct the "
                    f"others for a {candidate.kind} field"
                )
        return None

    def _fits(self, candidate: _Candidate, type_: FieldType | None) -> bool:
        if type_ is not None:
            return self._declared or candidate.fitting > 0 or candidate.type_mismatches > 0
        if _NUMBERS in self._kinds:
            return candidate.fitting > candidate.others
        fits = candidate.fitting >= _MIN_FITTING * candidate.others
        return candidate.fitting > 0 and not candidate.codes and fits

    def _begin(self, types: Sequence[FieldType]) -> None:
        self._begun = True
        most = limits_of(declared=self._declared).texts
        declared, unit = self._declared, self.unit
        for kind in types:
            coerce = coercion(kind, declared=declared, forms=self._forms, unit=unit)
            self._candidates[kind] = _Candidate(kind, most, coerce)
        if len(types) > 1 and not self._declared:
            self._local = {
                (kind, forms): _Candidate(kind, most, local_candidate(kind, forms, self.unit))
                for kind, forms in _LOCAL
                if not (self._forms.dates if kind == "date" else self._forms.decimal)
            }


def _quoted(example: tuple[object, str]) -> str:
    value, origin = example
    text = repr(value)
    return f"{text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'} in {origin}"
