"""Filters as JSON: `{"and": [{"field": "year", ">=": 2020}, {"not": {"field": "seen", ...}}]}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import Repr
from typing import Any, Final

from klsa_search.errors import QueryError
from klsa_search.search.filters.conditions import (
    MAX_DEPTH,
    And,
    Condition,
    Filter,
    Not,
    Or,
    Value,
)

_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_SYNTAX: Final = (
    '{"and": [...]}, {"or": [...]}, {"not": {...}} or {"field": NAME, COMPARISON: VALUE}, where a '
    "comparison is =, !=, <, <=, >, >=, to, in, contains, exists or null"
)


def filter_of_mapping(mapping: object) -> Filter:
    """Read a filter; several comparisons of one field must all be true.

    Values are those of the text form, as JSON types: `to` takes [low, high], `in` a list, `exists`
    and `null` true or false. QueryError for anything else.

    >>> filter_of_mapping({"field": "year", ">=": 2020, "<": 2024})
    And(parts=(Condition(field='year', comparison='>=', ...), Condition(field='year', ...)))
    """
    return _read(mapping, 1)


def _read(mapping: object, depth: int) -> Filter:
    if depth > MAX_DEPTH:
        raise _invalid(f"nested more than {MAX_DEPTH} levels deep; flatten it")
    if not isinstance(mapping, Mapping):
        raise _invalid(f"{_repr(mapping)} is not a filter; give {_SYNTAX}")
    if "field" in mapping:
        return _condition(mapping)
    if len(mapping) != 1 or (operator := next(iter(mapping))) not in ("and", "or", "not"):
        raise _invalid(f"{_repr(dict(mapping))} is not a filter; give {_SYNTAX}")
    operands = mapping[operator]
    if operator == "not":
        part = _read(operands, depth + 1)
        return part.part if isinstance(part, Not) else Not(part)
    if not isinstance(operands, list | tuple):
        raise _invalid(f"{operator!r} is {_repr(operands)}; give a list of filters")
    parts = tuple(_read(part, depth + 1) for part in operands)
    return And(parts) if operator == "and" else Or(parts)


def _condition(mapping: Mapping[Any, Any]) -> Filter:
    name = mapping["field"]
    if not isinstance(name, str):
        raise _invalid(f"'field' is {_repr(name)}; give the name of a field")
    parts = []
    for comparison, value in mapping.items():
        if comparison == "field":
            continue
        if comparison not in _COMPARISONS:
            raise _invalid(f"unknown comparison {_repr(comparison)}; give {_SYNTAX}")
        parts.append(_COMPARISONS[comparison](name, value))
    if not parts:
        raise _invalid(f"field {_repr(name)} has no comparison; give {_SYNTAX}")
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _scalar(name: str, value: object) -> Value:
    if not isinstance(value, str | int | float):
        raise _invalid(f"field {_repr(name)}: {_repr(value)} is not a text, number, true or false")
    return value


def _scalars(name: str, values: object) -> tuple[Value, ...]:
    if not isinstance(values, list | tuple):
        raise _invalid(f"field {_repr(name)}: {_repr(values)} is not a list of values")
    return tuple(_scalar(name, value) for value in values)


def _between(name: str, values: object) -> Filter:
    bounds = _scalars(name, values)
    if len(bounds) != 2:
        raise _invalid(f"field {_repr(name)}: 'to' takes a list of two values, not {len(bounds)}")
    return Condition(name, "TO", bounds)


def _exists(name: str, value: object) -> Filter:
    if not isinstance(value, bool):
        raise _invalid(f"field {_repr(name)}: {_repr(value)} is neither true nor false")
    present = Condition(name, "EXISTS")
    return present if value else Not(present)


def _missing(name: str, value: object) -> Filter:
    condition = _exists(name, value)
    return condition.part if isinstance(condition, Not) else Not(condition)


_COMPARISONS: Final[dict[object, Callable[[str, Any], Filter]]] = {
    "=": lambda name, value: Condition(name, "=", (_scalar(name, value),)),
    "!=": lambda name, value: Not(Condition(name, "=", (_scalar(name, value),))),
    "<": lambda name, value: Condition(name, "<", (_scalar(name, value),)),
    "<=": lambda name, value: Condition(name, "<=", (_scalar(name, value),)),
    ">": lambda name, value: Condition(name, ">", (_scalar(name, value),)),
    ">=": lambda name, value: Condition(name, ">=", (_scalar(name, value),)),
    "to": _between,
    "in": lambda name, values: Condition(name, "IN", _scalars(name, values)),
    "contains": lambda name, value: Condition(name, "CONTAINS", (_scalar(name, value),)),
    "exists": _exists,
    "null": _missing,
}


def _invalid(reason: str) -> QueryError:
    return QueryError(f"filter: {reason}", field="filter")


def _repr(value: object) -> str:
    written = _SHORT.repr(value)  # limits the depth
    return written if len(written) <= 60 else written[:60] + "..."
