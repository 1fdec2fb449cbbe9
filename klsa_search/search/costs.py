"""Estimated costs of searches, by which a service decides which searches may run concurrently.

Units are milliseconds of one processor on an index of 20,000 news stories
(`python -m benchmarks.service_load HOME NAME QUERIES --expensive`). Only their ratios matter: on a
larger index all searches take longer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SEARCH: Final = 1.0
WORD: Final = 0.1
OPERATOR: Final = 2.0
"""A phrase, prefix, `+`, `-` or field name."""
PHRASE_DOCUMENT: Final = 0.003
"""A document in which a phrase is searched; less if it occurs early."""
MISSPELT: Final = 7.0
"""A word that no document contains, for which similar words are searched."""

HIT: Final = 0.1
HIGHLIGHT: Final = 0.3
QUALITY: Final = 0.05
EXPLANATION: Final = 3.5
"""Each for one hit."""

HIT_BYTE: Final = 5e-6
"""A byte of the text of a hit, which is searched for the best passage."""

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
    """

    words: float = 0
    operators: int = 0
    misspelt: int = 0
    hit_bytes: int = 0
    phrase_documents: int = 0
    boosts: int = 0
    rankings: int = 1


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
) -> float:
    """Return about how many milliseconds a search takes.

    hits        that are ranked, those before `offset` included; costs per hit apply to all of them
    everything  whether every document is scored
    reranked    hits that a reranker scores
    vector      whether the query has a vector
    """
    per_hit = HIT + HIT_BYTE * query.hit_bytes
    per_hit += HIGHLIGHT * highlight + QUALITY * quality + EXPLANATION * explain
    of_query = OPERATOR * query.operators + MISSPELT * query.misspelt
    of_query += PHRASE_DOCUMENT * query.phrase_documents
    ranking = SEARCH + WORD * query.words + EVERYTHING * everything + VECTOR * vector
    return query.rankings * ranking + of_query + per_hit * hits + RERANKED * reranked
