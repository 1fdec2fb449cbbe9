"""Proposals of synonyms for words of queries that no or few documents contain.

The evidence are visitors who searched a word, replaced it by another, and opened a hit. Terms of
opened documents are not used: most of what they propose is wrong (see
docs/explanations/effectiveness.md). A person decides: proposals are never applied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from klsa_search.analysis.languages import stop_list
from klsa_search.core.service_reports import SynonymCandidate, SynonymProposal
from klsa_search.search.index import Index
from klsa_search.search.query.term_dictionary import most_frequent_form

_RARE: Final = 3  # documents with a word up to which synonyms are proposed for it
_MIN_REPLACED: Final = 2  # searches that replaced a word by the same other one
_LONGEST: Final = 2  # words that replace one
_CANDIDATES: Final = 3  # candidates for a word
_SHOWN: Final = 3  # queries shown with a candidate
_QUERIES: Final = 5  # queries shown with a word


@dataclass(frozen=True, slots=True)
class SearchedQuery:
    """A query with the queries that replaced it and led to a click, and how often."""

    text: str
    searches: int
    replaced_by: Mapping[str, int] = field(default_factory=dict)


def propose_synonyms(
    index: Index, queries: Sequence[SearchedQuery], k: int = 10
) -> list[SynonymProposal]:
    """Return proposals for up to k words, those that were searched most often first.

    Left out are stop words, words that have synonyms, and words without candidates. Cost: the
    analysis of the queries.
    """
    index = index.snapshot()
    words = _Words(index)
    settled = {term for word in index.synonyms for term in words.of(word)}
    searched: defaultdict[str, list[SearchedQuery]] = defaultdict(list)
    for query in queries:
        for term in words.of(query.text):
            if words.documents(term) <= _RARE and term not in settled:
                searched[term].append(query)
    counts = {term: sum(query.searches for query in some) for term, some in searched.items()}
    proposals: list[SynonymProposal] = []
    for term in sorted(searched, key=lambda term: (-counts[term], term)):
        some = searched[term]
        candidates = _candidates(words, term, some)
        if candidates:
            proposals.append(
                SynonymProposal(
                    words.of(some[0].text)[term],
                    counts[term],
                    words.documents(term),
                    [query.text for query in some[:_QUERIES]],
                    candidates,
                )
            )
        if len(proposals) == k:
            break
    return proposals


class _Words:
    """The words of queries, without stop words, and how many documents contain them."""

    def __init__(self, index: Index) -> None:
        self._analyzer = index.analyzer
        # In a small collection some of them are in no document.
        self._ignored = frozenset[str]().union(*map(stop_list, index.analyzer.languages))
        self._numbers = index.arrays.vocabulary.numbers
        self._frequencies = index.arrays.query_kernel.counts.frequencies

    def of(self, text: str) -> dict[str, str]:
        words = ((term, word.lower()) for term, word in self._analyzer.written(text))
        return {term: word for term, word in words if term and word not in self._ignored}

    def documents(self, term: str) -> int:
        number = self._numbers.get(term)
        return 0 if number is None else int(self._frequencies[number])


def _candidates(
    words: _Words, term: str, queries: Iterable[SearchedQuery]
) -> list[SynonymCandidate]:
    """Return what the word alone was replaced by, in queries that stayed the same otherwise."""
    total = 0
    forms: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    examples: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for query in queries:
        before = words.of(query.text)
        for text, count in query.replaced_by.items():
            after = words.of(text)
            if before.keys() - after.keys() != {term}:
                continue
            total += count
            added = tuple(other for other in after if other not in before)
            if 0 < len(added) <= _LONGEST and all(words.documents(word) for word in added):
                forms[added][" ".join(after[word] for word in added)] += count
                examples[added][text] += count
    candidates = [
        SynonymCandidate(
            most_frequent_form(forms[added]),
            texts.total(),
            total,
            [text for text, _ in texts.most_common(_SHOWN)],
        )
        for added, texts in examples.items()
        if texts.total() >= _MIN_REPLACED
    ]
    candidates.sort(key=lambda proposal: (-proposal.count, proposal.synonym))
    return candidates[:_CANDIDATES]
