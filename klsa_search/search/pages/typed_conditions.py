"""Conditions on fields that are typed as words of a query: price < 50, price:10..50, 15.03.2024.

A query has no conditions, as texts have such signs as well: its words are searched, and a filter is
suggested.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from klsa_search.errors import QueryError
from klsa_search.search.filters.parser import Condition, Not, text_of
from klsa_search.search.state.state import State
from klsa_search.storage.columns.columns import Field
from klsa_search.storage.columns.local_forms import local_date, number_of

LONGEST: Final = 4
"""Words of a name or value, at most."""

MAX_DATE_FIELDS: Final = 16
"""Fields in which a date is looked for, at most."""

SIGN: Final = re.compile(  # begins before all blanks, as queries may have thousands
    r"(?<!\s)(?:\s*(?::\s*)?(?P<sign><=|>=|=<|=>|!=|<>|==|[=<>≤≥≠])|\s*:(?!//)"
    r"|(?=\s+[\d.,-]+\.\.))"
)
"""What may follow the name of a field; nothing before a range."""
_SAME: Final = {
    "": "=", "==": "=", "≤": "<=", "=<": "<=", "≥": ">=", "=>": ">=", "<>": "!=", "≠": "!=",
}  # fmt: skip
RANGE: Final = re.compile(
    r"\s*(?:\[\s*)?(?!\s)(?P<low>[^\s\[\]]*?)(?:\.\.\.?|…|\s+TO\s+)(?P<high>[^\s\[\]]*)\]?"
)
_OPEN: Final = frozenset({"", "*"})
_QUOTED: Final = re.compile(r'\s*"([^"]+)"')
_WORD: Final = re.compile(r"\S+")
_AROUND: Final = "+(),;!?\"'“”‘’«»"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DAY: Final = len("2024-03-15")


class TypedCondition(NamedTuple):
    """A condition that was typed.

    written  as in the query
    field    its name
    counts   numbers of documents, by what it is as a filter: one condition, or several with values
             in another case
    """

    written: str
    field: str
    counts: Counter[str]


def typed_conditions(state: State, text: str) -> Iterator[TypedCondition]:
    """Yield the conditions of a text, of fields that are filterable in one part of an index.

    Values of another type than that of the field, and the values of keyword fields after a colon,
    make none. Cost: 1 µs for a text without a sign, and a mask for each condition.
    """
    after = 0
    for sign in SIGN.finditer(text):
        if sign.start() < after or (name := _name_before(state, text, after, sign.start())) is None:
            continue
        begin, field = name
        if sign["sign"] is None and field.type == "keyword":
            continue
        comparison = _SAME.get(sign["sign"] or "", sign["sign"])
        read = [
            (end, counts)
            for end, filter_ in _filters(state, field, comparison, text, sign.end())
            if (counts := _counts(state, field, filter_)) is not None
        ]
        if read:
            after, counts = next(((end, counts) for end, counts in read if +counts), read[-1])
            yield TypedCondition(text[begin:after], field.name, counts)


def typed_dates(state: State, text: str) -> Iterator[TypedCondition]:
    """Yield conditions that a field of dates is a day or month which a text names.

    Cost: 50 µs for each word with a digit, if there are fields of dates.
    """
    fields = [field for field in state.fields.values() if field.type == "date"]
    words = [*_WORD.finditer(text)] if 0 < len(fields) <= MAX_DATE_FIELDS else []
    after = 0
    for first, word in enumerate(words):
        for last in reversed(words[first : first + LONGEST]):
            written = text[word.start() : last.end()].strip(_AROUND)
            date = _date(state, written) if word.start() >= after else None
            if date is not None:
                after = last.end()
                for field in fields:
                    counts = _counts(state, field, Condition(field.name, "=", (date,)))
                    if counts is not None:
                        yield TypedCondition(written, field.name, counts)
                break


def _name_before(state: State, text: str, first: int, end: int) -> tuple[int, Field] | None:
    """Return where the name of a field begins that ends at a position, and the field."""
    words = [*_WORD.finditer(text, first, end)][-LONGEST:]
    for word in words:
        begin = word.end() - len(word[0].lstrip("+("))
        if names := state.fields.named(text[begin:end].strip()):
            return begin, state.fields[names[0]]
    return None


def _filters(
    state: State, field: Field, comparison: str, text: str, begin: int
) -> Iterator[tuple[int, Condition | Not]]:
    """Yield filters by the values that may begin at a position, and where these end."""
    if comparison == "=" and (bounds := RANGE.match(text, begin)):
        low, high = (
            None if bounds[end] in _OPEN else _value(state, field, bounds[end])
            for end in ("low", "high")
        )
        if low is not None and high is not None:
            yield bounds.end(), Condition(field.name, "TO", (low, high))
        elif low is not None or high is not None:
            filter_ = Condition(field.name, ">=" if high is None else "<=", (low or high or "",))
            yield bounds.end(), filter_
        return
    if quoted := _QUOTED.match(text, begin):
        yield quoted.end(), _compared(field.name, comparison, _value(state, field, quoted[1]))
        return
    words = [*_WORD.finditer(text, begin)][:LONGEST]
    for word in reversed(words):
        value = text[words[0].start() : word.end()].rstrip(_AROUND)
        if value:
            end = words[0].start() + len(value)
            yield end, _compared(field.name, comparison, _value(state, field, value))


def _compared(name: str, comparison: str, value: str) -> Condition | Not:
    match comparison:
        case "!=":
            return Not(Condition(name, "=", (value,)))
        case "=" | "<" | "<=" | ">" | ">=":
            return Condition(name, comparison, (value,))
    raise AssertionError(comparison)


def _value(state: State, field: Field, text: str) -> str:
    """Return a value as a filter has it: a number without its unit, a date in ISO 8601."""
    if field.type == "number":
        return number_of(text)
    return (_date(state, text) or text) if field.type == "date" else text


def _date(state: State, text: str) -> str | None:
    """Return a day or month in ISO 8601; None for any other text."""
    if not any(map(str.isdecimal, text)):
        return None
    date = text if _DATE.fullmatch(text) else local_date(text, state.fields.forms.dates)
    return date if date is not None and len(date) <= _DAY else None


def _counts(state: State, field: Field, filter_: Condition | Not) -> Counter[str] | None:
    """Return how many documents satisfy a filter, or if none, those with its value in another case.

    None if the value is not of the type of the field.
    """
    live = state.snapshot.live_docs()
    try:
        mask = state.filters.of(filter_)
    except QueryError:
        return None
    count = int(np.count_nonzero(mask.allowed & live))
    if not count and field.type == "keyword" and isinstance(filter_, Condition):
        alike = field.alike(str(filter_.values[0]), live)
        if alike:
            conditions = {value: replace(filter_, values=(value,)) for value in alike}
            return Counter({text_of(conditions[value]): alike[value] for value in alike})
    return Counter({text_of(filter_): count})
