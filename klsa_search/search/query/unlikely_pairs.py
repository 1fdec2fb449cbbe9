"""Words that documents never have beside their neighbours in a query: the lamb of *desk lamb*.

They may be misspelt although documents contain them. Then a word at one edit stands beside these
neighbours, and goes with them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Final

from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.query.corrections import Correction, Corrector
from klsa_search.search.query.interpretation import Word, Words
from klsa_search.search.query.matching import are_beside, documents_with
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.similar_terms import MIN_FITTING_LETTERS, SLIP

MAX_WORDS: Final = 4
"""Words of a query that is looked at, at most: longer ones say enough by their other words."""

MIN_TOGETHER: Final = 2
"""Documents that have a word beside a neighbour for which it is meant, at least."""

MARGIN: Final = -1.0
"""Least difference of the scores of the other word and of the one that was typed."""

_CANDIDATES: Final = 4
"""Words of which the written forms are compared, at most."""


class UnlikelyPairs:
    """Finds what such words of queries to one snapshot are meant to be; thread-safe."""

    def __init__(self, pieces: PieceCache, corrector: Corrector) -> None:
        self._snapshot, self._analyzer = pieces.snapshot, pieces.analyzer
        self._corrector, self._common = corrector, self._analyzer.common()
        self._meant: dict[Hashable, Correction | None] = {}

    def meant(self, words: Sequence[Word], evidence: Evidence) -> Iterator[tuple[Word, Correction]]:
        """Yield words of a short query that are meant to be others.

        Cost: 0.3 µs a word; for a new pair of words that of a phrase and, if no document has it,
        1 ms or more.
        """
        if not 1 < len(words) <= MAX_WORDS:
            return
        for at, word in enumerate(words):
            if word.number < 0:
                continue
            before = tuple(one for one in words[max(at - 1, 0) : at] if one.number >= 0)
            after = tuple(one for one in words[at + 1 : at + 2] if one.number >= 0)
            if before or after:
                find = partial(self._find, word, before, after, evidence)
                meant = evidence.cached(self._meant, (word, before, after), find)
                if meant is not None:
                    yield word, meant

    def _find(
        self, word: Word, before: Words, after: Words, evidence: Evidence
    ) -> Correction | None:
        if not self._may_be_misspelt(word):
            return None
        pairs = [(one.number, word.number) for one in before]
        pairs += [(word.number, one.number) for one in after]
        if evidence is LOCAL and any(are_beside(self._snapshot, pair) for pair in pairs):
            return None
        if self._together(before, word, after, evidence):
            return None
        folded = self._analyzer.folded(word.text)
        frequencies = self._snapshot.query_kernel.counts.frequencies
        similar = self._corrector.similar
        terms, _ = similar.near(folded, 1)
        context = [neighbour.number for neighbour in (*before, *after)]
        near = [term for term in terms.tolist() if frequencies[term] >= MIN_TOGETHER]
        weights = self._corrector.weights([word.number, *near], context, evidence)

        def score_of(term: int) -> float:
            return math.log(frequencies[term]) + weights[term]

        least = score_of(word.number) + MARGIN
        likely = {term: score_of(term) for term in near if score_of(term) - SLIP > least}
        best: Correction | None = None
        for term in similar.best(likely, _CANDIDATES):
            written = similar.as_written(folded, term, 1, evidence)
            if written is None or term in (word.number, *context):
                continue
            other, score = Word(written.text, term), likely[term] - written.cost
            if score > least and self._together(before, other, after, evidence) >= MIN_TOGETHER:
                best, least = Correction((term,), written.text), score
        return best

    def _may_be_misspelt(self, word: Word) -> bool:
        """Return whether a word may be misspelt: function words, codes, abbreviations are not."""
        text = word.text
        if len(text) < MIN_FITTING_LETTERS or not text.isalpha():
            return False
        return not any(map(str.isupper, text[1:])) and self._analyzer.term(text) not in self._common

    def _together(self, before: Words, word: Word, after: Words, evidence: Evidence) -> int:
        """Return how many documents have a word beside one of its neighbours."""
        pairs = [*((one, word) for one in before), *((word, one) for one in after)]
        return max(
            documents_with(self._snapshot, [one.number for one in pair], evidence) for pair in pairs
        )
