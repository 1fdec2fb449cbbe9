"""Correction and completion of words: what a word that documents seldom contain was meant to be.

Candidates are terms at one or two edits (optimal string alignment [Damerau 1964]), words that begin
like the one that is still typed, and parts that documents write side by side. The best one is
likely to be typed so, frequent, and in documents with the other words of the query. Terms are
stems; the candidates are compared as documents write them, which decides.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from klsa_search.core.lazy import lazy_property
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.query.matching import count_all, counts_with
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.similar_terms import (
    BOTH,
    MIN_FITTING_LETTERS,
    MIN_WORD_LETTERS,
    SimilarTerms,
    best_first,
    priors,
    unfinished_cost,
)
from klsa_search.search.query.term_dictionary import most_frequent_case
from klsa_search.search.query.two_words import TwoWords

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
"""Candidates that are compared by their frequency."""


class Correction(NamedTuple):
    """A correction of a word.

    terms  term numbers
    words  as documents write them
    sure   whether it replaces the word, or is only suggested
    score  by which it is compared with others: see `Corrector._best`
    prior  the same without the weights of other words
    cost   of the error, which both have
    """

    terms: tuple[int, ...]
    words: str
    sure: bool = True
    score: float = 0.0
    prior: float = 0.0
    cost: float = 0.0


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


class _Best(NamedTuple):
    """The best candidate: its score, see `Corrector._best`, its term, and how it is written."""

    score: float
    weight: float
    cost: float
    term: int
    written: str
    form: str


class Corrector:
    """Corrects words by the terms of one snapshot; thread-safe.

    The first correction costs 0.1 s per million terms, each word some 2 ms, most of it for reading
    documents; the corrections of 16,384 words are cached. Memory: 20 bytes a term.
    """

    def __init__(self, pieces: PieceCache) -> None:
        self._snapshot, self._analyzer = pieces.snapshot, pieces.analyzer
        self._term_dictionary, self._divider = pieces.term_dictionary, pieces.divider
        self._configured_words = pieces.configured_words
        self.similar = SimilarTerms(self._analyzer, self._snapshot.vocabulary.runs)
        self._two_words = TwoWords(pieces, self.similar)
        self._corrections: dict[Hashable, Correction | None] = {}
        self._bests: dict[Hashable, _Best | None] = {}

    def correction(
        self, word: str, evidence: Evidence, where: WordContext = NO_CONTEXT
    ) -> Correction | None:
        """Return the correction of a word that no document contains, or None.

        Abbreviations are only split, unless documents contain no word of the query; then also words
        of `MIN_FITTING_LETTERS` are corrected, else only if their correction fits the other words.
        """
        find = partial(self._correction, evidence, word, where)
        return evidence.cached(self._corrections, (word, where), find)

    def _correction(self, evidence: Evidence, word: str, where: WordContext) -> Correction | None:
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
            best = self._best(folded, evidence, where)
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
            parts = self._two_words.written_as(word, evidence)
        if best is None:
            terms = tuple(part.number for part in parts)
            return Correction(terms, " ".join(part.text for part in parts)) if parts else None
        is_sure = self._is_sure(folded, best, where)
        prior = best.score - best.weight
        return Correction((best.term,), best.written, is_sure, best.score, prior, best.cost)

    @property
    def is_large(self) -> bool:
        """Return whether the index is so large that an unknown word is rather misspelt."""
        return self._snapshot.query_kernel.counts.documents >= MIN_DOCUMENTS

    def frequent(
        self, word: str, least: int, evidence: Evidence, context: tuple[int, ...]
    ) -> Correction | None:
        """Return the best word at one edit of a folded one that so many documents contain."""
        best = self._best(word, evidence, WordContext(context), least)
        return None if best is None else Correction((best.term,), best.written)

    def nearest_to(
        self, word: str, score_of: Mapping[int, float], count: int, evidence: Evidence
    ) -> Iterator[Correction]:
        """Yield the best terms, as documents write them, that a folded word is one edit from.

        score_of  without the cost of the edit
        """
        for term in best_first(score_of, self._snapshot.vocabulary.terms)[:count]:
            (forms,) = self._term_dictionary.forms([term], evidence)
            nearest = self.similar.nearest_form(word, forms, 1, unfinished=False)
            if nearest is not None:
                cost, form = nearest
                written = most_frequent_case(forms, form)
                yield Correction((term,), written, score=score_of[term] - cost, cost=cost)

    def _configured(self, word: str, evidence: Evidence, where: WordContext) -> _Best | None:
        """Return the best word of synonyms or rules for a folded word that no document contains.

        One of synonyms is as frequent as what these search as well, and fits as that does.
        """
        if where.context is None:
            return None
        numbers, frequencies = self._snapshot.vocabulary.numbers, self._term_dictionary.frequencies
        edits = 2 if len(word) >= SURE_LETTERS else 1
        candidates = list[_Best]()
        for cost_, configured in self._configured_words.near(
            word, edits, with_synonyms=where.synonyms
        ):
            meant = [[numbers.get(term, UNKNOWN) for term in terms] for terms in configured.meant]
            rarest = [min(terms, key=frequencies.__getitem__) for terms in meant if min(terms) >= 0]
            weights = self.weights(rarest, where.context, evidence)
            score = max(
                (math.log(max(frequencies[n], 1)) + weights[n] for n in rarest), default=0.0
            )
            weight = max(weights.values(), default=0.0)
            form = configured.folded
            best = _Best(score - cost_, weight, cost_, UNKNOWN, configured.written, form)
            candidates.append(best)
        return max(candidates, key=lambda best: (best.score, best.form), default=None)

    def _is_sure(self, word: str, best: _Best, where: WordContext) -> bool:
        """Return whether a candidate replaces a word.

        It does if only letters changed their order, whatever the documents, or if it is a word of
        synonyms or rules at one edit.
        """
        form = self._analyzer.folded(best.form)
        is_configured = best.term == UNKNOWN and OSA.distance(word, form) == 1
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

    def _best(
        self, word: str, evidence: Evidence, where: WordContext, least: int = 1
    ) -> _Best | None:
        """Return the best candidate for a folded word.

        least  number of documents that contain it; one edit if it is more than one
        Its score is ln(documents), the sum of the weights of the other words, less its cost.
        """
        find = partial(self._find_best, word, evidence, where, least)
        key = word, where.context, where.unfinished, least
        return evidence.cached(self._bests, key, find)

    def _find_best(
        self, word: str, evidence: Evidence, where: WordContext, least: int
    ) -> _Best | None:
        for_two = TWO_EDIT_LETTERS if where.context is None else SURE_LETTERS
        edits = 2 if len(word) >= for_two and least == 1 else 1
        terms, distances = self.similar.near(word, edits)
        frequencies = self._snapshot.query_kernel.counts.frequencies
        scores = priors(frequencies[terms], distances)
        if where.unfinished and len(word) >= MIN_WORD_LETTERS:
            begun, distances = self.similar.begun(word, 1)
            missing = [unfinished_cost(word, self._name(term)) + BOTH for term in begun.tolist()]
            terms = np.concatenate((terms, begun))
            scores = np.concatenate((scores, priors(frequencies[begun], distances) - missing))
        prior: dict[int, float] = {}
        for term, score in zip(terms.tolist(), scores.tolist(), strict=True):
            if frequencies[term] >= least:
                prior[term] = max(score, prior.get(term, score))
        if len(prior) > _CANDIDATES:
            last = sorted(prior.values(), reverse=True)[_CANDIDATES - 1]
            prior = {term: score for term, score in prior.items() if score >= last}
        candidates = best_first(prior, self._snapshot.vocabulary.terms)[:_CANDIDATES]
        if not candidates:
            return None
        weights = self.weights(candidates, where.context or (), evidence)
        candidates.sort(key=lambda term: -prior[term] - weights[term])
        best: _Best | None = None
        for term in candidates:
            if best is not None and best.score >= prior[term] + weights[term]:
                break
            (forms,) = self._term_dictionary.forms([term], evidence)
            nearest = self.similar.nearest_form(word, forms, edits, unfinished=where.unfinished)
            if nearest is not None:
                cost_, form = nearest
                score = math.log(frequencies[term]) + weights[term] - cost_
                if best is None or score > best.score:
                    written = most_frequent_case(forms, form)
                    best = _Best(score, weights[term], cost_, term, written, form)
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
        """Return whether a last word is rather misspelt, or correct, than unfinished.

        completions  of it, most frequent first
        """
        folded = self._analyzer.folded(word)
        likely = self.unfinished_score(folded, completions, context, evidence)
        where = WordContext(context, alone=not context)
        best = self._best(folded, evidence, where) if len(folded) >= MIN_WORD_LETTERS else None
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
        """Return the score of the best completion of a folded word: see `Corrector._best`."""
        terms = completions[:_CANDIDATES]
        weights = self.weights(terms, context, evidence)
        frequencies = self._snapshot.query_kernel.counts.frequencies
        return max(
            math.log(frequencies[term]) + weights[term] - unfinished_cost(folded, self._name(term))
            for term in terms
        )

    def begun(self, beginning: str) -> list[int]:
        """Return terms with a beginning at one edit of a folded text, best first."""
        terms, distances = self.similar.begun(beginning, 1)
        frequencies = self._snapshot.query_kernel.counts.frequencies
        scores = dict(zip(terms.tolist(), priors(frequencies[terms], distances), strict=True))
        ordered = best_first(scores, self._snapshot.vocabulary.terms)
        return [term for term in ordered if frequencies[term]]

    def _name(self, term: int) -> str:
        return self._snapshot.vocabulary.terms[term]

    @lazy_property
    def _common(self) -> frozenset[str]:
        return self._analyzer.common()
