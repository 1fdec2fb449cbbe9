"""Words that are two written as one, such as *hardrive*, of which one may be misspelt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.query.interpretation import Word, Words
from klsa_search.search.query.matching import count_all, documents_with
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.similar_terms import (
    MIN_FITTING_LETTERS,
    MIN_WORD_LETTERS,
    SimilarTerms,
    best_first,
    priors,
)
from klsa_search.search.query.term_dictionary import most_frequent_case

_HALF_CANDIDATES: Final = 4
"""Candidates for the misspelt half of a word, at most."""


class TwoWords:
    """Divides words that no document contains by the terms of one snapshot; thread-safe."""

    def __init__(self, pieces: PieceCache, similar: SimilarTerms) -> None:
        self._snapshot, self._analyzer, self._similar = pieces.snapshot, pieces.analyzer, similar
        self._term_dictionary, self._divider = pieces.term_dictionary, pieces.divider
        self._names, self._common = self._snapshot.vocabulary.terms, self._analyzer.common()

    def written_as(self, word: str, evidence: Evidence) -> Words:
        """Return the two words, most often in the same documents, that are written as this one.

        They may share a letter, as in *hardrive*. Or one of them is misspelt, as in *coffemachine*,
        if documents write them side by side or, if none does, contain both.
        """
        halves = self._divider.halves(word) or self._divider.halves(word, shared=1)
        divisions = [tuple(map(self._word, pair)) for pair in halves]
        counts = {
            words: self._together(words, evidence)
            for words in divisions
            if min(len(one.text) for one in words) >= MIN_WORD_LETTERS
            and min(one.number for one in words) >= 0  # a half may be a term only in pieces
        }
        if not any(counts.values()):
            return self._misspelt_apart(word, evidence)
        best = max(counts, key=counts.__getitem__, default=())
        return best if best and counts[best] else ()

    def _misspelt_apart(self, word: str, evidence: Evidence) -> Words:
        costs = dict(self._misspelt_halves(word, evidence))
        for count in (self._side_by_side, self._together):
            scores = {
                words: math.log(documents) - cost_
                for words, cost_ in costs.items()
                if (documents := count(words, evidence))
            }
            if scores:
                return max(scores, key=scores.__getitem__)
        return ()

    def _side_by_side(self, words: Words, evidence: Evidence) -> int:
        return documents_with(self._snapshot, [one.number for one in words], evidence)

    def _together(self, words: Words, evidence: Evidence) -> int:
        return count_all(self._snapshot, [[(one.number,)] for one in words], evidence)

    def _misspelt_halves(self, word: str, evidence: Evidence) -> Iterator[tuple[Words, float]]:
        """Yield a word as one that documents contain and one that is probably meant, with costs."""
        folded = self._analyzer.folded(word)
        frequencies = self._snapshot.query_kernel.counts.frequencies
        for border in range(MIN_FITTING_LETTERS, len(folded) - MIN_FITTING_LETTERS + 1):
            halves = [self._word(folded[:border]), self._word(folded[border:])]
            unknown = [at for at, half in enumerate(halves) if half.number < 0]
            common = [self._analyzer.term(half.text) in self._common for half in halves]
            if len(unknown) != 1 or any(common):
                continue
            (at,) = unknown
            typed = halves[at].text
            if len(typed) < MIN_WORD_LETTERS:
                continue
            terms, distances = self._similar.near(typed, 1)
            scores = priors(frequencies[terms], distances).tolist()
            first = best_first(dict(zip(terms.tolist(), scores, strict=True)), self._names)
            for term in first[:_HALF_CANDIDATES]:
                (forms,) = self._term_dictionary.forms([term], evidence)
                nearest = self._similar.nearest_form(typed, forms, 1, unfinished=False)
                if nearest is not None:
                    halves[at] = Word(most_frequent_case(forms, nearest[1]), term)
                    yield tuple(halves), nearest[0]

    def _word(self, text: str) -> Word:
        number = self._snapshot.vocabulary.numbers.get(self._analyzer.term(text), UNKNOWN)
        return Word(text, number)
