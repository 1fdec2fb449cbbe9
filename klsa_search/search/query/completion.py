"""Completion of the last word of a query, while it is typed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Final

from klsa_search.core.array_types import DocumentMask
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.builder import Word
from klsa_search.search.query.matching import (
    Alternatives,
    containing_all,
    containing_words,
    names_of,
)

COMPLETIONS: Final = 5
"""Most frequent completions of a query of one word that documents are ranked by, at most. With
other words it is one, which fits them best: several move documents that contain more than one up.
"""

MORE_FREQUENT: Final = 4
"""Factor by which a completion is more frequent than the last word, if documents contain that as
well: rarer ones move documents down that are found by the complete word. Both constants were
chosen on beginnings of titles of cran, cacm, cisi and awsdocs.
"""

MAX_COMPLETIONS: Final = 100
"""Most frequent completions among which those are chosen that fit the other words."""

_LAST_WORD: Final = re.compile(r"[^\W_]+\Z")


def last_word(query: str) -> str:
    """Return the last word of a query, "" if a blank or a sign follows it."""
    match = _LAST_WORD.search(query)
    return match[0] if match else ""


def best_completions(
    snapshot: Snapshot,
    word: Word,
    completions: Collection[int],
    others: Collection[Alternatives],
    evidence: Evidence,
) -> list[int]:
    """Return the completions by which documents are ranked.

    completions  terms, most frequent first
    others       the other words of the query
    The one that most documents with all other words contain; without other words, the most frequent
    ones.
    """
    frequencies, best = snapshot.query_kernel.frequencies, list(completions)[:MAX_COMPLETIONS]
    if word.number >= 0:
        least = MORE_FREQUENT * frequencies[word.number]
        best = [term for term in best if frequencies[term] >= least]
    if not others or not best:
        return best[:COMPLETIONS]
    counts = counts_with(snapshot, others, best, evidence)
    return [max(best, key=lambda term: counts[term])]  # the first of equals


def counts_with(
    snapshot: Snapshot,
    others: Collection[Alternatives],
    terms: Collection[int],
    evidence: Evidence,
    allowed: DocumentMask | None = None,
) -> dict[int, int]:
    """Return the numbers of documents that contain other words and each of some terms.

    allowed  documents that count, by default all live ones
    Cost: their postings.
    """
    names = snapshot.vocabulary.terms

    def documents_with() -> Counter[str]:
        fitting = snapshot.live_docs() if allowed is None else allowed
        if others:
            fitting = fitting & containing_words(snapshot, others, "all", evidence)
        matching = {term: fitting[containing_all(snapshot, [term])] for term in terms}
        return Counter({names[term]: int(mask.sum()) for term, mask in matching.items()})

    with_others = (names_of(snapshot, alternatives) for alternatives in others)
    question = "completions", *with_others, *(names[term] for term in terms)
    counts = evidence.of(question, documents_with)
    return {term: counts[names[term]] for term in terms}
