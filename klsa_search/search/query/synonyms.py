"""Synonyms in queries, of words or of sequences of words, as further terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.engine.query_terms import NO_TERM
from klsa_search.search.query.interpretation import QueryBuilder, Word

Terms = tuple[str, ...]


class Synonym(NamedTuple):
    """A synonym as the user gave it, and its terms."""

    text: str
    terms: Terms


def lengths_by_first_term(sequences: Iterable[Terms]) -> dict[str, list[int]]:
    """Return the lengths of the sequences that begin with each term, longest first."""
    lengths: dict[str, set[int]] = {}
    for terms in sequences:
        lengths.setdefault(terms[0], set()).add(len(terms))
    return {term: sorted(sizes, reverse=True) for term, sizes in lengths.items()}


class Synonyms:
    """The synonyms of an index, by terms, so that they apply to all forms of a word; immutable.

    first_terms  the first term of each sequence that has synonyms
    """

    def __init__(self, as_written: Mapping[str, Sequence[str]], analyzer: Analyzer) -> None:
        self.as_written = as_written
        texts = {*as_written, *chain.from_iterable(as_written.values())}
        readings = {text: analyzer.readings(text) for text in texts}
        by_terms: dict[Terms, dict[Terms, Synonym]] = {}
        for word, written in as_written.items():
            meant = [Synonym(text, terms) for text in written for terms in readings[text]]
            for terms in readings[word]:
                for synonym in meant:
                    if terms and synonym.terms and synonym.terms not in readings[word]:
                        by_terms.setdefault(terms, {}).setdefault(synonym.terms, synonym)
        self._of = {terms: tuple(synonyms.values()) for terms, synonyms in by_terms.items()}
        self._lengths = lengths_by_first_term(self._of)
        self.first_terms = self._lengths.keys()
        self._terms = frozenset(chain.from_iterable(self._of))

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._of)

    def __contains__(self, term: object) -> bool:
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
                sequence = tuple(terms[at : at + length])
                if synonyms := self._of.get(sequence):
                    yield at, at + len(sequence), synonyms
                    at += len(sequence)
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

    def with_terms(self, term: str, further: Sequence[str]) -> SynonymExpansion:
        """Return the expansion with further terms that count as a term, such as completions."""
        alternatives = (*self.of.get(term, ()), *((one,) for one in further))
        return SynonymExpansion(self.added.union(further), {**self.of, term: alternatives})


NONE: Final = SynonymExpansion(frozenset(), {})


def add_synonyms(
    synonyms: Synonyms,
    builder: QueryBuilder,
    vocabulary: Vocabulary,
    term_of: Callable[[Word], str],
) -> SynonymExpansion:
    """Add the terms of synonyms of words that the query does not contain, once each.

    Words are the plain ones of the query, corrected, and then as documents also write them: joined,
    in parts or complete.
    term_of  returns the term of a word, "" for a word without one
    A synonym of several words counts only if documents contain all of them.
    """
    numbers = vocabulary.numbers
    parsed, added = set(builder.terms), set()
    of: dict[str, dict[Terms, None]] = {}

    def add(words: Sequence[Word], stands_for: Sequence[int | str] = ()) -> None:
        plain_words = [(term_of(word), word) for word in words if word.number != NO_TERM]
        for first, after, meant in synonyms.find([term for term, _ in plain_words]):
            written = " ".join(word.text for _, word in plain_words[first:after])
            if written in builder.synonyms:
                continue
            indexed = [one for one in meant if all(term in numbers for term in one.terms)]
            if not indexed:
                continue
            builder.synonyms[written] = tuple(one.text for one in indexed)
            keys = set(stands_for)
            for term, word in plain_words[first:after]:
                key = term if term in numbers else word.text
                of.setdefault(key, {}).update(dict.fromkeys(one.terms for one in indexed))
                if not stands_for:
                    keys.add(word.key)
            for one in indexed:
                terms = tuple(numbers[term] for term in one.terms)
                for counted in keys:
                    builder.count(counted, terms)
                for term, number in zip(one.terms, terms, strict=True):
                    if number not in parsed:
                        parsed.add(number)
                        builder.terms.append(number)
                        added.add(term)

    add(builder.plain_words)
    for stands_for, words in builder.writings:
        add(words, stands_for)
    return SynonymExpansion(
        frozenset(added), {key: tuple(synonyms_) for key, synonyms_ in of.items()}
    )
