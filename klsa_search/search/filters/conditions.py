"""What a filter says: conditions on metadata fields, joined by and, or and not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from klsa_search.errors import QueryError

Value = str | int | float | bool
Comparison = Literal["=", "<", "<=", ">", ">=", "TO", "IN", "CONTAINS", "EXISTS"]

MOST_CONDITIONS: Final = 1_000
"""Conditions, and values of lists, that one filter may have."""
MOST_NESTED: Final = 100
"""How deep filters may stand in filters."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What one field is asked for.

    values  one; low and high of TO; any number of IN; none of EXISTS
    """

    field: str
    comparison: Comparison
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    """All of several filters; true where there is none."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of several filters; false where there is none."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a filter."""

    part: Filter


Filter = Condition | And | Or | Not


def parts_of(filter_: Filter) -> tuple[Filter, ...]:
    """Filters that a filter is made of."""
    if isinstance(filter_, Condition):
        return ()
    return (filter_.part,) if isinstance(filter_, Not) else filter_.parts


def in_postorder(filter_: Filter) -> list[Filter]:
    """List all that a filter is made of, the parts of each before itself; without recursion.

    QueryError for one of more than 1,000 conditions and values, or nested more than 100 deep.
    """
    size, found = 0, []
    ahead: list[tuple[Filter, int, bool]] = [(filter_, 1, False)]
    while ahead:
        one, depth, visited = ahead.pop()
        if visited:
            found.append(one)
            continue
        size += max(len(one.values), 1) if isinstance(one, Condition) else 1
        if size > MOST_CONDITIONS:
            raise QueryError(
                f"filter: more than {MOST_CONDITIONS:,} conditions and values; simplify it",
                field="filter",
            )
        if depth > MOST_NESTED:
            raise QueryError(
                f"filter: nested more than {MOST_NESTED} levels deep; flatten it",
                field="filter",
            )
        ahead.append((one, depth, True))
        ahead += [(part, depth + 1, False) for part in reversed(parts_of(one))]
    return found
