"""Metadata fields of documents that come after a build, behind the columns of the build.

A field that the build made a column keeps its type. One that it met without making it a column
stays none; one that no document had before is found by itself among the later documents, as a build
finds it. Where a living document holds a value that does not fit, a field is no column while that
document is there: what is told of a field follows from the build and the documents that live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection import Document
from klsa_search.config import MOST_FIELDS, FieldType
from klsa_search.growing import Growing
from klsa_search.store.fields.columns import Field, Fields
from klsa_search.store.fields.declared import shown
from klsa_search.store.fields.finding import Mask
from klsa_search.store.fields.joined import JoinedField
from klsa_search.store.fields.making import KEPT, in_order
from klsa_search.store.fields.texts import texts_of
from klsa_search.store.fields.values import DECLARED, FOUND, TAKE, Limits, Misfit, elements, plain
from klsa_search.store.fields.writing import NAME, NAMED, NESTED, NO_VALUE, TYPES
from klsa_search.store.manifest import FieldsEntry

_BITS: Final = {kind: 1 << bit for bit, kind in enumerate((*TYPES, NESTED))}
"""What a document holds, as one number: a bit for each kind of value."""

_Parts = Sequence[tuple[int, Field]]


class LaterFields:
    """The fields of later documents. One thread appends; what was given out stays as it is.

    built     columns of the build
    entry     what the manifest says of its fields
    declared  fields that were declared, with their types
    first     position of the first later document
    Memory: 20 bytes a value, and the texts.
    """

    def __init__(
        self,
        built: Fields,
        entry: FieldsEntry,
        declared: Mapping[str, FieldType | None],
        first: int,
    ) -> None:
        self._built, self._first = built, first
        self._ids: list[str] = []
        # A name that was not looked at may be one that documents of the build have.
        self._room = 0 if entry.more else MOST_FIELDS - len(entry.columns) - len(entry.others)
        self._others = {n: why for n, why in entry.others.items() if why != NO_VALUE}
        self._columns = {
            name: _Column(name, (column.type,), built[name], declared=name in declared)
            for name, column in entry.columns.items()
        }
        for name in entry.others.keys() - self._others.keys():
            self._columns[name] = _Column(name, tuple(TAKE), None)

    def extend(self, documents: Sequence[Document]) -> None:
        """Go on by the next documents. Cost: 3 µs a value."""
        found = [plain(document.metadata) for document in documents]
        for metadata in found:
            for name in sorted(metadata.keys() - self._columns.keys() - self._others.keys()):
                if self._room > 0 and len(name) <= NAME:
                    self._columns[name] = _Column(name, tuple(TAKE), None, len(self._ids))
                    self._room -= 1
        self._ids += [document.id for document in documents]
        for name, column in self._columns.items():
            column.extend([metadata.get(name) for metadata in found])

    def fields(self, living: Mask) -> Fields:
        """Return the fields of the documents there are now: `living` says which positions hold one.

        Cost: 1 ns a later document and field; columns are made when they are first asked for.
        """
        columns: dict[str, Field] = {}
        others = dict(self._others)
        for name, column in sorted(self._columns.items()):
            kind, why = column.chosen(living[self._first :], self._ids)
            if kind is None:
                others[name] = why
            else:
                parts = partial(_parts, column.built, column.part(kind), self._first)
                columns[name] = JoinedField(name, kind, parts, living)
        return Fields(columns, others)


def _parts(built: Field | None, later: Callable[[], Field], first: int) -> _Parts:
    return [*([(0, built)] if built is not None else []), (first, later())]


class _Column:
    """One field of later documents: the columns that it may become."""

    def __init__(
        self,
        name: str,
        types: Sequence[FieldType],
        built: Field | None,
        passed: int = 0,
        *,
        declared: bool = False,
    ) -> None:
        self.built = built
        self._kinds = Growing(np.uint8)
        self._kinds.extend(np.zeros(passed, np.uint8))
        self._any = declared
        limits = DECLARED if declared else FOUND
        self._may_be = {kind: _Making(name, kind, limits, passed) for kind in types}

    def extend(self, batch: Sequence[object]) -> None:
        """Go on by the value of each document, None where it has none."""
        held = [elements(value) for value in batch]
        self._kinds.extend(np.array([_kinds(each) for each in held], np.uint8))
        for making in self._may_be.values():
            making.extend(held)

    def chosen(self, living: Mask, ids: Sequence[str]) -> tuple[FieldType | None, str]:
        """Type of the column that the field is; None and why if it is none."""
        types = list(self._may_be)
        if not self._any:
            name, wrong = self._kind(living)
            if wrong is not None:
                return None, f"{name} (document {ids[wrong]!r})"
            if self.built is None:
                types = list(TYPES.get(name, ()))
        why = NO_VALUE
        for kind in types:
            misfit = self._may_be[kind].misfit(living)
            if misfit is not None:
                position, reason = misfit
                why = f"{reason} (document {ids[position]!r})"
            elif self.built is not None or self._may_be[kind].values(living):
                return kind, ""
        return None, why

    def part(self, kind: FieldType) -> Callable[[], Field]:
        """What makes the column of the later documents there are now."""
        return self._may_be[kind].part()

    def _kind(self, living: Mask) -> tuple[str, int | None]:
        """The kind that all values are of; or the kinds, and the first document of another."""
        kinds = self._kinds.held * living
        held = np.flatnonzero(kinds)
        if not len(held):
            return "", None
        before = _kinds_built(self.built) or _named(int(kinds[held[0]]))[:1]
        for name in before:
            if name != NESTED and (kinds[held] == _BITS[name]).all():
                return name, None
        wrong = held[np.argmax((kinds[held] != _BITS[before[0]]) | (before[0] == NESTED))]
        every = int(np.bitwise_or.reduce(kinds[held])) | _BITS[before[0]]
        return " and ".join(_named(every)), int(wrong)


def _kinds_built(built: Field | None) -> list[str]:
    """Kinds of values that a column of the build may have been found from."""
    if built is None:
        return []
    if built.type == "keyword" and {*built.texts[:3]} <= {"true", "false"}:
        return ["texts", "true or false"]
    return ["numbers" if built.type == "number" else "texts"]


class _Making:
    """Values of one type; a document with one that does not fit holds none, and is remembered."""

    def __init__(self, name: str, kind: FieldType, limits: Limits, passed: int) -> None:
        self._name, self._kind, self._limits = name, kind, limits
        self._values, self._starts = Growing(KEPT[kind]), Growing(np.int64)
        self._starts.extend(np.zeros(passed + 1, np.int64))
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._misfits, self._reasons = Growing(np.int64), list[str]()

    def extend(self, held: Sequence[list[Any]]) -> None:
        """Go on by the values of each document."""
        taken: list[Any] = []
        ends: list[int] = []
        for values in held:
            if values:
                taken += self._taken(values, len(self._starts) - 1 + len(ends))
            ends.append(len(self._values) + len(taken))
        self._values.extend(np.array(taken, KEPT[self._kind]))
        self._starts.extend(np.array(ends, np.int64))

    def _taken(self, values: list[Any], position: int) -> list[Any]:
        take, fits = TAKE[self._kind], []
        for value in values:
            try:
                fits.append(take(value))
                if self._kind == "keyword":
                    self._fit(fits[-1])
            except Misfit as misfit:
                self._misfits.extend(np.array([position]))
                self._reasons.append(f"{shown(value)}, which is {misfit}")
                return []
        fits = in_order(fits, [len(fits)])[0]
        if self._kind != "keyword":
            return fits
        for text in fits:
            if text not in self._numbers:
                self._numbers[text] = len(self._texts)
                self._texts.append(text)
        return [self._numbers[text] for text in fits]

    def _fit(self, text: str) -> None:
        if len(text) > self._limits.characters:
            raise Misfit(f"a text of more than {self._limits.characters:,} characters")
        if text not in self._numbers and len(self._texts) >= self._limits.texts:
            raise Misfit(f"beyond {self._limits.texts:,} different texts")

    def misfit(self, living: Mask) -> tuple[int, str] | None:
        """The first living document that does not fit, and why."""
        misfits = self._misfits.held
        alive = np.flatnonzero(living[misfits])
        return (int(misfits[alive[0]]), self._reasons[alive[0]]) if len(alive) else None

    def values(self, living: Mask) -> bool:
        """Whether a living document has a value."""
        return bool((np.diff(self._starts.held) * living).any())

    def part(self) -> Callable[[], Field]:
        """What makes the column of the documents there are now."""
        held = self._values.held, self._starts.held, len(self._texts)
        return lambda: self._part(*held)

    def _part(self, values: npt.NDArray[Any], starts: npt.NDArray[np.int64], texts: int) -> Field:
        known = self._texts[:texts]
        if self._kind == "keyword":
            order = sorted(range(texts), key=known.__getitem__)
            codes = np.empty(texts, np.int32)
            codes[order] = np.arange(texts, dtype=np.int32)
            values, known = codes[values], [known[number] for number in order]
        missing = int(np.count_nonzero(np.diff(starts) == 0))
        return Field(self._name, self._kind, missing, values, starts, texts_of(known))


def _kinds(values: Sequence[object]) -> int:
    return sum({_BITS[NAMED.get(type(value), NESTED)] for value in values})


def _named(kinds: int) -> list[str]:
    return [name for name, bit in _BITS.items() if kinds & bit]
