"""Synonyms in queries: what stands for a word, or for several in a row, is asked for as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from klsa_search.analysis.analyzer import Analyzer

Terms = tuple[str, ...]


class Synonym(NamedTuple):
    """One that stands for words of a query.

    text   as it was given
    terms  what an analyser makes of it
    """

    text: str
    terms: Terms


class Synonyms:
    """The synonyms of an index, by the terms of what they stand for; immutable.

    So all forms of a word are meant. Cost: the analysis of each.
    """

    def __init__(self, given: Mapping[str, Sequence[str]], analyzer: Analyzer) -> None:
        self.given = given
        texts = {*given, *(other for others in given.values() for other in others)}
        terms_of = {text: tuple(analyzer.terms(text)) for text in texts}
        found: dict[Terms, dict[Terms, Synonym]] = {}
        for word, others in given.items():
            terms = terms_of[word]
            for other in others:
                synonym = Synonym(other, terms_of[other])
                if terms and synonym.terms and synonym.terms != terms:
                    found.setdefault(terms, {}).setdefault(synonym.terms, synonym)
        self._of = {terms: tuple(others.values()) for terms, others in found.items()}
        lengths: dict[str, set[int]] = {}
        for terms in self._of:
            lengths.setdefault(terms[0], set()).add(len(terms))
        self._lengths = {first: sorted(some, reverse=True) for first, some in lengths.items()}
        self._terms = frozenset(term for terms in self._of for term in terms)

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self._of)

    @property
    def beginnings(self) -> Iterable[str]:
        """The first term of each that has synonyms."""
        return self._lengths.keys()

    def __contains__(self, term: str) -> bool:
        """Whether something stands for a term, alone or with others: it is no slip then."""
        return term in self._terms

    def found(self, terms: Sequence[str]) -> Iterator[tuple[int, int, tuple[Synonym, ...]]]:
        """Where there is something that has synonyms, from where to where, and these.

        terms  of a query, in their order; what is no term in it is passed over
        From the left, the longest first, and nothing in two of them.
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
    """What synonyms brought into a query.

    added  terms that it is ranked by for that reason alone
    of     by term, or word that no document holds: the terms of each that stands for it
    """

    added: frozenset[str]
    of: Mapping[str, tuple[Terms, ...]]


NONE: Final = SynonymExpansion(frozenset(), {})
