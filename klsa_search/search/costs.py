"""Estimated costs of searches, by which a service decides what may run alongside what.

The weights are milliseconds of one processor on an index of 20,000 news stories
(`python -m benchmarks.service_load HOME NAME QUERIES --expensive`). They serve to tell expensive
searches from cheap ones: on a larger index all of them take longer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SEARCH: Final = 1.0
WORD: Final = 0.1
OPERATOR: Final = 2.0
"""A phrase, a prefix, `+`, `-` or the name of a field."""
PHRASE_DOCUMENT: Final = 0.003
"""A document that is compared with a phrase: less where the phrase is found early in it."""
MISSPELT: Final = 7.0
"""A word that no document contains, for which similar ones are compared."""

HIT: Final = 0.1
HIGHLIGHT: Final = 0.3
QUALITY: Final = 0.05
EXPLANATION: Final = 3.5
"""Each of one hit."""

HIT_BYTE: Final = 5e-6
"""A byte of the text of a hit, all of which is searched for the best passage."""

EVERYTHING: Final = 100.0
"""Scoring every document instead of candidates."""

CHARACTERS_PER_WORD: Final = 6


class QueryCounts(NamedTuple):
    """What makes a query expensive.

    hit_bytes         of an average document of the index
    phrase_documents  that contain the rarest word of a phrase, added up over all phrases
    """

    words: float = 0
    operators: int = 0
    misspelt: int = 0
    hit_bytes: int = 0
    phrase_documents: int = 0


def estimated_cost(
    query: QueryCounts,
    hits: int,
    *,
    highlight: bool = False,
    quality: bool = False,
    explain: bool = False,
    everything: bool = False,
) -> float:
    """Return about how many milliseconds a search takes.

    hits        that are ranked, those before `offset` included; each is counted with everything
                that is computed for it
    everything  whether every document is scored
    """
    per_hit = HIT + HIT_BYTE * query.hit_bytes
    per_hit += HIGHLIGHT * highlight + QUALITY * quality + EXPLANATION * explain
    of_query = WORD * query.words + OPERATOR * query.operators + MISSPELT * query.misspelt
    of_query += PHRASE_DOCUMENT * query.phrase_documents
    return SEARCH + of_query + per_hit * hits + EVERYTHING * everything
