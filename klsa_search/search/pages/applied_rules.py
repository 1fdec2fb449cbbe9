"""What the rules that apply to a search change: pinned and hidden documents, and boosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from klsa_search.errors import QueryError
from klsa_search.search.engine.mask import Mask
from klsa_search.search.explain.explanation import RuleEffect
from klsa_search.storage.rules import Rule

if TYPE_CHECKING:
    from klsa_search.search.state.passages import PassageIndex
    from klsa_search.search.state.state import State

T = TypeVar("T")

_LIMIT: Final = 1e6
"""Limit of the product of the factors of one document, so that no score overflows."""


class Pin(NamedTuple):
    """The position that a rule gives a document; the lowest `precedence` comes first."""

    id: str
    rule: str
    position: int
    precedence: int = 0


class _Boost(NamedTuple):
    rule: str
    factor: float
    mask: Mask


@dataclass(frozen=True, slots=True)
class AppliedRules:
    """The rules that apply to a search, for one state of an index.

    ids     of the rules
    pins    by doc id, in order of precedence
    pinned  number of documents that the rules pin, also in other partitions
    hidden  doc ids
    boosts  in the order of the rules
    """

    ids: tuple[str, ...] = ()
    pins: Mapping[int, Pin] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    boosts: tuple[_Boost, ...] = ()
    pinned: int = 0

    def of_passages(self, passages: PassageIndex) -> AppliedRules:
        """Return what rules for documents change in a search of their passages, without pins."""
        rows = passages.rows_of(np.array(sorted(self.hidden), np.int64))
        boosts = (
            boost._replace(mask=Mask(boost.mask.allowed[passages.document_of]))
            for boost in self.boosts
        )
        return AppliedRules(self.ids, hidden=frozenset(rows.tolist()), boosts=tuple(boosts))

    def factors(self, size: int) -> npt.NDArray[np.float64]:
        """Return the factor of the score of each document: (size,)."""
        factors = np.ones(size, np.float64)
        for boost in self.boosts:
            factors[boost.mask.allowed] *= boost.factor
        return factors.clip(1 / _LIMIT, _LIMIT, out=factors)

    def effects(self, doc_id: int, base: float) -> tuple[RuleEffect, ...]:
        """Return what the rules did to a hit whose score was `base` without them."""
        effects = []
        if (pin := self.pins.get(doc_id)) is not None:
            effects.append(
                RuleEffect(rule=pin.rule, action="pin", value=0.0, position=pin.position)
            )
        product, before = 1.0, base
        for rule, factor, mask in self.boosts:
            if doc_id in mask:
                product *= factor
                after = base * min(max(product, 1 / _LIMIT), _LIMIT)
                effects.append(
                    RuleEffect(rule=rule, action="boost", value=after - before, factor=factor)
                )
                before = after
        return tuple(effects)


NO_RULES: Final = AppliedRules()


def apply_rules(
    state: State, rules: Sequence[Rule], *, id_match: int | None, may_pin: bool
) -> AppliedRules:
    """Return what rules change in a state of an index.

    id_match  document whose ID is the query, which comes first in any case
    may_pin  the hits are documents and not sorted by fields, so that some can be pinned
    Unknown documents, and boosts of fields that the index does not have, change nothing: see
    `rule_warnings`.
    """
    find = state.documents.find
    hidden = {find(id_) for rule in rules for id_ in rule.then.hide}
    pins: dict[int, Pin] = {}
    ordered = [
        (pin, rule.id)
        for rule in (rules if may_pin else ())
        for pin in sorted(rule.then.pin, key=lambda pin: pin.position)
    ]
    for precedence, (pin, rule_id) in enumerate(ordered):
        doc_id = find(pin.id)
        if doc_id is not None and doc_id != id_match and doc_id not in hidden:
            pins.setdefault(doc_id, Pin(pin.id, rule_id, pin.position, precedence))
    boosts: list[_Boost] = []
    for rule in rules:
        for boost in rule.then.boost:
            with suppress(QueryError):  # of a field that the index does not have yet
                boosts.append(_Boost(rule.id, boost.factor, state.filters.of(boost.filter)))
    return AppliedRules(
        tuple(rule.id for rule in rules),
        pins,
        frozenset(doc_id for doc_id in hidden if doc_id is not None),
        tuple(boosts),
        len(ordered),
    )


def rule_warnings(state: State) -> list[str]:
    """Return what rules refer to and the index does not have, one sentence each.

    Cost: looking up each document, and the mask of each filter.
    """
    warnings = []
    for rule in state.rules.rules:
        if state.rules.terms(rule.when) == ():
            warnings.append(
                f"rule {rule.id!r} never applies: its query has no words that searches use"
            )
        for id_ in (*(pin.id for pin in rule.then.pin), *rule.then.hide):
            if state.documents.find(id_) is None:
                warnings.append(f"rule {rule.id!r}: the index has no document {id_!r}")
        for boost in rule.then.boost:
            try:
                state.filters.of(boost.filter)
            except QueryError as error:
                warnings.append(f"rule {rule.id!r}: boost: {error.message}")
    return warnings


def placed(entries: Sequence[T], positions: Sequence[int | None]) -> list[T]:
    """Return entries, those with a position, from 1, at it; beyond the last is the end."""
    pairs = list(zip(entries, positions, strict=True))
    order = [entry for entry, position in pairs if position is None]
    moved = [(position, entry) for entry, position in pairs if position is not None]
    for position, entry in sorted(moved, key=lambda pair: pair[0]):
        order.insert(position - 1, entry)
    return order


def free_positions(pins: Mapping[T, Pin], *, first_is_taken: bool) -> dict[T, int]:
    """Return the positions of pinned documents, in order of precedence.

    Of two pins of a position the first keeps it; the second gets the next free one.
    """
    positions: dict[T, int] = {}
    taken = {1} if first_is_taken else set()
    for document, pin in pins.items():
        position = pin.position
        while position in taken:
            position += 1
        taken.add(position)
        positions[document] = position
    return positions


def without(mask: Mask | None, doc_ids: Sequence[int], size: int) -> Mask:
    """Return a mask of `size` documents, None for all, without some of them. Cost: O(N)."""
    allowed = np.ones(size, np.bool_) if mask is None else mask.allowed
    allowed[list(doc_ids)] = False
    return Mask(allowed)
