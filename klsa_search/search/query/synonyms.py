"""Synonyms in queries, of words or of sequences of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from klsa_search.analysis.analyzer import Analyzer

Terms = tuple[str, ...]


class Synonym(NamedTuple):
    """A synonym.

    text   as the user gave it
    terms  its terms
    """

    text: str
    terms: Terms


class Synonyms:
    """The synonyms of an index, by terms, so that they apply to all forms of a word; immutable.

    Cost: the analysis of each.
    """

    def __init__(self, as_written: Mapping[str, Sequence[str]], analyzer: Analyzer) -> None:
        self.as_written = as_written
        texts = {*as_written, *(other for others in as_written.values() for other in others)}
        readings = {text: analyzer.readings(text) for text in texts}
        by_terms: dict[Terms, dict[Terms, Synonym]] = {}
        for word, others in as_written.items():
            meant = [Synonym(other, terms) for other in others for terms in readings[other]]
            for terms in readings[word]:
                for synonym in meant:
                    if terms and synonym.terms and synonym.terms not in readings[word]:
                        by_terms.setdefault(terms, {}).setdefault(synonym.terms, synonym)
        self._of = {terms: tuple(others.values()) for terms, others in by_terms.items()}
        lengths: dict[str, set[int]] = {}
        for terms in self._of:
            lengths.setdefault(terms[0], set()).add(len(terms))
        self._lengths = {first: sorted(some, reverse=True) for first, some in lengths.items()}
        self._terms = frozenset(term for terms in self._of for term in terms)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._of)

    @property
    def first_terms(self) -> Iterable[str]:
        """The first term of each sequence that has synonyms."""
        return self._lengths.keys()

    def __contains__(self, term: str) -> bool:
        """Return whether a term occurs in a sequence with synonyms, so that it is not misspelt."""
        return term in self._terms

    def find(self, terms: Sequence[str]) -> Iterator[tuple[int, int, tuple[Synonym, ...]]]:
        """Yield sequences that have synonyms: start, end and synonyms.

        terms  of a query, in order; unknown ones are skipped
        Sequences are found from the left, longest first, and do not overlap.
        """
        at = 0
        while at < len(terms):
            for length in self._lengths.get(terms[at], ()):
                others = self._of.get(tuple(terms[at : at + length]))
                if others:
                    yield at, at + length, others
                    at += length
                    break
            else:
                at += 1


class SynonymExpansion(NamedTuple):
    """What synonyms and completions add to a query.

    added  terms that only these add
    of     by term, or by word that no document contains: the terms of each of its synonyms
    """

    added: frozenset[str]
    of: Mapping[str, tuple[Terms, ...]]

    def with_terms(self, term: str, others: Sequence[str]) -> SynonymExpansion:
        """Return the expansion with further terms that count as a term, such as completions."""
        alternatives = (*self.of.get(term, ()), *((other,) for other in others))
        return SynonymExpansion(self.added.union(others), {**self.of, term: alternatives})


NONE: Final = SynonymExpansion(frozenset(), {})
