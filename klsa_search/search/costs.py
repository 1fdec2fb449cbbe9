"""Estimated costs of searches, by which a service decides which searches may run concurrently.

Units are milliseconds of one processor on an index of 20,000 news stories
(`python -m benchmarks.service_load HOME NAME QUERIES --expensive`). Only their ratios matter: on a
larger index all searches take longer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

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
HIGHLIGHT: Final = 0.3
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

MATCH: Final = 1e-4
"""A match, if facets, sorting or distinct values need all of them."""
SORTED_MATCH: Final = 3e-4
"""A match, for each field to sort by, and for the one whose values are distinct."""
COUNTED_MATCH: Final = 1e-4
FACET_VALUE: Final = 0.004
"""A match, and a value in the answer, for each facet."""

SUGGESTIONS: Final = 2.0
SUGGESTED: Final = 0.2
"""All suggestions, and counting the documents of one."""

EVERYTHING: Final = 100.0
"""Scoring every document instead of candidates."""

RERANKED: Final = 10.0
"""A hit that a reranker scores, a model of some 20 million parameters."""

VECTOR: Final = 10.0
"""Cosines of all documents to the vector of a query, of 384 values."""

RANKINGS_WITH_PASSAGES: Final = 4
"""Rankings of a search if documents are divided into passages: see `PassageSearcher.top`."""

CHARACTERS_PER_WORD: Final = 6


class QueryCounts(NamedTuple):
    """Counts that determine the cost of a query.

    hit_bytes         of an average document of the index
    phrase_documents  that contain the rarest word of a phrase, in total over all phrases
    boosts            of rules for the query; with any, all matches are ranked
    rankings          of documents and passages
    matches           at most
    terms             of the index
    filter_ms         milliseconds of the filter, 0 if its mask is cached
    """

    words: float = 0
    operators: int = 0
    misspelt: int = 0
    hit_bytes: int = 0
    phrase_documents: int = 0
    boosts: int = 0
    rankings: int = 1
    matches: int = 0
    terms: int = 0
    filter_ms: float = 0.0

    @classmethod
    def of_parts(cls, counts: Sequence[QueryCounts]) -> QueryCounts:
        """Return the counts of all parts of an index together."""
        return counts[0]._replace(
            misspelt=min(count.misspelt for count in counts),
            hit_bytes=max(count.hit_bytes for count in counts),
            phrase_documents=sum(count.phrase_documents for count in counts),
            rankings=sum(count.rankings for count in counts),
            matches=sum(count.matches for count in counts),
            terms=max(count.terms for count in counts),
            filter_ms=sum(count.filter_ms for count in counts),
        )


def estimated_cost(
    query: QueryCounts,
    hits: int,
    *,
    highlight: bool = False,
    quality: bool = False,
    explain: bool = False,
    everything: bool = False,
    reranked: int = 0,
    vector: bool = False,
    facets: int = 0,
    max_facet_values: int = 0,
    sorts: int = 0,
) -> float:
    """Return about how many milliseconds a search takes.

    hits        that are ranked, those before `offset` included; costs per hit apply to all of them
    everything  whether every document is scored
    reranked    hits that a reranker scores
    vector      whether the query has a vector
    facets      fields whose values are counted, `max_facet_values` of each in the answer
    sorts       fields to sort by, or of which each value is returned once
    """
    per_hit = HIT + HIT_BYTE * query.hit_bytes
    per_hit += HIGHLIGHT * highlight + QUALITY * quality + EXPLANATION * explain
    of_query = OPERATOR * query.operators + PHRASE_DOCUMENT * query.phrase_documents
    of_query += MISSPELT * query.misspelt * max(1.0, query.terms / MISSPELT_TERMS)
    of_query += query.filter_ms + FACET_VALUE * facets * max_facet_values
    per_match = MATCH * bool(facets or sorts) + COUNTED_MATCH * facets + SORTED_MATCH * sorts
    of_query += per_match * query.matches
    ranking = SEARCH + WORD * query.words + EVERYTHING * everything + VECTOR * vector
    return query.rankings * ranking + of_query + per_hit * hits + RERANKED * reranked


def suggestions_cost(query: QueryCounts, k: int) -> float:
    """Return about how many milliseconds k suggestions take; `query` is the typed text."""
    misspelt = min(query.misspelt, 1)  # only the last word is corrected
    one = SUGGESTED + WORD * query.words
    return estimated_cost(query._replace(misspelt=misspelt), 0) + SUGGESTIONS + one * k


_JOINS: Final = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)


class FieldSize(NamedTuple):
    """Values of a field in all documents, and bytes of its distinct texts."""

    values: int
    content: int


def filter_cost(
    text: str, *, is_json: bool, documents: int, sizes: Mapping[str, FieldSize]
) -> float:
    """Return about how many milliseconds the mask of a filter takes, without reading it.

    text       of the filter
    documents  of the index, whose IDs a condition may be compared with
    sizes      of each field
    """
    # An upper bound, as quoted values may contain these words.
    conditions = text.count('":') if is_json else 1 + len(_JOINS.findall(text))
    contains = text.lower().count("contains")
    named = [size for name, size in sizes.items() if name in text] or sizes.values()
    values = max((size.values for size in named), default=0)
    texts = max((size.content for size in named), default=0)
    per_condition = CONDITION + CONDITION_VALUE * max(documents, values)
    of_texts = CONTAINS_BYTE * contains * texts
    return FILTER_CHARACTER * len(text) + conditions * per_condition + of_texts
