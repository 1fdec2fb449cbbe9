"""Which rules of an index apply to a search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.errors import QueryError, SettingsError
from klsa_search.search.filters.masks import FilterLike, filter_of
from klsa_search.search.filters.parser import And, Condition, Filter, Not, Or, Value
from klsa_search.search.query.interpretation import QueryInterpretation, replace_words
from klsa_search.search.query.synonyms import lengths_by_first_term
from klsa_search.search.query.syntax import last_word, parse
from klsa_search.storage.rules import Rule, RuleCondition, rules_of

MAX_APPLIED: Final = 10
"""Rules that apply to one search, at most: the first in the order of the list."""

Terms = tuple[str, ...]

RulesLike = Iterable[Mapping[str, Any] | Rule]
"""Rules as users give them: see docs/guides/rules.md."""


def now() -> datetime:
    """Return the present time, which tests set."""
    return datetime.now(UTC)


def checked_rules(rules_: RulesLike) -> tuple[Rule, ...]:
    """Return rules whose form and filters are valid; SettingsError names the rule at fault."""
    rules = rules_of(rules_)
    for rule in rules:
        for location, text in _filters(rule):
            try:
                filter_of(text)
            except QueryError as error:
                message = f"rules: rule {rule.id!r}: {location}: {error.message}"
                raise SettingsError(message, field="rules") from None
    return rules


def _filters(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the place and text of each filter of a rule."""
    if rule.when.filter is not None:
        yield "when.filter", rule.when.filter
    for number, boost in enumerate(rule.then.boost):
        yield f"then.boost[{number}].filter", boost.filter


class RuleSet:
    """The rules of an index, by the terms of their queries; immutable.

    Terms are those of the analyser, so rules apply to all forms of a word that searches do not
    distinguish. Cost: the analysis of each query.
    """

    def __init__(self, rules: Sequence[Rule], analyzer: Analyzer) -> None:
        self.rules, self._analyzer = tuple(rules), analyzer
        self._always: list[int] = []
        self._exact: dict[Terms, list[int]] = {}
        self._contained: dict[Terms, list[int]] = {}
        for number, rule in enumerate(self.rules):
            when = rule.when
            query = when.query_is if when.query_is is not None else when.query_contains
            if query is None:
                self._always.append(number)
            for terms in () if query is None else analyzer.readings(query):
                if when.query_is is not None:
                    self._exact.setdefault(terms, []).append(number)
                elif terms:
                    self._contained.setdefault(terms, []).append(number)
        self._exact.pop((), None)  # words that searches ignore
        self._lengths = lengths_by_first_term(self._contained)
        self._conditions = {
            number: _condition(rule.when)
            for number, rule in enumerate(self.rules)
            if rule.when.filter or rule.when.begin or rule.when.end
        }

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.rules)

    @property
    def queries(self) -> list[str]:
        """Return the queries, or parts of queries, that rules are for."""
        queries = (rule.when.query_is or rule.when.query_contains for rule in self.rules)
        return [query for query in queries if query]

    def terms(self, when: RuleCondition) -> Terms | None:
        """Return the terms of the query of a rule; None for a rule of all queries."""
        query = when.query_is if when.query_is is not None else when.query_contains
        return None if query is None else tuple(self._analyzer.terms(query))

    def for_query(self, query: str) -> list[Rule]:
        """Return the rules for a query, whatever its filter and the time."""
        readings = self._analyzer.readings(query) if self._exact or self._contained else ((),)
        numbers = {number for terms in readings for number in self._numbers(terms)}
        return [self.rules[number] for number in sorted(numbers)]

    def matching(self, readings: Iterable[Terms], filter_: FilterLike | None) -> list[Rule]:
        """Return the rules that apply now to a query of one of these readings, in their order."""
        numbers = sorted({number for terms in readings for number in self._numbers(terms)})
        if any(number in self._conditions for number in numbers):
            parts, time = _parts(filter_), now()
            numbers = [
                number
                for number in numbers
                if number not in self._conditions or self._conditions[number](parts, time)
            ]
        return [self.rules[number] for number in numbers[:MAX_APPLIED]]

    def _numbers(self, terms: Terms) -> list[int]:
        """Return the numbers of the rules for the terms of a query, in ascending order."""
        numbers = {*self._always, *self._exact.get(terms, ())}
        for begin, term in enumerate(terms):
            for length in self._lengths.get(term, ()):
                numbers.update(self._contained.get(terms[begin : begin + length], ()))
        return sorted(numbers)


def readings_of(
    query: str,
    interpretation: QueryInterpretation,
    fields: Collection[str],
    analyzer: Analyzer,
) -> tuple[Terms, ...]:
    """Return the terms of a query as typed and, if they differ, as it was understood.

    Those have the corrections that were searched, the joined or divided words that documents write,
    and the best completion of the last word. Neither has what the query excludes.
    fields  names of searchable fields
    """
    if excluded := set(interpretation.excluded):
        query = " ".join(
            clause.written
            for clause in parse(query, fields)
            if clause.sign != "-" or clause.shown not in excluded
        )
    replaced = dict(interpretation.variants) | {
        word: correction
        for word, correction in interpretation.corrections.items()
        if word not in interpretation.unknown
    }
    typed = analyzer.readings(query)
    understood = analyzer.readings(replace_words(query, replaced)) if replaced else typed
    last = last_word(query)
    if completions := interpretation.prefixes.get(f"{last}*"):
        size = len(analyzer.terms(last))
        understood = tuple((*terms[: len(terms) - size], completions[0]) for terms in understood)
    return tuple(dict.fromkeys((*typed, *understood)))


def _condition(when: RuleCondition) -> Callable[[frozenset[Filter], datetime], bool]:
    """Return whether a rule applies to a filter, given by `_parts`, at a time."""
    begin, end = (
        None if time is None else datetime.fromisoformat(time) for time in (when.begin, when.end)
    )
    filter_ = None if when.filter is None else _as_text(filter_of(when.filter))
    return lambda parts, time: (
        (filter_ is None or filter_ in parts)
        and (begin is None or begin <= time)
        and (end is None or time < end)
    )


def _parts(filter_: FilterLike | None) -> frozenset[Filter]:
    """Return a filter, and its parts if it is an AND, and theirs."""
    parts = [] if filter_ is None else [_as_text(filter_of(filter_))]
    for part in parts:
        if isinstance(part, And):
            parts += part.parts
    return frozenset(parts)


def _as_text(filter_: Filter) -> Filter:
    """Return a filter with values as text, so that its text and JSON forms are equal."""
    if isinstance(filter_, Condition):
        return replace(filter_, values=tuple(map(_text_of, filter_.values)))
    if isinstance(filter_, Not):
        return Not(_as_text(filter_.part))
    parts = tuple(map(_as_text, filter_.parts))
    return And(parts) if isinstance(filter_, And) else Or(parts)


def _text_of(value: Value) -> str:
    """Return a value as the text form of filters usually has it: `true`, and 5 for 5.0."""
    if isinstance(value, bool):
        return str(value).lower()
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)
