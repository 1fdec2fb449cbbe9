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
from operator import add
from typing import Final, NamedTuple

from klsa_search.core.array_types import DocumentMask
from klsa_search.search.engine.query_terms import NO_TERM
from klsa_search.search.filters.masks import ID, filter_of
from klsa_search.search.filters.parser import Condition, equality, in_postorder
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.query import Query
from klsa_search.search.state.state import State
from klsa_search.storage.columns.columns import Field

MAX_WORDS: Final = 12
"""Words of a query in which values of fields are looked for, at most: longer ones are texts."""

LONGEST: Final = 4
"""Words of a value, at most."""

MAX_BYTES: Final = 2**16
"""Bytes of the distinct texts of a field in which words are looked for, as those of brands."""

MAX_VALUES: Final = 32
"""Values of a filter of which documents are counted, at most."""

_IN_FIELD: Final = re.compile(r'(?<!\S)[+-]?([^\s:"“”]+):("[^"]+"|“[^”]+”|[^\s:"“”][^\s"“”]*)')
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

    Only what `with_suggestions` may need. Cost: some µs, and a mask for each value.
    """
    live, parser = state.snapshot.live_docs(), state.query_parser
    values: dict[TypedValue, Counter[str]] = {}
    fields = {name: field for name, field in state.fields.items() if field.type == "keyword"}
    filtered = set[str]()
    for condition, value in _compared(query):
        filtered.add(condition.field)
        typed = TypedValue(equality(condition.field, value), condition.field, value)
        if condition.field == ID and ID not in state.fields:
            values[typed] = _ids_like(state, value)
        elif condition.field in fields:
            values[typed] = _like(fields[condition.field], value, live)
    fields = {name: field for name, field in fields.items() if name not in filtered}
    rest = query.query
    for matching in _IN_FIELD.finditer(query.query):
        named, value = matching[1].casefold(), matching[2].strip('"“”')
        for name in (name for name in fields if name.casefold() == named):
            rest = rest.replace(matching[0], " ", 1)
            if name in parser.columns:
                typed = TypedValue(matching[0], name, value)
                values[typed] = _like(fields[name], value, live)
            elif name not in parser.fields:  # else its words are searched
                values[TypedValue(matching[0], name)] = fields[name].alike(value, live)
    for words, documents in _phrases(state, rest) if fields else ():
        for name, field in fields.items():
            if alike := field.alike(words, live, most_bytes=MAX_BYTES):
                values[TypedValue(words, name, None, documents)] = alike
    return {typed: counts for typed, counts in values.items() if counts}


def with_suggestions(said: QueryInterpretation, of_parts: Sequence[Values]) -> QueryInterpretation:
    """Return an interpretation with the filters that the values of all parts suggest."""
    suggested: dict[str, dict[str, int]] = {}
    for typed in dict.fromkeys(typed for values in of_parts for typed in values):
        counts = reduce(add, (values[typed] for values in of_parts if typed in values))
        is_exact = typed.value is not None and counts[typed.value]
        if is_exact or (typed.value is None and said.id is not None):
            continue
        for value, count in counts.most_common():
            if count > typed.documents:
                conditions = suggested.setdefault(typed.shown, {})
                conditions[equality(typed.field, value)] = count
    return replace(said, suggested_filters=suggested) if suggested else said


def _compared(query: Query) -> Iterator[tuple[Condition, str]]:
    """Yield the texts that a filter compares values with, and their conditions."""
    if query.filter is None:
        return
    count = 0
    for node in in_postorder(filter_of(query.filter)):
        if isinstance(node, Condition) and node.comparison in ("=", "IN"):
            for value in node.values:
                if isinstance(value, str) and count < MAX_VALUES:
                    count += 1
                    yield node, value


def _like(field: Field, value: str, live: DocumentMask) -> Counter[str]:
    """Return the values that are like one, or that alone if documents have it."""
    count = field.count(value, live)
    return Counter({value: count}) if count else field.alike(value, live)


def _ids_like(state: State, id_: str) -> Counter[str]:
    """Return the ID, or else the IDs in upper or lower case that documents have."""
    find = state.documents.find
    if find(id_) is not None:
        return Counter({id_: 1})
    cases = dict.fromkeys((id_.upper(), id_.lower(), id_.capitalize()))
    return Counter(case for case in cases if find(case) is not None)


def _phrases(state: State, text: str) -> Iterator[tuple[str, int]]:
    """Yield the words of a text, alone and several side by side, and how many documents at most
    contain them; without excluded words, stop words and single characters.
    """
    typed = [word.strip(_AROUND) for word in text.split() if not word.startswith("-")]
    words = [word for word in typed if word]
    if len(words) > MAX_WORDS:
        return
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
