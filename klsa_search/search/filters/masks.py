"""From a filter to the documents it lets through."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.forks import lock_free_in_children
from klsa_search.errors import QueryError
from klsa_search.search.engine.mask import Mask
from klsa_search.search.filters.conditions import (
    And,
    Condition,
    Filter,
    Not,
    Or,
    Value,
    in_postorder,
)
from klsa_search.search.filters.json_form import filter_of_mapping
from klsa_search.search.filters.text import filter_of_text
from klsa_search.storage.columns.columns import Field, Fields, RangeMask, column_predicate
from klsa_search.storage.columns.values import NUMBER

Allowed = npt.NDArray[np.bool_]
Given = str | Mapping[str, Any] | Filter
"""A filter as users give it."""

_REMEMBERED: Final = 2**25
"""Bytes of masks that are remembered."""
_OVERHEAD: Final = 2**11
"""Approximate bytes of a mask besides its bits: the filter and Python objects."""


def mask_of(filter_: Filter, fields: Fields, size: int) -> Mask:
    """Documents that a filter lets through, of `size`.

    A condition lets through the documents of which some value is what is asked for; one without a
    value is let through by no condition, and by the opposite of each. QueryError for a field that
    is no column, and a value of another type. Cost: .2 ms a million values, each condition.
    """
    steps = [
        (_finding(fields.filterable(one.field, "filter"), one), one)
        if isinstance(one, Condition)
        else (None, one)
        for one in in_postorder(filter_)
    ]

    def found(first: int, after: int) -> Allowed:
        held: list[Allowed] = []  # each made here, so that it may be written over
        for find, one in steps:
            if find is not None:
                held.append(find(first, after))
            elif isinstance(one, Not):
                np.logical_not(held[-1], out=held[-1])
            elif isinstance(one, And | Or):
                begin = len(held) - len(one.parts)
                every = isinstance(one, And)
                joined = held[begin] if one.parts else np.full(after - first, every, np.bool_)
                for part in held[begin + 1 :]:
                    if every:
                        joined &= part
                    else:
                        joined |= part
                held[begin:] = [joined]
        return held[0]

    return Mask.found(found, size)


class Masks:
    """Masks of the filters of one state of an index; remembers those of the last filters.

    Safe to share between threads: two that ask for a new one at once make the same.
    """

    def __init__(self, fields: Fields, size: int) -> None:
        self._fields, self._size = fields, size
        self._most = max(1, _REMEMBERED // (size // 8 + _OVERHEAD))
        self._made: OrderedDict[tuple[str, str], Mask] = OrderedDict()
        self._lock = lock_free_in_children()

    def of(self, given: Given) -> Mask:
        """Mask of a filter, as text, as JSON or read. See `mask_of`.

        Cost: 1 µs where it was asked for before.
        """
        key = _key(given)
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        mask = mask_of(_read(given), self._fields, self._size)
        with self._lock:
            self._made[key] = mask
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        return mask


def _read(given: Given) -> Filter:
    if isinstance(given, str):
        return filter_of_text(given)
    if isinstance(given, Mapping):
        return filter_of_mapping(given)
    return given


def _key(given: Given) -> tuple[str, str]:
    """Find what is the same for the same filter only."""
    if isinstance(given, str):
        return "text", given
    if isinstance(given, Mapping):
        try:
            return "json", json.dumps(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise QueryError(f"filter: not valid JSON ({error})", field="filter") from None
    if not isinstance(given, Condition | And | Or | Not):
        raise QueryError(
            f"filter = {given!r} is not a filter; give a text or a mapping", field="filter"
        )
    in_postorder(given)  # within its limits it can be written
    return "tree", repr(given)


def _finding(field: Field, condition: Condition) -> RangeMask:
    find = column_predicate(field)
    values = [_typed(field, value) for value in condition.values]
    try:
        match condition.comparison:
            case "=" | "IN":
                return find.any_of(values)
            case "CONTAINS":
                return find.containing(str(values[0]))
            case "EXISTS":
                return find.present()
            case "TO":
                return find.between(*values)
            case "<":
                return find.between(None, values[0], inclusive="neither")
            case "<=":
                return find.between(None, values[0])
            case ">":
                return find.between(values[0], None, inclusive="neither")
            case ">=":
                return find.between(values[0], None)
    except QueryError as error:
        raise QueryError(f"filter: {error.message}", field="filter") from None


def _typed(field: Field, value: Value) -> Value:
    """Read a text as a number where the field holds numbers: in a filter's text all is text."""
    if field.type == "number" and isinstance(value, str) and NUMBER.fullmatch(value):
        return float(value) if re.search("[.eE]", value) else int(value)
    return value
