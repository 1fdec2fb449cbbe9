"""Filter conditions for what was typed: values of fields in another case, and words of a query.

Values of keyword fields are compared to the letter, so that a filter by a value of a facet finds as
many documents as the facet counts, and a filter that hides documents hides what it names. A
condition that no document satisfies is therefore reported with the values that differ in case,
accents and blanks alone. So is a word of a query that is a value of more documents than contain it,
such as a brand: the words of fields are searched only if the index says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import add
from typing import Final, NamedTuple

from klsa_search.core.array_types import DocumentMask
from klsa_search.search.engine.query_terms import NO_TERM
from klsa_search.search.filters.masks import ID, filter_of
from klsa_search.search.filters.parser import Condition, Not, equality, in_postorder, parts_of
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


class TypedValue(NamedTuple):
    """What was typed and may be a value of a field.

    shown      as messages name it: a condition, or words of the query
    field      its name
    value      what the condition compares with; None for words
    documents  that contain the words, at most
    """

    shown: str
    field: str
    value: str | None = None
    documents: int = 0


Values = Mapping[TypedValue, Counter[str]]
"""Values like what was typed, with their numbers of documents, which add up over partitions."""


def typed_values(state: State, query: Query) -> Values:
    """Return the values of the documents of one part that are like those of a search.

    Only what `with_suggestions` may need. Cost: some µs, however many fields there are, and a mask
    for each value; at the first use of a state also those of `Fields.alike`.
    """
    live, parser = state.snapshot.live_docs(), state.query_parser
    values: dict[TypedValue, Counter[str]] = {}
    fields = state.fields
    for condition, value in _compared(query):
        typed = TypedValue(equality(condition.field, value), condition.field, value)
        if condition.field == ID and ID not in state.fields:
            values[typed] = _ids_like(state, value)
        elif condition.field in fields and fields[condition.field].type == "keyword":
            values[typed] = _like(fields[condition.field], value, live)
    nodes = [] if query.filter is None else in_postorder(filter_of(query.filter))
    filtered = {node.field for node in nodes if isinstance(node, Condition)}
    rest = list[str]()
    for text in _included(state, query.query):
        left = text
        for matching in _IN_FIELD.finditer(text):
            value = matching[2].strip('"“”')
            for name in fields.keywords_named(matching[1]):
                if name in filtered:
                    continue
                left = left.replace(matching[0], " ", 1)
                if name in parser.columns:
                    typed = TypedValue(matching[0], name, value)
                    values[typed] = _like(fields[name], value, live)
                elif name not in parser.fields:  # else its words are searched
                    values[TypedValue(matching[0], name)] = fields[name].alike(value, live)
        rest.append(left)
    matches = (
        (TypedValue(words, name, None, documents), like)
        for words, documents in (_phrases(state, rest) if fields else ())
        for name, like in fields.alike(words)
        if name not in filtered
    )
    few = [*islice(matches, MAX_MATCHES + 1)]
    for typed, like in few:
        counts = values.setdefault(typed, Counter())
        counts[like] = fields[typed.field].count(like, live) if len(few) <= MAX_MATCHES else 1
    return {typed: +counts for typed, counts in values.items() if +counts}


def with_suggestions(
    interpretation: QueryInterpretation, of_parts: Sequence[Values]
) -> QueryInterpretation:
    """Return an interpretation with the filters that the values of all parts suggest."""
    suggested: dict[str, dict[str, int]] = {}
    total = {
        typed: reduce(add, (values[typed] for values in of_parts if typed in values))
        for typed in dict.fromkeys(typed for values in of_parts for typed in values)
    }
    of_words = sum(len(counts) for typed, counts in total.items() if typed.value is None)
    no_words = interpretation.id is not None or of_words > MAX_MATCHES
    for typed, counts in total.items():
        if no_words if typed.value is None else counts[typed.value]:
            continue
        for value, count in counts.most_common():
            if count > typed.documents:
                conditions = suggested.setdefault(typed.shown, {})
                conditions[equality(typed.field, value)] = count
    return replace(interpretation, suggested_filters=suggested) if suggested else interpretation


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
