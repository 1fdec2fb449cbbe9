"""Filter conditions for what was typed: values of fields in another case, and words of a query.

Values of keyword fields are compared to the letter, so that a filter by a value of a facet finds as
many documents as the facet counts, and a filter that hides documents hides what it names. A
condition that no document satisfies is therefore reported with the values that differ in case,
accents and blanks alone. So is a word of a query that is a value of more documents than contain it,
such as a brand or a day: the words of fields are searched only if the index says so. And so is a
condition that is typed as words: price < 50.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, Literal, NamedTuple

from klsa_search.core.array_types import DocumentMask
from klsa_search.search.engine.query_terms import NO_TERM
from klsa_search.search.filters.masks import ID, filter_of
from klsa_search.search.filters.parser import Condition, Not, in_postorder, parts_of, text_of
from klsa_search.search.pages.typed_conditions import typed_conditions, typed_dates
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.query import Query
from klsa_search.search.query.syntax import is_plain, may_be_boolean, parse, parse_boolean
from klsa_search.search.state.state import State
from klsa_search.storage.columns.columns import Field

MAX_WORDS: Final = 12
"""Words of a query in which values of fields are looked for, at most: longer ones are texts."""

LONGEST: Final = 4
"""Words of a value, at most."""

MAX_VALUES: Final = 32
"""Values of a filter of which documents are counted, at most."""

MAX_MATCHES: Final = 16
"""Values like words of a query; of more, none is suggested."""

_NOT: Final = re.compile(r"(?<!\S)(?:not|without|nicht|ohne|sans|sin|sem)\s+\S+", re.IGNORECASE)
_IN_FIELD: Final = re.compile(r'(?<!\S)\+?([^\s:"“”]+):("[^"]+"|“[^”]+”|[^\s:"“”][^\s"“”]*)')
_AROUND: Final = "+.,;:!?()[]{}\"'“”‘’«»"


class TypedText(NamedTuple):
    """What was typed and may be a value of a field, or a condition.

    shown      as messages name it: a condition, or words of the query
    field      its name
    kind       whether the query is restricted by it, has it as words, or has a condition as words
    exact      condition that the query is restricted by
    documents  that contain the words, at most
    """

    shown: str
    field: str
    kind: Literal["restriction", "value", "condition"]
    exact: str = ""
    documents: int = 0


Conditions = Mapping[TypedText, Counter[str]]
"""Conditions for what was typed, with numbers of documents, which add up over partitions."""


def typed_filters(state: State, query: Query) -> Conditions:
    """Return conditions for what was typed that documents of one part of an index satisfy.

    Only what `with_suggestions` may need. Cost: some µs, however many fields there are, and a mask
    for each value and condition; at the first use of a state also those of `Fields.alike`.
    """
    live, fields = state.snapshot.live_docs(), state.fields
    typed: dict[TypedText, Counter[str]] = {}
    for condition, value in _compared(query):
        exact = _equal(condition.field, value)
        text = TypedText(exact, condition.field, "restriction", exact)
        if condition.field == ID and ID not in fields:
            typed[text] = _conditions(ID, _ids_like(state, value))
        elif condition.field in fields and fields[condition.field].type == "keyword":
            typed[text] = _conditions(condition.field, _like(fields[condition.field], value, live))
    nodes = [] if query.filter is None else in_postorder(filter_of(query.filter))
    filtered = {node.field for node in nodes if isinstance(node, Condition)}
    included = _included(state, query.query) if fields else []
    if sum(len(text.split()) for text in included) <= MAX_WORDS:
        included = [_without_conditions(state, text, filtered, typed) for text in included]
    rest = [_without_values(state, text, filtered, typed) for text in included]
    matches = (
        (TypedText(words, name, "value", documents=documents), like)
        for words, documents in _phrases(state, rest)
        for name, like in fields.alike(words)
        if name not in filtered
    )
    few = [*islice(matches, MAX_MATCHES + 1)]
    for text, like in few:
        count = fields[text.field].count(like, live) if len(few) <= MAX_MATCHES else 1
        typed.setdefault(text, Counter())[_equal(text.field, like)] = count
    return {text: counts for text, counts in typed.items() if text.kind == "condition" or +counts}


def _without_conditions(
    state: State, text: str, filtered: Container[str], typed: dict[TypedText, Counter[str]]
) -> str:
    """Return a text without the conditions and dates that it names, which are added to `typed`."""
    left = text
    for condition in typed_conditions(state, text):
        left = left.replace(condition.written, " ", 1)
        if condition.field not in filtered:
            typed[TypedText(condition.written, condition.field, "condition")] = condition.counts
    for condition in typed_dates(state, left):
        documents = min(
            (count for _, count in _phrases_of(state, condition.written.split())), default=0
        )
        if condition.field not in filtered:
            shown = TypedText(condition.written, condition.field, "value", documents=documents)
            typed[shown] = condition.counts
    return left


def _without_values(
    state: State, text: str, filtered: Container[str], typed: dict[TypedText, Counter[str]]
) -> str:
    """Return a text without the values in fields that it names, which are added to `typed`."""
    live, fields, parser = state.snapshot.live_docs(), state.fields, state.query_parser
    left = text
    for matching in _IN_FIELD.finditer(text):
        value = matching[2].strip('"“”')
        for name in fields.named(matching[1]):
            if name in filtered or fields[name].type != "keyword":
                continue
            left = left.replace(matching[0], " ", 1)
            if name in parser.columns:
                shown = TypedText(matching[0], name, "restriction", _equal(name, value))
                typed[shown] = _conditions(name, _like(fields[name], value, live))
            elif name not in parser.fields:  # else its words are searched
                shown = TypedText(matching[0], name, "value")
                typed[shown] = _conditions(name, fields[name].alike(value, live))
    return left


def with_suggestions(
    interpretation: QueryInterpretation, of_parts: Sequence[Conditions]
) -> QueryInterpretation:
    """Return an interpretation with the filters that the values of all parts suggest."""
    total: dict[TypedText, Counter[str]] = {}
    for typed in of_parts:
        for text, counts in typed.items():
            total.setdefault(text, Counter()).update(counts)
    of_words = sum(len(counts) for text, counts in total.items() if text.kind == "value")
    no_words = interpretation.id is not None or of_words > MAX_MATCHES
    conditions = [text.shown for text in total if text.kind == "condition"]
    suggested: dict[str, dict[str, int]] = {}
    for text, counts in total.items():
        if (text.kind == "value" and no_words) or (text.exact and counts[text.exact]):
            continue
        # One with a shorter value, of a part without documents that have all of it.
        is_cut = any(
            len(one) > len(text.shown) and one.startswith(text.shown) for one in conditions
        )
        is_none = text.kind == "condition" and not (+counts or is_cut)
        least = 0 if is_none else text.documents + 1
        for condition, count in counts.most_common():
            if count >= least:
                suggested.setdefault(text.shown, {})[condition] = count
    if not suggested:
        return interpretation
    relaxed = {
        written: reason
        for written, reason in interpretation.relaxed.items()
        if not any(written in condition for condition in conditions)
    }
    return replace(interpretation, suggested_filters=suggested, relaxed=relaxed)


def _equal(field: str, value: str) -> str:
    return text_of(Condition(field, "=", (value,)))


def _conditions(field: str, values: Mapping[str, int]) -> Counter[str]:
    return Counter({_equal(field, value): count for value, count in values.items()})


def _compared(query: Query) -> Iterator[tuple[Condition, str]]:
    """Yield the texts that documents have to have by a filter, and their conditions: not those
    of a negation, which excludes documents.
    """
    if query.filter is None:
        return
    count = 0
    stack = [(filter_of(query.filter), False)]
    while stack:
        node, negated = stack.pop()
        negated ^= isinstance(node, Not)
        stack += [(part, negated) for part in reversed(parts_of(node))]
        if isinstance(node, Condition) and node.comparison in ("=", "IN") and not negated:
            for value in node.values:
                if isinstance(value, str) and count < MAX_VALUES:
                    count += 1
                    yield node, value


def _included(state: State, text: str) -> list[str]:
    """Return the parts of a query without what it excludes, or seems to: by -, NOT and *not*."""
    if is_plain(text) and not may_be_boolean(text):
        return _NOT.split(text)
    names = {*state.query_parser.fields, *state.fields}
    if boolean := parse_boolean(text, names):
        return [clause.shown for clause in boolean.operands if clause.sign != "-"]
    runs = [""]
    for clause in parse(text, names):
        if clause.sign == "-":
            runs.append("")
        else:
            runs[-1] += f" {clause.written}"
    return runs


def _like(field: Field, value: str, live: DocumentMask) -> Counter[str]:
    """Return the values that are like one, or that alone if documents have it."""
    count = field.count(value, live)
    return Counter({value: count}) if count else field.alike(value, live)


def _ids_like(state: State, id_: str) -> Counter[str]:
    find = state.documents.find
    if find(id_) is not None:
        return Counter({id_: 1})
    cases = dict.fromkeys((id_.upper(), id_.lower(), id_.capitalize()))
    return Counter(case for case in cases if find(case) is not None)


def _phrases(state: State, texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the words of texts, alone and several side by side, and how many documents at most
    contain them; without stop words and single characters.
    """
    runs = [[word for typed in text.split() if (word := typed.strip(_AROUND))] for text in texts]
    if sum(map(len, runs)) <= MAX_WORDS:
        for words in runs:
            yield from _phrases_of(state, words)


def _phrases_of(state: State, words: Sequence[str]) -> Iterator[tuple[str, int]]:
    pieces, frequencies = state.query_parser.pieces, state.snapshot.query_kernel.counts.frequencies
    documents = list[int | None]()
    for word in words:
        numbers = [part.number for part in pieces.words(word) if part.number != NO_TERM]
        of_parts = [int(frequencies[number]) if number >= 0 else 0 for number in numbers]
        documents.append(min(of_parts, default=None))
    for size in range(1, LONGEST + 1):
        for first in range(len(words) - size + 1):
            counts = [count for count in documents[first : first + size] if count is not None]
            written = " ".join(words[first : first + size])
            if counts and len(written) > 1:
                yield written, min(counts)
