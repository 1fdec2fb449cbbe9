"""Filters as JSON: `{"and": [{"field": "year", ">=": 2020}, {"not": {"field": "seen", ...}}]}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import Repr
from typing import Any, Final

from klsa_search.errors import QueryError
from klsa_search.search.filters.conditions import (
    MOST_NESTED,
    And,
    Condition,
    Filter,
    Not,
    Or,
    Value,
)

_BRIEF: Final = Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 60
_KINDS: Final = (
    '{"and": [...]}, {"or": [...]}, {"not": {...}} or {"field": NAME, COMPARISON: VALUE}, where a '
    "comparison is =, !=, <, <=, >, >=, to, in, contains, exists or null"
)


def filter_of_mapping(given: object) -> Filter:
    """Read a filter; of several comparisons of one field all must hold.

    Values are those of the text form, in JSON's types: `to` takes [low, high], `in` a list,
    `exists` and `null` true or false. QueryError for anything else.

    >>> filter_of_mapping({"field": "year", ">=": 2020, "<": 2024})
    Every(parts=(Condition(field='year', comparison='>=', ...), Condition(field='year', ...)))
    """
    return _read(given, 1)


def _read(given: object, depth: int) -> Filter:
    if depth > MOST_NESTED:
        raise _refused(f"nested more than {MOST_NESTED} levels deep; flatten it")
    if not isinstance(given, Mapping):
        raise _refused(f"{_shown(given)} is not a filter; give {_KINDS}")
    if "field" in given:
        return _condition(given)
    if len(given) != 1 or (joined := next(iter(given))) not in ("and", "or", "not"):
        raise _refused(f"{_shown(dict(given))} is not a filter; give {_KINDS}")
    inside = given[joined]
    if joined == "not":
        part = _read(inside, depth + 1)
        return part.part if isinstance(part, Not) else Not(part)
    if not isinstance(inside, list | tuple):
        raise _refused(f"{joined!r} is {_shown(inside)}; give a list of filters")
    parts = tuple(_read(part, depth + 1) for part in inside)
    return And(parts) if joined == "and" else Or(parts)


def _condition(given: Mapping[Any, Any]) -> Filter:
    name = given["field"]
    if not isinstance(name, str):
        raise _refused(f"'field' is {_shown(name)}; give the name of a field")
    parts = []
    for comparison, value in given.items():
        if comparison == "field":
            continue
        if comparison not in _COMPARISONS:
            raise _refused(f"unknown comparison {_shown(comparison)}; give {_KINDS}")
        parts.append(_COMPARISONS[comparison](name, value))
    if not parts:
        raise _refused(f"field {_shown(name)} has no comparison; give {_KINDS}")
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _one(name: str, value: object) -> Value:
    if not isinstance(value, str | int | float):
        raise _refused(
            f"field {_shown(name)}: {_shown(value)} is not a text, number, true or false"
        )
    return value


def _some(name: str, values: object) -> tuple[Value, ...]:
    if not isinstance(values, list | tuple):
        raise _refused(f"field {_shown(name)}: {_shown(values)} is not a list of values")
    return tuple(_one(name, value) for value in values)


def _between(name: str, values: object) -> Filter:
    bounds = _some(name, values)
    if len(bounds) != 2:
        raise _refused(f"field {_shown(name)}: 'to' takes a list of two values, not {len(bounds)}")
    return Condition(name, "TO", bounds)


def _present(name: str, value: object) -> Filter:
    if not isinstance(value, bool):
        raise _refused(f"field {_shown(name)}: {_shown(value)} is neither true nor false")
    present = Condition(name, "EXISTS")
    return present if value else Not(present)


def _absent(name: str, value: object) -> Filter:
    found = _present(name, value)
    return found.part if isinstance(found, Not) else Not(found)


_COMPARISONS: Final[dict[object, Callable[[str, Any], Filter]]] = {
    "=": lambda name, value: Condition(name, "=", (_one(name, value),)),
    "!=": lambda name, value: Not(Condition(name, "=", (_one(name, value),))),
    "<": lambda name, value: Condition(name, "<", (_one(name, value),)),
    "<=": lambda name, value: Condition(name, "<=", (_one(name, value),)),
    ">": lambda name, value: Condition(name, ">", (_one(name, value),)),
    ">=": lambda name, value: Condition(name, ">=", (_one(name, value),)),
    "to": _between,
    "in": lambda name, values: Condition(name, "IN", _some(name, values)),
    "contains": lambda name, value: Condition(name, "CONTAINS", (_one(name, value),)),
    "exists": _present,
    "null": _absent,
}


def _refused(reason: str) -> QueryError:
    return QueryError(f"filter: {reason}", field="filter")


def _shown(value: object) -> str:
    written = _BRIEF.repr(value)  # which does not follow a filter to any depth
    return written if len(written) <= 60 else written[:60] + "..."
