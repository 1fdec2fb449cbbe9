"""Detection of the type of a metadata field by its values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from klsa_search.collection.columns import names_versions, option
from klsa_search.core.build_settings import DecimalSign, FieldType
from klsa_search.errors import CollectionError
from klsa_search.storage.columns.growing_columns import coerced
from klsa_search.storage.columns.local_forms import (
    GENERAL,
    SHORT_YEAR,
    LocalForms,
    decimal_sign,
    may_be_two_years,
    number_of,
)
from klsa_search.storage.columns.values import (
    NESTED,
    NO_VALUE,
    Code,
    coercion,
    epoch_unit,
    flattened,
    is_placeholder,
    limits_of,
    local_candidate,
    unit_of,
)

_NUMBERS: Final = "numbers"
_NAMED: Final[dict[type, str]] = {
    str: "texts",
    bool: "true or false",
    int: _NUMBERS,
    float: _NUMBERS,
}
_NEARLY: Final = 9
"""Fitting values for each other value, from which a keyword field is nearly of another type."""

_TIME_NAME: Final = re.compile(
    r"(?:^|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:at|on|date|time|timestamp|ts|utc|created|updated|modified)$"
)
_SERIAL: Final = re.compile(r"(?:3[6-9]|4\d|5[0-4])\d{3}(?:\.\d+)?", re.ASCII)
"""A day from 2000 to 2050 in the count of spreadsheets, perhaps with a time."""
_LIST_NAME: Final = re.compile(
    r"(?i)(?:^|[\W_])(?:tags?|labels?|keywords?|categories|genres?|topics?)$"
)
_VERSION: Final = re.compile(r"\d+(?:\.\d+){2,}|\d+\.\d*0", re.ASCII)
"""Versions that as numbers would be others, as 1.10 would be 1.1."""
_RECURRING: Final = 0.8
"""Share of parts that occur in several values, in a field of several values."""
_LONGEST_PART: Final = 60
"""Characters of such a part, at most."""

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

_LOCAL: Final = (
    LocalForms(decimal="comma"),
    LocalForms(decimal="point"),
    LocalForms(dates="day-first"),
    LocalForms(dates="month-first"),
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
MAX_MISMATCHES: Final = 10_000
"""Limit of values of another type in a detected field."""


class FieldCandidate:
    """A type that a field may have, and how far its values fit.

    coerce   returns a value as a column of the type stores it
    fitting  values of its type, repeated ones included
    mismatches
             values of another type, except conventional placeholders for missing values
    codes    those of the mismatches that are codes, such as strings of digits
    type_mismatches
             documents with a value that does not fit
    reason   description of the first mismatch, or why it is rejected
    first_mismatch
             its value, and the origin of its document
    Memory: the distinct texts of a keyword field.
    """

    def __init__(self, kind: FieldType, max_texts: int, coerce: Callable[[object], Any]) -> None:
        self.kind: FieldType = kind
        self.coerce, self.max_texts = coerce, max_texts
        self.fitting = self.mismatches = self.codes = self.type_mismatches = 0
        self.reason: str | None = None
        self.first_mismatch: tuple[object, str] | None = None
        self.is_rejected = False
        self._texts: set[str] = set()

    def extend(self, flat: list[object], counts: list[int] | None, origins: Sequence[str]) -> None:
        """Add the values of a batch; reject the type if there are too many distinct texts."""
        values, misfits = coerced(self.coerce, flat, counts)
        self.fitting += len(values) - values.count(None)
        self.type_mismatches += len({document for document, *_ in misfits})
        for document, value, mismatch in misfits:
            if not is_placeholder(value):
                self.mismatches += 1
                self.codes += isinstance(mismatch, Code)
                self.reason = self.reason or str(mismatch)
                self.first_mismatch = self.first_mismatch or (value, origins[document])
        if self.kind == "keyword":
            self._texts.update(values)
            self._texts.discard(None)
            if len(self._texts) > self.max_texts:
                self.is_rejected = True
                self.reason = f"more than {self.max_texts:,} different texts"

    def separator(self, *, is_list: bool) -> str | None:
        """Return the sign that divides values into parts that recur; None without one.

        is_list  whether the field has a name for lists, so that the sign alone is enough
        """
        if any(text.startswith(("[", "{")) for text in self._texts):  # JSON
            return None
        for sign in ";|,":
            divided = [text.split(sign) for text in self._texts if sign in text.strip(sign)]
            parts = Counter(part.strip() for texts in divided for part in texts)
            recurring = sum(count for count in parts.values() if count > 1)
            if divided and (is_list or recurring >= _RECURRING * parts.total()):
                return sign if len(max(parts, key=len)) <= _LONGEST_PART else None
        return None


class DetectedField:
    """One field, with a candidate for each type that it may have.

    unit  of its numbers, by the settings or the first value
    keeps_empty  whether it is a column also if all values are missing; it has a type then
    """

    def __init__(self, name: str, forms: LocalForms, *, declared: bool = False) -> None:
        self._forms = forms
        self.unit, self.keeps_empty = forms.unit(name), declared
        self._local: dict[LocalForms, FieldCandidate] = {}  # with one form each
        self._signs: set[DecimalSign] = set()  # decimal signs that its numbers show
        self._points: bool | None = None  # whether all numbers with a point may be thousands
        self._name, self._declared = name, declared
        self._may_have_versions, self._has_versions = names_versions(name), False
        self._kinds: dict[str, None] = {}  # of its values, in order of appearance
        self._decided = False
        self._candidates: dict[FieldType, FieldCandidate] = {}
        self._first: tuple[object, str] | None = None  # value, and origin of its document

    def extend(self, batch: list[object], type_: FieldType | None, origins: Sequence[str]) -> None:
        """Look at the values of a batch, None for a document without one.

        origins  of its documents, as "file:line"
        """
        if self._candidates and not self._open_candidates:
            return
        flat, counts = flattened(batch)
        if not flat and not self._candidates:
            return
        if self._first is None:
            at = 0 if counts is None else next(at for at, count in enumerate(counts) if count)
            self._first = flat[0], origins[at]
        self._kinds |= dict.fromkeys(
            _NAMED.get(type_, NESTED) for type_ in dict.fromkeys(map(type, flat))
        )
        if self._may_have_versions and not self._has_versions:
            texts = (item.strip() for item in flat if isinstance(item, str))
            self._has_versions = any(map(_VERSION.fullmatch, texts))
        if not self._candidates:
            self.unit = self.unit or unit_of(flat)
            self._begin(_CANDIDATES if type_ is None else (type_,))
        for candidate in self._open_candidates:
            if type_ is None and _NUMBERS in self._kinds and candidate.kind != "number":
                candidate.is_rejected = True
                continue
            candidate.extend(flat, counts, origins)
            candidate.is_rejected |= type_ is None and candidate.mismatches > MAX_MISMATCHES
        self._extend_local(flat, counts, origins)
        if not self._open_candidates and self._declared and type_ is not None:
            raise CollectionError(
                f"the {type_} field {self._name!r} has {self._candidates[type_].reason}; remove "
                "its declaration, or shorten its values"
            )

    @property
    def _open_candidates(self) -> list[FieldCandidate]:
        return [candidate for candidate in self._candidates.values() if not candidate.is_rejected]

    def _extend_local(
        self, flat: list[object], counts: list[int] | None, origins: Sequence[str]
    ) -> None:
        """Append values to the candidates in local forms, as long as they may be needed."""
        if self._local and _NUMBERS in self._kinds:
            self._local = {}
        for forms, candidate in list(self._local.items()):
            candidate.extend(flat, counts, origins)
            if candidate.mismatches > MAX_MISMATCHES:
                del self._local[forms]
        if any(forms.decimal for forms in self._local):
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
            if not self._signs and not numbers.mismatches and numbers.fitting > MAX_MISMATCHES:
                self._local = {forms: c for forms, c in self._local.items() if forms.dates}

    def local_forms(self) -> LocalForms:
        """Return the forms that the values of the field show."""
        fits = [forms for forms, c in self._local.items() if self._fits(c, None)]
        signs = self._signs if any(forms.decimal for forms in fits) else set()
        mismatches = {forms: c.mismatches for forms, c in self._local.items() if forms.dates}
        fewest = min(mismatches.values(), default=0)
        best = [forms for forms, count in mismatches.items() if count == fewest]
        is_clear = len(best) == 1 and best[0] in fits
        sign = next(iter(signs)) if len(signs) == 1 else None
        return LocalForms(best[0].dates if is_clear else None, sign)

    def chosen(self, type_: FieldType | None, forms: LocalForms = GENERAL) -> FieldCandidate | None:
        """Return the column of the field; None if it is not filterable.

        A field with JSON numbers is a number field if most of its values are numbers. A field of
        strings has the first type that fits 99 of 100 of them; the rest counts as missing.
        Placeholders such as "N/A" are ignored, except by a keyword field, where they are values.
        A single code such as 00123 makes a field of numeric strings a keyword field, and so does a
        version such as 1.10 in a field that is named for versions.
        """
        if self.keeps_empty and not self._candidates and type_ is not None:
            self._begin((type_,))
        self._decided = forms.decimal is not None
        if type_ is None:
            for local, candidate in self._local.items():
                decided = local in (LocalForms(forms.dates), LocalForms(None, forms.decimal))
                if (
                    decided
                    and self._fits(candidate, None)
                    and not any(
                        general.kind == candidate.kind
                        and general.mismatches < candidate.mismatches
                        and self._fits(general, None)
                        for general in self._open_candidates
                    )
                ):
                    return candidate
        return next(
            (candidate for candidate in self._open_candidates if self._fits(candidate, type_)), None
        )

    def reason(self) -> str:
        """Return why the field is not filterable."""
        kinds = list(self._kinds)
        if NESTED in kinds or (_NUMBERS in kinds and len(kinds) > 1):
            return " and ".join(kinds)
        last: FieldType = "number" if _NUMBERS in kinds else "keyword"
        candidate = self._candidates.get(last)
        return (candidate and candidate.reason) or NO_VALUE

    def hint(self, chosen: FieldCandidate | None) -> str | None:
        """Return what is unexpected about the detected type of the field; None if nothing is."""
        if chosen is None or self._first is None:
            return None
        if chosen.type_mismatches and chosen.first_mismatch:
            documents = "document has" if chosen.type_mismatches == 1 else "documents have"
            return (
                f"is a {chosen.kind} field: {chosen.type_mismatches:,} {documents} another value, "
                f"which counts as missing; the first is {_quoted(chosen.first_mismatch)}"
            )
        if chosen.kind == "number" and self.unit:
            return f"is a number field: its values are in {self.unit}"
        if chosen.kind == "date" and SHORT_YEAR.fullmatch(str(self._first[0]).strip()):
            first = _quoted(self._first)
            return f"is a date field: years of two digits, as of {first}, are from 1969 to 2068"
        if chosen.kind == "date" and may_be_two_years(str(self._first[0]).strip()):
            return (
                f"is a date field: {_quoted(self._first)} is read as a month; "
                f"{option('field', f'{self._name}:keyword')} keeps it"
            )
        if chosen.kind == "number" and self._points and not self._decided:
            return (
                "is a number field: all numbers with a point are as 1.250, and are read as 1.25; "
                "--decimal comma reads them as thousands (in Python decimal=)"
            )
        unit = epoch_unit(self._first[0]) if chosen.kind == "number" else ""
        if unit and _TIME_NAME.search(self._name):
            return (
                f"is a number field: {_quoted(self._first)} may be a time in {unit} since 1970; "
                f"{option('field', f'{self._name}:date')} reads it as one"
            )
        is_time = chosen.kind == "number" and _TIME_NAME.search(self._name)
        if is_time and _SERIAL.fullmatch(str(self._first[0]).strip()):
            return (
                f"is a number field: {_quoted(self._first)} may be a day as spreadsheets count "
                "them; format the column as a date there, and export it again"
            )
        if chosen.kind != "keyword":
            return None
        numbers = self._candidates.get("number")
        if self.unit and numbers and numbers.first_mismatch not in (None, self._first):
            first, other = _quoted(self._first), _quoted(numbers.first_mismatch)
            return (
                f"is a keyword field: it has {first} and {other}; a number field needs one "
                "currency or sign"
            )
        for kind, pattern, fix in _LOCAL_FORMS:
            if isinstance(self._first[0], str) and pattern.fullmatch(number_of(self._first[0])):
                return f"is a keyword field: {self._ambiguity(kind, fix)}"
        for candidate in self._open_candidates:
            if candidate.first_mismatch and candidate.fitting >= _NEARLY * candidate.mismatches:
                every = candidate.fitting + candidate.mismatches
                return (
                    f"is a keyword field: {candidate.fitting:,} of {every:,} values are "
                    f"{candidate.kind}s, but not {_quoted(candidate.first_mismatch)}; correct the "
                    f"others for a {candidate.kind} field"
                )
        if separator := chosen.separator(is_list=_LIST_NAME.search(self._name) is not None):
            return (
                "is a keyword field: its values look like several with a "
                f"{separator!r} between them; {option('split', f'{self._name}={separator}')} "
                "divides them (in Python split=)"
            )
        return None

    def _ambiguity(self, kind: str, fix: str) -> str:
        """Return why values that begin with an ambiguous form are no numbers or dates."""
        assert self._first is not None
        first = _quoted(self._first)
        local = [candidate for candidate in self._local.values() if candidate.kind == kind]
        fitting = [candidate for candidate in local if self._fits(candidate, None)]
        if len(fitting) == 1:
            return f"{kind}s such as {first} are written otherwise in other fields; {fix}"
        nearest = min(local, key=lambda candidate: candidate.mismatches, default=None)
        if fitting or nearest is None or nearest.first_mismatch is None or not nearest.fitting:
            return f"{first} could be two {kind}s; {fix}"
        every = nearest.fitting + nearest.mismatches
        return (
            f"{nearest.fitting:,} of {every:,} values are {kind}s such as {first}, but not "
            f"{_quoted(nearest.first_mismatch)}; correct the others for a {kind} field"
        )

    def _fits(self, candidate: FieldCandidate, type_: FieldType | None) -> bool:
        if type_ is not None:
            return self.keeps_empty or candidate.fitting > 0 or candidate.type_mismatches > 0
        if candidate.kind == "number" and _NUMBERS not in self._kinds and self._has_versions:
            return False
        if _NUMBERS in self._kinds:
            return candidate.fitting > candidate.mismatches
        fits = candidate.fitting >= _MIN_FITTING * candidate.mismatches
        return candidate.fitting > 0 and not candidate.codes and fits

    def _begin(self, types: Sequence[FieldType]) -> None:
        most = limits_of(declared=self._declared).texts
        declared, unit = self._declared, self.unit
        for kind in types:
            coerce = coercion(kind, declared=declared, forms=self._forms, unit=unit)
            self._candidates[kind] = FieldCandidate(kind, most, coerce)
        if len(types) > 1 and not self._declared:
            for forms in _LOCAL:
                if not (self._forms.dates if forms.dates else self._forms.decimal):
                    coerce = local_candidate(forms, unit)
                    kind = "date" if forms.dates else "number"
                    self._local[forms] = FieldCandidate(kind, most, coerce)


def _quoted(example: tuple[object, str]) -> str:
    value, origin = example
    text = repr(value)
    return f"{text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'} in {origin}"
