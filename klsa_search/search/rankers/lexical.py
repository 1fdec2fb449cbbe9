"""BM25: the raw row of the query kernel."""

from __future__ import annotations

from klsa_search.arrays import Scores
from klsa_search.config import SearchSettings
from klsa_search.search.boosting import lexical
from klsa_search.search.query import QueryTerms
from klsa_search.search.snapshot import Snapshot


def rank_bm25(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """k_q: Σ_t f(t,q) · h(t) · w(t) · sat(t,d), see `kernel.query`. Cost: its postings."""
    return lexical(snapshot, query, parameters)
