"""Correction and completion of words: what a word that documents seldom contain was meant to be.

Candidates are terms at one or two edits (optimal string alignment [Damerau 1964]), words that begin
like the one that is still typed, and parts that documents write side by side. The best one is
likely to be typed so, frequent, and in documents with the other words of the query. Terms are
stems; the candidates are compared as documents write them, which decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from rapidfuzz.distance import OSA

from klsa_search.core.lazy import lazy_property
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.query.interpretation import Word, Words
from klsa_search.search.query.matching import count_all, counts_with, documents_with
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.similar_terms import (
    BOTH,
    MIN_FITTING_LETTERS,
    MIN_WORD_LETTERS,
    SimilarTerms,
    unfinished_cost,
)

MIN_CONTEXT_WEIGHT: Final = 1.0
"""Weight of the other words from which a shorter word than `MIN_WORD_LETTERS` is corrected."""

SURE_LETTERS: Final = 6
"""Letters from which a similar word replaces an unknown one without regard to other words: of
shorter unknown words in judged queries, five of six are correct.
"""

MIN_DOCUMENTS: Final = 1000
"""Documents from which an unknown word is more often misspelt than correct: with fewer, most
corrections in judged queries replace correct words (`python -m studies.effectiveness spelling`).
"""

TWO_EDIT_LETTERS: Final = 8
"""Letters from which two edits are allowed without regard to other words."""

LONG_NUMBER: Final = 6
"""Digits from which a number may be several without their signs: 20240203."""

MAX_WORD_LETTERS: Final = 40
"""Letters of a word that is corrected, at most."""

PER_LOG_DOCUMENTS: Final = 0.55
"""How much likelier an unknown word is misspelt if the index has e times as many documents."""

PER_LETTER: Final = 0.6
"""How much likelier a word is misspelt for each letter more: fewer words are similar by chance."""

_MAX_CONTEXT: Final = 4
"""Other words of the query that count, at most: the rarest."""

_SMOOTHING: Final = 2.0
"""Documents that are added to those with a candidate, with other words as often as in all."""

_LOWEST: Final = -1.5
_HIGHEST: Final = 4.0
"""Least and largest weight of one other word."""

_CANDIDATES: Final = 12
_HALF_CANDIDATES: Final = 4
"""Candidates that are compared by their frequency, for a word and for half of one."""


class Correction(NamedTuple):
    """What a word is probably meant to be.

    terms   term numbers; UNKNOWN of a word of synonyms or rules
    words   as documents write them
    score   ln(documents) and `weight`, less `cost`; 0 of words written as one
    weight  sum of the weights of the other words of the query
    cost    of the error
    sure    whether it replaces the word, or is only suggested
    """

    terms: tuple[int, ...]
    words: str
    score: float = 0.0
    weight: float = 0.0
    cost: float = 0.0
    sure: bool = True


class WordContext(NamedTuple):
    """Context of a word in its query.

    context       other terms of the query; None to correct a word by itself, as rankings are
                  evaluated
    alone         whether documents contain no word of the query
    abbreviation  whether the word is written like one
    unfinished    whether it is the last word, which may still be typed
    synonyms      whether the words of synonyms count as known
    """

    context: tuple[int, ...] | None = None
    alone: bool = False
    abbreviation: bool = False
    unfinished: bool = False
    synonyms: bool = False


NO_CONTEXT: Final = WordContext()
"""That of a word by itself."""


class Corrector:
    """Corrects words by the terms of one snapshot; thread-safe.

    The first correction costs 0.1 s per million terms, each word some 2 ms, most of it for reading
    documents; the corrections of 16,384 words are cached. Memory: 60 bytes a term.
    """

    def __init__(self, pieces: PieceCache) -> None:
        self._snapshot, self._analyzer = pieces.snapshot, pieces.analyzer
        self._term_dictionary, self._divider = pieces.term_dictionary, pieces.divider
        self._pieces = pieces
        self.similar = SimilarTerms(self._snapshot, self._analyzer, self._term_dictionary)
        self._derived = pieces.derived

    def correction(
        self, word: str, evidence: Evidence, where: WordContext = NO_CONTEXT
    ) -> Correction | None:
        """Return the correction of a word that no document contains, or None.

        Abbreviations are only split, unless documents contain no word of the query; then also words
        of `MIN_FITTING_LETTERS` are corrected, else only if their correction fits the other words.
        """
        find = partial(self._correction, evidence, word, where)
        return evidence.cached(self._derived, ("correction", word, where), find)

    def correction_to_one(
        self, word: str, evidence: Evidence, where: WordContext
    ) -> Correction | None:
        """Return the correction of a word if it is one word: that of `correction`, or None.

        Most words that are written as one have none, and are not divided to see that.
        """
        folded = self._analyzer.folded(word)
        best = self.best(folded, evidence, where) or self._configured(folded, evidence, where)
        if best is None:
            return None
        correction = self.correction(word, evidence, where)
        return correction if correction is not None and len(correction.terms) == 1 else None

    def _correction(self, evidence: Evidence, word: str, where: WordContext) -> Correction | None:
        self._derived.note_all()
        folded = self._analyzer.folded(word)
        if self._analyzer.term(folded) in self._common:
            return None
        shortest = MIN_WORD_LETTERS if where.context is None else MIN_FITTING_LETTERS
        is_word = shortest <= len(folded) <= MAX_WORD_LETTERS and folded.isalpha()
        is_short_number = folded.isdecimal() and len(folded) < LONG_NUMBER  # 105 is not 10.5
        parts = self._divider.parts(
            word,
            evidence,
            anywhere=is_word,
            visible_only=is_short_number and where.context is not None,
        )
        best = None
        # An abbreviation such as U.S.A. is meant rather than a word that is alike.
        has_short_part = any(len(part.text) == 1 for part in parts) and len(parts) < len(folded)
        if is_word and (where.alone or not where.abbreviation) and (has_short_part or not parts):
            best = self.best(folded, evidence, where)
            configured = self._configured(folded, evidence, where)
            if configured and (best is None or configured.score > best.score):
                best = configured
        if best and parts:
            words = [[(part.number,)] for part in parts if part.number >= 0]
            documents = count_all(self._snapshot, words, evidence)
            if not self._is_sure(folded, best, where) or math.log(max(documents, 1)) > best.score:
                best = None
        is_short = len(folded) < MIN_WORD_LETTERS and not where.alone
        if best and is_short and best.weight < MIN_CONTEXT_WEIGHT:
            best = None
        if best is None and not parts and is_word and where.context is not None:
            parts = self._two_words(word, evidence)
        if best is None:
            terms = tuple(part.number for part in parts)
            return Correction(terms, " ".join(part.text for part in parts)) if parts else None
        return best._replace(sure=self._is_sure(folded, best, where))

    def _two_words(self, word: str, evidence: Evidence) -> Words:
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
        if any(counts.values()):
            return max(counts, key=counts.__getitem__)
        costs = dict(self._misspelt_halves(word, evidence))
        for count in (self._side_by_side, self._together):
            scores = {
                words: math.log(documents) - cost
                for words, cost in costs.items()
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
        folded, similar = self._analyzer.folded(word), self.similar
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
            for term in similar.best(similar.priors(*similar.near(typed, 1)), _HALF_CANDIDATES):
                written = similar.as_written(typed, term, 1, evidence)
                if written is not None:
                    halves[at] = Word(written.text, term)
                    yield tuple(halves), written.cost

    def _word(self, text: str) -> Word:
        number = self._snapshot.vocabulary.numbers.get(self._analyzer.term(text), UNKNOWN)
        return Word(text, number)

    @property
    def is_large(self) -> bool:
        """Return whether the index is so large that an unknown word is rather misspelt."""
        return self._snapshot.query_kernel.counts.documents >= MIN_DOCUMENTS

    def _configured(self, word: str, evidence: Evidence, where: WordContext) -> Correction | None:
        """Return the best word of synonyms or rules for a folded word that no document contains.

        One of synonyms is as frequent as what these search as well, and fits as that does.
        """
        if where.context is None:
            return None
        numbers, frequencies = self._snapshot.vocabulary.numbers, self._term_dictionary.frequencies
        edits = 2 if len(word) >= SURE_LETTERS else 1
        candidates = list[Correction]()
        for cost, configured in self._pieces.configured_words.near(
            word, edits, with_synonyms=where.synonyms
        ):
            meant = [[numbers.get(term, UNKNOWN) for term in terms] for terms in configured.meant]
            rarest = [min(terms, key=frequencies.__getitem__) for terms in meant if min(terms) >= 0]
            weights = self.weights(rarest, where.context, evidence)
            score = max(
                (math.log(max(frequencies[n], 1)) + weights[n] for n in rarest), default=0.0
            )
            weight = max(weights.values(), default=0.0)
            written = configured.written
            candidates.append(Correction((UNKNOWN,), written, score - cost, weight, cost))
        return max(candidates, key=lambda best: (best.score, best.words), default=None)

    def _is_sure(self, word: str, best: Correction, where: WordContext) -> bool:
        """Return whether a candidate replaces a word.

        It does if only letters changed their order, whatever the documents, or if it is a word of
        synonyms or rules at one edit.
        """
        form = self._analyzer.folded(best.words.casefold())
        is_configured = best.terms == (UNKNOWN,) and OSA.distance(word, form) == 1
        if sorted(form) == sorted(word) or is_configured:
            return True
        large, by_itself = self.is_large, where.context is None
        edits = 2 if by_itself and len(word) >= TWO_EDIT_LETTERS else 1
        if large and len(word) >= SURE_LETTERS and OSA.distance(word, form) <= edits:
            return True
        if where.alone and (len(word) >= SURE_LETTERS or (large and not where.abbreviation)):
            return True
        if where.alone and (where.abbreviation or not where.context):
            return False
        return not by_itself and best.score > self.least_score(word)

    def least_score(self, word: str) -> float:
        """Return the score above which a candidate replaces an unknown word."""
        documents = self._snapshot.query_kernel.counts.documents
        further_letters = max(len(word) - SURE_LETTERS, 0)
        return -PER_LOG_DOCUMENTS * math.log(documents) - PER_LETTER * further_letters

    def best(
        self, word: str, evidence: Evidence, where: WordContext, least: int = 1
    ) -> Correction | None:
        """Return the best term for a folded word: of one edit if `least` documents must have it."""
        find = partial(self._find_best, word, evidence, where, least)
        key = "best", word, where.context, where.unfinished, least
        return evidence.cached(self._derived, key, find)

    def _find_best(
        self, word: str, evidence: Evidence, where: WordContext, least: int
    ) -> Correction | None:
        self._derived.note_all()
        for_two = TWO_EDIT_LETTERS if where.context is None else SURE_LETTERS
        edits = 2 if len(word) >= for_two and least == 1 else 1
        similar, frequencies = self.similar, self._term_dictionary.frequencies
        prior = similar.priors(*similar.near(word, edits))
        if where.unfinished and len(word) >= MIN_WORD_LETTERS:
            for term, score in similar.priors(*similar.begun(word)).items():
                score -= unfinished_cost(word, self._name(term)) + BOTH
                prior[term] = max(score, prior.get(term, score))
        prior = {term: score for term, score in prior.items() if frequencies[term] >= least}
        candidates = similar.best(prior, _CANDIDATES)
        if not candidates:
            return None
        weights = self.weights(candidates, where.context or (), evidence)
        candidates.sort(key=lambda term: -prior[term] - weights[term])
        best: Correction | None = None
        for term in candidates:
            if best is not None and best.score >= prior[term] + weights[term]:
                break
            written = similar.as_written(word, term, edits, evidence, unfinished=where.unfinished)
            if written is not None:
                score = math.log(frequencies[term]) + weights[term] - written.cost
                if best is None or score > best.score:
                    best = Correction((term,), written.text, score, weights[term], written.cost)
        return best

    def weights(
        self, terms: Sequence[int], context: Sequence[int], evidence: Evidence
    ) -> dict[int, float]:
        """Return how well each term goes with other words, by the documents that contain both.

        The sum over the other words of the logarithm of how much more often than in all documents
        they are in those that contain the term. Cost: the postings of all terms.
        """
        kernel, names = self._snapshot.query_kernel, self._snapshot.vocabulary.terms
        frequencies, weights = kernel.counts.frequencies, dict.fromkeys(terms, 0.0)
        contained = [term for term in {*context} if frequencies[term] > 0]
        contained.sort(key=lambda term: (int(frequencies[term]), names[term]))
        for other in contained[:_MAX_CONTEXT]:
            share = frequencies[other] / kernel.counts.documents
            both = counts_with(self._snapshot, [[(other,)]], terms, evidence)
            for term in terms:
                rate = (both[term] + _SMOOTHING * share) / (frequencies[term] + _SMOOTHING)
                weights[term] += min(max(math.log(rate / share), _LOWEST), _HIGHEST)
        return weights

    def is_misspelt(
        self, word: str, completions: Sequence[int], context: tuple[int, ...], evidence: Evidence
    ) -> bool:
        """Return whether a last word is rather misspelt, or correct, than unfinished."""
        folded = self._analyzer.folded(word)
        likely = self.unfinished_score(folded, completions, context, evidence)
        where = WordContext(context, alone=not context)
        best = self.best(folded, evidence, where) if len(folded) >= MIN_WORD_LETTERS else None
        if best is not None and best.score > likely:
            return True
        documents = self._snapshot.query_kernel.counts.documents
        return bool(context) and likely + PER_LOG_DOCUMENTS * math.log(documents) <= 0

    def unfinished_score(
        self,
        folded: str,
        completions: Sequence[int],
        context: tuple[int, ...],
        evidence: Evidence,
    ) -> float:
        """Return the score of the best completion of a folded word: see `Correction`."""
        terms = completions[:_CANDIDATES]
        weights = self.weights(terms, context, evidence)
        frequencies = self._snapshot.query_kernel.counts.frequencies
        return max(
            math.log(frequencies[term]) + weights[term] - unfinished_cost(folded, self._name(term))
            for term in terms
        )

    def begun(self, beginning: str, count: int) -> list[int]:
        """Return the best terms with a beginning at one edit of a folded text."""
        frequencies = self._term_dictionary.frequencies
        priors = self.similar.priors(*self.similar.begun(beginning))
        priors = {term: score for term, score in priors.items() if frequencies[term]}
        return self.similar.best(priors, count)

    def _name(self, term: int) -> str:
        return self._snapshot.vocabulary.terms[term]

    @lazy_property
    def _common(self) -> frozenset[str]:
        return self._analyzer.common()
