"""Estimates that need an open index: what makes its queries expensive."""

from __future__ import annotations

from typing import Final

from klsa_search.core.keywords import SearchParameters
from klsa_search.search.costs import RANKINGS_WITH_PASSAGES, QueryCounts
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.state.state import State

_QUICK_HITS: Final = 20
_QUICK_QUERY: Final = 256
"""Hits and characters of a query that are quick: ten hits take 50 µs."""

QUICK_BYTES: Final = 2**20
"""Total bytes of the k longest documents up to which a search is quick: 5 ms if all are hits."""


def counts_of(
    state: State, query: str, parameters: SearchParameters, filter_: FilterLike | None
) -> QueryCounts:
    """Return counts of what makes a query expensive: see `Index.query_counts`."""
    reading, _ = state.parameters.read(parameters)
    counts = state.query_parser.counts(query, reading)
    rules = state.rules.for_query(query) if state.rules else ()
    boosts = sum(len(rule.then.boost) for rule in rules)
    rankings = 1 if state.passages is None else RANKINGS_WITH_PASSAGES
    return counts._replace(
        hit_bytes=state.documents.mean_size,
        boosts=boosts,
        rankings=rankings,
        terms=len(state.snapshot.vocabulary),
        filter_ms=0.0 if filter_ is None else state.filters.cost(filter_),
    )


def is_quick(state: State, query: str, k: int) -> bool:
    """Return whether a search by words takes at most 1 ms: see `Index.is_quick`."""
    if k > _QUICK_HITS or len(query) > _QUICK_QUERY or state.info.analyzer.tokenizes:
        return False
    terms = state.query_parser.known_terms_of(query)
    return (
        terms is not None
        and not (state.rules and state.rules.for_query(query))
        and state.searcher.is_quick(terms)
        and state.documents.size_of_longest(k) <= QUICK_BYTES
    )
