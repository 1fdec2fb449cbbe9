"""The rankers: each turns a query into one score a document.

A ranker is a function of a snapshot, the query's terms and the parameters of the search; the
table `RANKERS` names them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from klsa_search.arrays import Scores
from klsa_search.config import SearchSettings
from klsa_search.expansion import FactoredExpansion, top_z
from klsa_search.search.query import QueryTerms
from klsa_search.search.snapshot import Snapshot

Ranker = Callable[[Snapshot, QueryTerms, SearchSettings, int], Scores]


def rank_bm25(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """k_q, the raw row of the BM25 query kernel [KLSA eq. 3]. Cost: the postings of the query."""
    return snapshot.bm25.query_row(query.numbers, query.counts)


def rank_klsa(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """α · top_z(k_q) · D + (1 - α) · k_q [KLSA §3.3-3.4].

    α = 0 is BM25, to the bit; α = 1 with z = N is the latent semantic kernel of [LSK].
    Cost O(z · N) where D is stored whole, else O(N · k).
    """
    row = rank_bm25(snapshot, query, parameters, dimensions)
    if parameters.alpha == 0:
        return row
    seeds, weights = top_z(row, parameters.z)
    expanded = snapshot.expansion_of(dimensions).expand(seeds, weights)
    return _mixed(expanded, row, np.float32(parameters.alpha))


def rank_lsi(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, dimensions: int
) -> Scores:
    """Latent semantic indexing: inner products of log-tf·idf vectors in the truncated space.

    With U the left singular vectors of the features X, q · V Σ Uᵀ = (q Xᵀ) · U Uᵀ: the expansion
    of the raw row, as for every kernel. Cost O(N · k).
    """
    row = snapshot.tfidf.query_row(query.numbers, np.log1p(query.counts))
    held = np.flatnonzero(row)
    return FactoredExpansion(snapshot.lsi[:, :dimensions]).expand(held, row[held])


def _mixed(expanded: Scores, row: Scores, alpha: np.float32) -> Scores:
    return np.asarray(alpha * expanded + (np.float32(1) - alpha) * row)


RANKERS: dict[str, Ranker] = {"bm25": rank_bm25, "klsa": rank_klsa, "lsi": rank_lsi}
