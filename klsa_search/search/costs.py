"""Estimated costs of searches, by which a service decides which searches may run concurrently.

Units are milliseconds of one processor on an index of 20,000 news stories
(`python -m benchmarks.service_load HOME NAME QUERIES --expensive`). Only their ratios matter: on a
larger index all searches take longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from klsa_search.core.parameters import ParsingSettings, SearchParameters
from klsa_search.search.engine.engine import MAX_SEEDS
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.filters.masks import FilterCache, FilterLike, key_of
from klsa_search.search.query.operators import MAX_SIGNS
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.pieces import CHARACTERS, HAS_UNKNOWN, SIGNS, flags_of, numbers_of
from klsa_search.search.query.query import Query
from klsa_search.search.query.syntax import Clause, parse_boolean
from klsa_search.search.query.word_reader import MAX_CORRECTIONS
from klsa_search.search.rankers import ranker_of
from klsa_search.search.ranking.searcher import ranks_with_klsa_engine
from klsa_search.search.state.state import State
from klsa_search.storage.columns.columns import alike_is_quick

SEARCH: Final = 1.0
WORD: Final = 0.1
OPERATOR: Final = 2.0
"""A phrase, prefix, `+`, `-` or field name."""
PHRASE_DOCUMENT: Final = 0.003
"""A document in which a phrase is searched; less if it occurs early."""
MISSPELT: Final = 7.0
"""A word that no document contains, for which similar words are searched among 50,000 terms, or
fewer; more in proportion.
"""
MISSPELT_TERMS: Final = 50_000

HIT: Final = 0.1
HIGHLIGHT: Final = 0.05
QUALITY: Final = 0.05
EXPLANATION: Final = 0.4
"""Each for one hit."""

HIT_BYTE: Final = 5e-6
"""A byte of the text of a hit, which is searched for the best passage."""

FILTER_CHARACTER: Final = 0.003
"""A character of a filter, to read it."""
CONDITION: Final = 0.02
CONDITION_VALUE: Final = 2e-6
"""A condition of a filter, and one of the values that it is compared with."""
CONTAINS_BYTE: Final = 2e-6
"""A byte of the distinct texts of a field, to search one text in them."""

MATCH: Final = 2e-5
"""A match, if facets, sorting or distinct values need all of them."""
SORTED_MATCH: Final = 3e-4
"""A match, for each field to sort by, and for the one whose values are distinct."""
COUNTED_MATCH: Final = 2e-5
FACET_VALUE: Final = 0.004
"""A match, and a value in the answer, for each facet."""

SUGGESTIONS: Final = 2.0
SUGGESTED: Final = 0.2
"""All suggestions, and counting the documents of one."""

EVERYTHING: Final = 100.0
"""Scoring every document instead of candidates."""

RERANKED: Final = 10.0
"""A hit that a reranker scores, a model of some 20 million parameters."""

VECTOR: Final = 2.0
VECTOR_VALUE: Final = 3e-7
"""Cosines of all documents to the vector of a query, and a value of the vector of a document."""

EMBEDDED: Final = 10.0
"""The vector of a query, which an embedder computes."""

VIEW_DOCUMENT: Final = 1.5e-3
VIEW_TERM: Final = 1e-4
"""A document and a term of the index, if the view of a tenant's documents is made."""

PASSAGE_RANKINGS: Final = 4
"""Rankings of a search if documents are divided into passages: see `PassageSearcher.top`."""

_CHARACTERS_PER_WORD: Final = 6

_LONGEST_COUNTED: Final = 1_000
"""Characters of a query up to which its words are looked up to estimate its cost."""

_QUICK_HITS: Final = 20
_QUICK_QUERY: Final = 256
"""Hits and characters of a query that are quick: ten hits take 50 µs."""

QUICK_POSTINGS: Final = 2**17
"""Postings of all terms of a quick query: at most 250 µs of the engine."""
QUICK_BYTES: Final = 2**20
"""Total bytes of the k longest documents up to which a search is quick: 5 ms if all are hits."""


class Cost(NamedTuple):
    """Estimated milliseconds of a search in one part of an index.

    of_part  of its documents
    of_all   of what all parts do alike, or one for all
    """

    of_part: float
    of_all: float


def search_cost(state: State, query: Query, *, embeds: bool) -> Cost:
    """Return about how many milliseconds a search takes: see `Index.search_cost`.

    embeds  whether an embedder computes the vector of a query without one
    """
    options: SearchParameters = {"operators": query.operators, "spelling": query.spelling}
    parsing, _ = state.parameters.read(options)
    counts = counts_of(state.query_parser, query.query, parsing)
    misspelt = counts.misspelt
    if misspelt and query.prefix == "last":  # the last word need not be complete
        misspelt -= 1
    facets = len({*query.facets, *query.disjunctive_facets})
    sorts = len(query.sort) + (query.distinct is not None)
    embeds &= query.vector is None
    has_vector = embeds or bool(query.vector)
    rankings = 1 if state.passages is None else PASSAGE_RANKINGS
    ranking = SEARCH + WORD * counts.words + EVERYTHING * _scores_all(state, query)
    per_match = MATCH * bool(facets or sorts) + COUNTED_MATCH * facets + SORTED_MATCH * sorts
    of_part = rankings * ranking + PHRASE_DOCUMENT * counts.phrase_documents
    of_part += per_match * counts.matches + VECTOR_VALUE * has_vector * _vector_values(state)
    if query.filter is not None:
        of_part += filter_cost(state.filters, query.filter)
    reranked = query.rerank or 0
    per_hit = HIT + HIT_BYTE * state.documents.mean_size + HIGHLIGHT * query.highlight
    per_hit += QUALITY * query.quality + EXPLANATION * query.explain
    of_all = OPERATOR * counts.operators + FACET_VALUE * facets * query.max_facet_values
    of_all += MISSPELT * misspelt * max(1.0, len(state.snapshot.vocabulary) / MISSPELT_TERMS)
    of_all += VECTOR * has_vector + EMBEDDED * embeds + RERANKED * reranked
    return Cost(of_part, of_all + per_hit * max(query.offset + query.candidates, reranked))


def suggestions_cost(text: str, k: int) -> float:
    """Return about how many milliseconds k suggestions take, besides a search for the text."""
    return SUGGESTIONS + (SUGGESTED + WORD * len(text) / _CHARACTERS_PER_WORD) * k


def _scores_all(state: State, query: Query) -> bool:
    """Return whether every document is scored, by the parameters or by rules."""
    changed = (query.spectral, query.gamma, query.head, query.boosts, query.min_score)
    return (
        bool(query.exact or query.positive or query.negative)
        or (query.z or 0) > MAX_SEEDS
        or any(value is not None for value in changed)
        or ranker_of(query.ranker or state.info.defaults.ranker).is_heavy
        or (query.rules and any(rule.then.boost for rule in state.rules.for_query(query.query)))
    )


def _vector_values(state: State) -> int:
    dimensions = sum(space.dimension for space in state.snapshot.vectors.values())
    values = len(state.snapshot) * dimensions
    return values if state.passages is None else values + _vector_values(state.passages.state)


def restriction_cost(state: State, filter_: FilterLike) -> float:
    """Return about how many milliseconds a view of a filter takes."""
    passages = 0 if state.passages is None else len(state.passages.state.snapshot)
    documents, terms = len(state.snapshot) + passages, len(state.snapshot.vocabulary)
    return filter_cost(state.filters, filter_) + VIEW_DOCUMENT * documents + VIEW_TERM * terms


class QueryCounts(NamedTuple):
    """Counts that determine the cost of a query.

    phrase_documents  that contain the rarest word of a phrase, in total over all phrases
    matches           at most
    """

    words: float = 0
    operators: int = 0
    misspelt: int = 0
    phrase_documents: int = 0
    matches: int = 0


def counts_of(parser: QueryParser, query: str, settings: ParsingSettings) -> QueryCounts:
    """Return the counts of the words of a query. Cost: 3 µs without operators, else 50.

    settings  how the query is parsed: operators read as words and disabled spelling cost nothing
    Long queries, and those for a custom tokenizer, are counted by their length.
    """
    documents = len(parser.snapshot)
    if not query.strip():  # with a filter, it matches every document
        return QueryCounts(matches=documents)
    if len(query) > _LONGEST_COUNTED or parser.analyzer.tokenizes:
        return QueryCounts(len(query) / _CHARACTERS_PER_WORD, matches=documents)
    if settings.operators is not False and (boolean := parse_boolean(query, parser.fields)):
        clauses = boolean.operands[:MAX_SIGNS]
        return QueryCounts(
            len(query) / _CHARACTERS_PER_WORD,
            len(clauses),
            phrase_documents=_documents_of_phrases(parser, clauses),
            matches=documents,
        )
    operators = phrase_documents = 0
    has_prefix = False
    pieces = parser.pieces.of(query)
    if settings.operators is not False and flags_of(pieces) & SIGNS:
        clauses, reason = parser.operators.clauses(query, settings.operators)
        if reason is None:
            signed = [clause for clause in clauses if clause.has_sign][:MAX_SIGNS]
            operators, phrase_documents = len(signed), _documents_of_phrases(parser, signed)
            has_prefix = any(clause.kind == "prefix" for clause in signed)
            query = " ".join(clause.text for clause in clauses if clause.kind != "prefix")
            pieces = parser.pieces.of(query)
    numbers, frequencies = numbers_of(pieces), parser.snapshot.query_kernel.postings.frequencies
    misspelt = 0 if settings.spelling == "off" else min(MAX_CORRECTIONS, numbers.count(UNKNOWN))
    matches = sum(int(frequencies[number]) for number in {*numbers} if number >= 0)
    if max(numbers, default=NO_TERM) == NO_TERM:  # stop words are searched in all documents
        matches = phrase_documents = documents
    if has_prefix or flags_of(pieces) & CHARACTERS:
        matches = documents
    return QueryCounts(
        len(numbers),
        operators,
        misspelt,
        phrase_documents=phrase_documents,
        matches=min(matches, documents),
    )


def _documents_of_phrases(parser: QueryParser, clauses: Iterable[Clause]) -> int:
    """Return the number of documents that contain the rarest word of each phrase, in total."""
    frequencies, count = parser.snapshot.query_kernel.postings.frequencies, 0
    for clause in clauses:
        words = parser.pieces.words(clause.text) if clause.kind == "phrase" else []
        numbers = [word.number for word in words]
        terms = [number for number in numbers if number >= 0]
        if len(numbers) > 1 and terms and UNKNOWN not in numbers:
            count += int(frequencies[terms].min())
    return count


def is_quick(state: State, query: str, k: int, filter_: FilterLike | None) -> bool:
    """Return whether a search by words takes at most 1 ms: see `Index.is_quick`."""
    if k > _QUICK_HITS or len(query) > _QUICK_QUERY or state.info.analyzer.tokenizes:
        return False
    if state.passages is not None:  # some four rankings are too many for an event loop
        return False
    parser, defaults = state.query_parser, state.info.defaults
    pieces = parser.pieces.of(query)
    numbers, frequencies = numbers_of(pieces), state.snapshot.query_kernel.postings.frequencies
    are_known_words = not flags_of(pieces) & (SIGNS | HAS_UNKNOWN)
    if not are_known_words or max(numbers, default=0) < 0 or parser.pieces.stop_words.meant(query):
        return False
    by_words = defaults.ranker == "bm25" and not defaults.boost_factors
    return (
        (by_words or ranks_with_klsa_engine(defaults))  # or few documents are all scored
        and sum(int(frequencies[number]) for number in numbers if number >= 0) <= QUICK_POSTINGS
        and not (state.rules and state.rules.for_query(query))
        and state.documents.size_of_longest(k) <= QUICK_BYTES
        and state.fields.alike_is_quick  # for the filters that an interpretation suggests
        and (filter_ is None or _is_compared_quickly(state.filters, filter_))
    )


def _is_compared_quickly(filters: FilterCache, filter_: FilterLike) -> bool:
    """Return whether values like those of a filter are found at once; also if it is cached."""
    kind, text = key_of(filter_)
    fields = filters.fields.items()
    return (kind, text) in filters or all(
        alike_is_quick(field) for name, field in fields if name in text
    )


_JOINS: Final = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)


def filter_cost(filters: FilterCache, filter_: FilterLike) -> float:
    """Return about how many milliseconds a filter takes, without reading it; 0 if it is cached."""
    kind, text = key_of(filter_)
    if (kind, text) in filters:
        return 0.0
    # An upper bound, as quoted values may contain these words.
    conditions = text.count('":') if kind == "json" else 1 + len(_JOINS.findall(text))
    contains = text.lower().count("contains")
    fields = filters.fields
    named = [field for name, field in fields.items() if name in text] or fields.values()
    values = max((field.value_count for field in named), default=0)
    texts = max((field.content for field in named), default=0)
    per_condition = CONDITION + CONDITION_VALUE * max(filters.size, values)
    of_texts = CONTAINS_BYTE * contains * texts
    return FILTER_CHARACTER * len(text) + conditions * per_condition + of_texts
