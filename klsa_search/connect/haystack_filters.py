"""Filters of Haystack as those of an index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Final

from klsa_search.extras import require
from klsa_search.search.filters.tree import Condition, Every, Filter, Not, Some
from klsa_search.store.fields.columns import Field, Fields
from klsa_search.store.fields.values import TAKE, Misfit

try:
    from haystack.errors import FilterError
except ModuleNotFoundError:
    require("haystack")
    raise

_ALL: Final = Every(())
_NONE: Final = Some(())


def filter_of(given: Mapping[str, Any], fields: Fields, reserved: Collection[str]) -> Filter:
    """Read a filter of Haystack: `{"field": "meta.year", "operator": ">=", "value": 2020}`.

    reserved  names of meta that are no columns
    A document without a value passes `!=` and `not in`, and `==` None. A value of another type than
    the field's equals none. FilterError for what is malformed, for bounds that are no numbers or
    dates, and for meta that is no column, with the reason.
    """
    if not isinstance(given, Mapping):
        raise FilterError(f"{given!r} is not a filter; give a dictionary")
    if "field" in given:
        return _comparison(given, fields, reserved)
    joined = _part(given, "operator")
    conditions = _part(given, "conditions")
    if joined not in ("AND", "OR", "NOT") or not isinstance(conditions, list):
        raise FilterError(f"{given!r}: give AND, OR or NOT, and a list of conditions")
    parts = tuple(filter_of(each, fields, reserved) for each in conditions)
    if joined == "OR":
        return Some(parts)
    return Not(Every(parts)) if joined == "NOT" else Every(parts)


def _comparison(given: Mapping[str, Any], fields: Fields, reserved: Collection[str]) -> Filter:
    operator, value = _part(given, "operator"), _part(given, "value")
    if operator not in _OPERATORS:
        raise FilterError(
            f"unknown operator {operator!r}; the operators are: {', '.join(_OPERATORS)}"
        )
    written = str(given["field"])
    name = written.removeprefix("meta.")
    if name in reserved or (name == written and name in ("content", "embedding", "blob", "score")):
        raise FilterError(f"field {written!r} is not filterable; use other fields of meta")
    if name not in fields:
        for part in (name, name.partition(".")[0]):
            if part in fields.others:
                raise FilterError(
                    f"field {written!r} is not filterable ({fields.others[part]}); "
                    "declare it with `fields` when the store is created"
                )
    return _OPERATORS[operator](name, fields.get(name), value)


def _part(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise FilterError(f"{given!r} has no {name!r}")
    return given[name]


def _equal(name: str, field: Field | None, value: Any) -> Filter:
    if field is None:
        return _ALL if value is None else _NONE
    if value is None:
        return Not(Condition(name, "EXISTS"))
    taken = _taken(field, value)
    return _NONE if taken is None else Condition(name, "=", (taken,))


def _among(name: str, field: Field | None, values: Any) -> Filter:
    if not isinstance(values, list):
        raise FilterError(f"field {name!r}: {values!r} is not a list of values")
    return Some(tuple(_equal(name, field, value) for value in values))


def _bound(comparison: Any) -> Callable[[str, Field | None, Any], Filter]:
    def bounded(name: str, field: Field | None, value: Any) -> Filter:
        if value is None:
            return _NONE
        if isinstance(value, bool | list) or (isinstance(value, str) and not _is_date(value)):
            raise FilterError(f"field {name!r}: {value!r} is neither a number nor a date")
        if field is None:
            return _NONE
        taken = _taken(field, value)
        if taken is None or field.type == "keyword":
            raise FilterError(
                f"field {name!r} is a {field.type} field, and {value!r} is not a bound for it"
            )
        return Condition(name, comparison, (taken,))

    return bounded


def _taken(field: Field, value: Any) -> Any:
    """A value as the filters of an index take it; None for one that the field cannot have."""
    if isinstance(value, datetime):
        value = value.isoformat()
    if field.type == "number" and (isinstance(value, str | bool)):
        return None  # where a text of digits would be read as a number
    try:
        TAKE[field.type](value)
    except Misfit:
        return None
    return value


def _is_date(value: str) -> bool:
    try:
        return TAKE["date"](value) is not None
    except Misfit:
        return False


_OPERATORS: Final[Mapping[str, Callable[[str, Field | None, Any], Filter]]] = {
    "==": _equal,
    "!=": lambda name, field, value: Not(_equal(name, field, value)),
    ">": _bound(">"),
    ">=": _bound(">="),
    "<": _bound("<"),
    "<=": _bound("<="),
    "in": _among,
    "not in": lambda name, field, values: Not(_among(name, field, values)),
}
