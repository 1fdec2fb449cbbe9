"""Proposals of synonyms for words of queries that no or few documents contain, with evidence.

Documents that were clicked after such a query are the strongest evidence: terms that are strong in
several of them, or that are in the title of one that was clicked repeatedly. Then terms at one or
two edits, and terms related to the other words of the queries in the latent space. Rare words get
proposals too if the clicked documents do not contain them. A person decides: proposals are never
applied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from klsa_search.analysis.languages import stop_list
from klsa_search.errors import DocumentNotFound, QueryError, TermNotFound
from klsa_search.mining.related_terms import related, strongest_terms
from klsa_search.search.index import Index

Evidence = Literal["clicks", "spelling", "related"]

_CLICKED: Final = 20
"""Clicked documents of a word that are read."""

_STRONG: Final = 15
"""Terms of a clicked document."""

_MIN_CLICKS: Final = 2
"""Clicked documents with a term for a proposal, or else clicks on one with it in its title."""

_RARE: Final = 3
"""Documents with a word up to which other words are proposed for it, by clicks only."""

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
    documents   IDs of up to three clicked documents that contain it, most clicked first
    """

    synonym: str
    evidence: Evidence
    clicks: int | None = None
    of: int | None = None
    similarity: float | None = None
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A word that no or few documents contain, with candidates for synonyms, best evidence first.

    searches   searches with the word
    documents  number of documents that contain it
    queries    the most frequent queries with it
    """

    word: str
    searches: int
    documents: int
    queries: tuple[str, ...]
    candidates: tuple[Candidate, ...]


def propose_synonyms(index: Index, queries: Sequence[FailedQuery], k: int = 10) -> list[Proposal]:
    """Return proposals for the k words that were searched most often, of those without matches.

    Left out are stop words, words with synonyms already, and rare words without candidates. Cost:
    O(V · m) for each word, for V terms and m dimensions, and the reading of up to 20 documents.
    """
    index = index.snapshot()
    ignored = stop_list(index.settings.language)  # in small collections some are in no document
    found: defaultdict[str, list[tuple[FailedQuery, list[str]]]] = defaultdict(list)
    for query in queries:
        counts = {
            word: _frequency(index, term)
            for term, word in index.analyzer.written(query.text)
            if term and word.lower() not in ignored
        }
        known = [word for word, count in counts.items() if count]
        for word, count in counts.items():
            # Only clicks can show that a word with matches needs a synonym.
            if count <= (_RARE if query.clicks else 0) and word not in index.synonyms:
                found[word].append((query, [each for each in known if each != word]))
    searches = {word: sum(each.searches for each, _ in asked) for word, asked in found.items()}
    proposals: list[Proposal] = []
    for word in sorted(searches, key=lambda word: (-searches[word], word)):
        if len(proposals) == k:
            break
        documents = _frequency(index, next(term for term, _ in index.analyzer.written(word)))
        candidates = _candidates(index, word, found[word], rare=documents > 0)
        if candidates or not documents:
            queries_ = tuple(each.text for each, _ in found[word][:_QUERIES])
            proposals.append(Proposal(word, searches[word], documents, queries_, candidates))
    return proposals


def _frequency(index: Index, term: str) -> int:
    """Return the number of documents that contain a term."""
    number = index.arrays.vocabulary.numbers.get(term)
    return 0 if number is None else int(index.arrays.query_kernel.frequencies[number])


def _candidates(
    index: Index, word: str, asked: Sequence[tuple[FailedQuery, list[str]]], *, rare: bool
) -> tuple[Candidate, ...]:
    context = list(dict.fromkeys(one for _, known in asked for one in known))
    taken = {*index.analyzer.terms(" ".join([word, *context]))}
    candidates = _by_clicks(index, word, asked, taken)
    if not rare:
        candidates += [*_by_spelling(index, word), *_by_context(index, context)]
    best = {each.synonym: each for each in reversed(candidates)}  # the first of each stays
    return tuple(each for each in candidates if best[each.synonym] is each)


@dataclass(slots=True)
class _Support:
    """Clicked documents that contain a term, and how often they were clicked."""

    word: str
    ids: list[str] = field(default_factory=list)
    clicks: int = 0
    weight: float = 0.0
    titled: int = 0


def _by_clicks(
    index: Index, word: str, asked: Sequence[tuple[FailedQuery, list[str]]], taken: set[str]
) -> list[Candidate]:
    """Return strong terms of clicked documents without the word, by documents and weight."""
    clicks: Counter[str] = Counter()
    for query, _ in asked:
        clicks.update(query.clicks)
    own = set(index.analyzer.terms(word))
    support: dict[str, _Support] = {}
    total = 0
    for id_, count in clicks.most_common(_CLICKED):
        try:
            document = index.document(id_)
            strong = strongest_terms(index, id_, _STRONG)
        except DocumentNotFound:
            continue  # deleted since
        title = set(index.analyzer.terms(document.title))
        if own & {*title, *index.analyzer.terms(document.text)}:
            continue  # found by the word itself
        total += count
        for each in strong:
            if each.term in taken:
                continue
            known = support.setdefault(each.term, _Support(each.word.lower()))
            known.ids.append(id_)
            known.clicks += count
            known.weight += each.weight * count
            known.titled += count * (each.term in title)
    agreed = [(term, each) for term, each in support.items() if len(each.ids) >= _MIN_CLICKS]
    if not agreed:  # the strong terms of a single document agree in nothing
        agreed = [(term, each) for term, each in support.items() if each.titled >= _MIN_CLICKS]
    agreed.sort(key=lambda pair: (-len(pair[1].ids), -pair[1].weight, pair[0]))
    return [
        Candidate(each.word, "clicks", clicks=each.clicks, of=total, documents=tuple(each.ids[:3]))
        for _, each in agreed[:_OF_EACH]
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
