"""The structure of a filter: conditions on metadata fields, joined by and, or and not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from klsa_search.errors import QueryError

Value = str | int | float | bool
Comparison = Literal["=", "<", "<=", ">", ">=", "TO", "IN", "CONTAINS", "EXISTS"]

MAX_CONDITIONS: Final = 1_000
"""Conditions, and values in lists, of one filter."""
MAX_DEPTH: Final = 100
"""Levels of nested filters."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one field.

    values  one; low and high of TO; any number of IN; none of EXISTS
    """

    field: str
    comparison: Comparison
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    """All of several filters; true if there are none."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of several filters; false if there are none."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a filter."""

    part: Filter


Filter = Condition | And | Or | Not


def negation(filter_: Filter) -> Filter:
    """Return the negation of a filter, of a negation the filter itself."""
    return filter_.part if isinstance(filter_, Not) else Not(filter_)


def parts_of(filter_: Filter) -> tuple[Filter, ...]:
    """Return the direct parts of a filter."""
    if isinstance(filter_, Condition):
        return ()
    return (filter_.part,) if isinstance(filter_, Not) else filter_.parts


def in_postorder(filter_: Filter) -> list[Filter]:
    """Return all parts of a filter, each before what contains it; without recursion.

    QueryError for more than 1,000 conditions and values, or more than 100 levels.
    """
    size, operands = 0, []
    stack: list[tuple[Filter, int, bool]] = [(filter_, 1, False)]
    while stack:
        node, depth, visited = stack.pop()
        if visited:
            operands.append(node)
            continue
        size += max(len(node.values), 1) if isinstance(node, Condition) else 1
        if size > MAX_CONDITIONS:
            raise QueryError(
                f"filter: more than {MAX_CONDITIONS:,} conditions and values; simplify it",
                field="filter",
            )
        if depth > MAX_DEPTH:
            raise QueryError(
                f"filter: nested more than {MAX_DEPTH} levels deep; flatten it",
                field="filter",
            )
        stack.append((node, depth, True))
        stack += [(part, depth + 1, False) for part in reversed(parts_of(node))]
    return operands


def without_field(filter_: Filter, field: str) -> Filter | None:
    """Return a filter without those parts of its ANDs that are about one field alone; None if no
    part is left.

    >>> brand, price = Condition("brand", "IN", ("a", "b")), Condition("price", "<", (9,))
    >>> without_field(And((brand, price)), "brand") == price
    True
    >>> without_field(Or((brand, price)), "brand") == Or((brand, price))
    True
    """
    conditions = [node for node in in_postorder(filter_) if isinstance(node, Condition)]
    if conditions and all(condition.field == field for condition in conditions):
        return None
    if not isinstance(filter_, And):
        return filter_
    parts = [without_field(part, field) for part in filter_.parts]
    left = tuple(part for part in parts if part is not None)
    return left[0] if len(left) == 1 else And(left)


def truth_of(filter_: Filter) -> bool | None:
    """Return whether a filter matches every document, or none; None if that depends on documents.

    A list without values matches nothing; neither do no filters joined by OR, and all documents
    match no filters joined by AND. QueryError as from `in_postorder`.

    >>> truth_of(Not(Condition("tenant", "IN", ())))
    True
    """
    truths: list[bool | None] = []  # a stack
    for node in in_postorder(filter_):
        if isinstance(node, Condition):
            truths.append(False if node.comparison == "IN" and not node.values else None)
            continue
        begin = len(truths) - len(parts_of(node))
        parts = truths[begin:]
        if isinstance(node, Not):
            (part,) = parts
            truth = None if part is None else not part
        else:
            decisive = isinstance(node, Or)
            truth = decisive if decisive in parts else None if None in parts else not decisive
        truths[begin:] = [truth]
    return truths[0]
