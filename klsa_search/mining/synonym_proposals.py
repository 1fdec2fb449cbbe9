"""Proposals of synonyms for words of queries that no document contains, each with its evidence.

Documents that were clicked after such a query are the strongest evidence: their strongest terms,
if several clicks agree. Then terms at one or two edits, and terms related to the other words of the
queries in the latent space. A person decides: proposals are never applied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from klsa_search.errors import DocumentNotFound, QueryError, TermNotFound
from klsa_search.mining.related_terms import related, strongest_terms
from klsa_search.search.index import Index

Evidence = Literal["clicks", "spelling", "related"]

_CLICKED: Final = 20
"""Clicked documents of a word that are read."""

_STRONG: Final = 15
"""Terms of a clicked document."""

_MIN_CLICKS: Final = 2
"""Clicks on documents with a term from which it is proposed."""

_OF_EACH: Final = 3
"""Proposals of a word by one kind of evidence."""

_QUERIES: Final = 5
"""Queries shown with a word."""


@dataclass(frozen=True, slots=True)
class FailedQuery:
    """A query with the documents that were clicked after it, and how often."""

    text: str
    searches: int
    clicks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed synonym.

    evidence    clicks: clicked documents contain it; spelling: it is written nearly alike; related:
                it is related to the other words of the queries
    clicks      clicks on documents that contain it, for `clicks`
    of          clicks on all documents that were looked at
    similarity  of related terms: see `RelatedTerm`
    """

    synonym: str
    evidence: Evidence
    clicks: int | None = None
    of: int | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A word that no document contains, with candidates for synonyms, best evidence first.

    searches  searches with the word
    queries   the most frequent queries with it
    """

    word: str
    searches: int
    queries: tuple[str, ...]
    candidates: tuple[Candidate, ...]


def propose_synonyms(index: Index, queries: Sequence[FailedQuery], k: int = 10) -> list[Proposal]:
    """Return proposals for the k unknown words that were searched most often.

    Words with synonyms already are left out. Cost: O(V · m) for each word, for V terms and m
    dimensions, and the reading of up to 20 documents.
    """
    index = index.snapshot()
    numbers = index.arrays.vocabulary.numbers
    frequencies = index.arrays.query_kernel.frequencies
    found: defaultdict[str, list[tuple[FailedQuery, list[str]]]] = defaultdict(list)
    for query in queries:
        words = {word: term for term, word in index.analyzer.written(query.text) if term}
        unknown = [
            word
            for word, term in words.items()
            if term not in numbers or not frequencies[numbers[term]]
        ]
        known = [word for word in words if word not in unknown]
        for word in unknown:
            if word not in index.synonyms:
                found[word].append((query, known))
    counts = Counter(
        {word: sum(each.searches for each, _ in asked) for word, asked in found.items()}
    )
    most = sorted(counts, key=lambda word: (-counts[word], word))[:k]
    return [
        Proposal(
            word=word,
            searches=counts[word],
            queries=tuple(each.text for each, _ in found[word][:_QUERIES]),
            candidates=_candidates(index, word, found[word]),
        )
        for word in most
    ]


def _candidates(
    index: Index, word: str, asked: Sequence[tuple[FailedQuery, list[str]]]
) -> tuple[Candidate, ...]:
    context = list(dict.fromkeys(one for _, known in asked for one in known))
    taken = {*index.analyzer.terms(" ".join(context))}
    candidates = [
        *_by_clicks(index, asked, taken),
        *_by_spelling(index, word),
        *_by_context(index, context),
    ]
    best = {each.synonym: each for each in reversed(candidates)}  # the first of each stays
    return tuple(each for each in candidates if best[each.synonym] is each)


def _by_clicks(
    index: Index, asked: Sequence[tuple[FailedQuery, list[str]]], taken: set[str]
) -> list[Candidate]:
    """Return the strongest terms of clicked documents, by clicks times weight."""
    clicks: Counter[str] = Counter()
    for query, _ in asked:
        clicks.update(query.clicks)
    weights: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    words: dict[str, str] = {}
    total = 0
    for id_, count in clicks.most_common(_CLICKED):
        try:
            strong = strongest_terms(index, id_, _STRONG)
        except DocumentNotFound:
            continue  # deleted since
        total += count
        for each in strong:
            if each.term not in taken:
                weights[each.term] += each.weight * count
                counts[each.term] += count
                words.setdefault(each.term, each.word.lower())
    agreed = [term for term in weights if counts[term] >= _MIN_CLICKS]
    agreed.sort(key=lambda term: (-weights[term], term))
    return [
        Candidate(words[term], "clicks", clicks=counts[term], of=total)
        for term in agreed[:_OF_EACH]
    ]


def _by_spelling(index: Index, word: str) -> list[Candidate]:
    read = index.search(word, 1, spelling="suggest", operators=False).interpretation
    return [Candidate(each, "spelling") for each in read.corrections.values()]


def _by_context(index: Index, context: Sequence[str]) -> list[Candidate]:
    if not context:
        return []
    try:
        near = related(index, " ".join(context), _OF_EACH)
    except (TermNotFound, QueryError):  # only common words, or an index without eigenvectors
        return []
    return [
        Candidate(each.word.lower(), "related", similarity=round(each.similarity, 4))
        for each in near
        if each.similarity > 0
    ]
