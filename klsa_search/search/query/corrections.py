"""Correction and completion of words: what a word that documents seldom contain was meant to be.

Candidates are terms at one or two edits (optimal string alignment [Damerau 1964]), words that begin
like the one that is still typed, and parts that documents write side by side. The best one is
likely to be typed so, frequent, and in documents with the other words of the query. Terms are
stems; the candidates are compared as documents write them, which decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import OSA

from klsa_search.core.lazy import lazy_property
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.query.interpretation import Word, Words
from klsa_search.search.query.matching import count_all, counts_with, documents_with
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.similar_terms import SimilarTerms, cost
from klsa_search.search.query.term_dictionary import most_frequent_case

MIN_WORD_LETTERS: Final = 4
"""Letters of a word that is corrected, at least: shorter words have too many neighbours."""

MIN_FITTING_LETTERS: Final = 3
"""Letters of a word that is corrected if documents contain no word of the query, or if the
correction fits its other words, at least."""

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

_BOUNDS: Final = (-1.5, 4.0)
"""Least and largest weight of one other word."""

_CANDIDATES: Final = 12
"""Candidates that are compared by their frequency."""

_HALF_CANDIDATES: Final = 4
"""Candidates for the misspelt half of a word, the most frequent, at most."""

_UNFINISHED: Final = 1.0
_MISSING_LETTER: Final = 0.3
"""Costs of a word that is not typed to its end, and of each letter that is missing."""

_BOTH: Final = 1.5
"""Further cost of a word that is misspelt as well."""


class Correction(NamedTuple):
    """A correction of a word.

    terms  term numbers
    words  as documents write them
    sure   whether it replaces the word, or is only suggested
    """

    terms: tuple[int, ...]
    words: str
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


class _Best(NamedTuple):
    """The best candidate: its score, see `Corrector._best`, its term, and how it is written."""

    score: float
    weight: float
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
        parts = self._divider.parts(word, evidence, anywhere=is_word)
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
            parts = self._apart(word, evidence)
        if best is None:
            terms = tuple(part.number for part in parts)
            return Correction(terms, " ".join(part.text for part in parts)) if parts else None
        return Correction((best.term,), best.written, self._is_sure(folded, best, where))

    @property
    def is_large(self) -> bool:
        """Return whether the index is so large that an unknown word is rather misspelt."""
        return self._snapshot.query_kernel.documents >= MIN_DOCUMENTS

    def frequent(
        self, word: str, least: int, evidence: Evidence, context: tuple[int, ...]
    ) -> Correction | None:
        """Return the best word at one edit of a folded one that so many documents contain."""
        best = self._best(word, evidence, WordContext(context), least)
        return None if best is None else Correction((best.term,), best.written)

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
            best = _Best(score - cost_, weight, UNKNOWN, configured.written, configured.folded)
            candidates.append(best)
        return max(candidates, key=lambda best: (best.score, best.form), default=None)

    def _apart(self, word: str, evidence: Evidence) -> Words:
        """Return the two words, most often in the same documents, that are written as this one.

        They may share a letter, as in *hardrive*. Or one of them is misspelt, as in *coffemachine*,
        if documents write them side by side.
        """
        halves = self._divider.halves(word) or self._divider.halves(word, shared=1)
        divisions = [tuple(map(self._word, pair)) for pair in halves]
        counts = {
            words: count_all(self._snapshot, [[(one.number,)] for one in words], evidence)
            for words in divisions
            if min(len(one.text) for one in words) >= MIN_WORD_LETTERS
            and min(one.number for one in words) >= 0  # a half may be a term only in pieces
        }
        if not any(counts.values()):
            counts = {
                words: documents_with(self._snapshot, [one.number for one in words], evidence)
                for words in self._misspelt_halves(word, evidence)
            }
        best = max(counts, key=counts.__getitem__, default=())
        return best if best and counts[best] else ()

    def _misspelt_halves(self, word: str, evidence: Evidence) -> Iterator[Words]:
        """Yield a word as one that documents contain and one that is probably meant."""
        folded, frequencies = self._analyzer.folded(word), self._snapshot.query_kernel.frequencies
        for border in range(MIN_WORD_LETTERS, len(folded) - MIN_WORD_LETTERS + 1):
            halves = [self._word(folded[:border]), self._word(folded[border:])]
            unknown = [at for at, half in enumerate(halves) if half.number < 0]
            common = [self._analyzer.term(half.text) in self._common for half in halves]
            if len(unknown) != 1 or any(common):
                continue
            (at,) = unknown
            typed = halves[at].text
            terms, distances = self.similar.near(typed, 1)
            near = terms[distances <= 1]
            first = self._best_first({term: frequencies[term] for term in near.tolist()})
            for term in first[:_HALF_CANDIDATES]:
                (forms,) = self._term_dictionary.forms([term], evidence)
                nearest = self._nearest_form(typed, forms, 1, unfinished=False)
                if nearest is not None:
                    halves[at] = Word(most_frequent_case(forms, nearest[1]), term)
                    yield tuple(halves)

    def _word(self, text: str) -> Word:
        number = self._snapshot.vocabulary.numbers.get(self._analyzer.term(text), UNKNOWN)
        return Word(text, number)

    def _is_sure(self, word: str, best: _Best, where: WordContext) -> bool:
        """Return whether a candidate replaces a word.

        It does if only letters changed their order, whatever the documents, or if it is a word of
        synonyms or rules at one edit.
        """
        form = self._analyzer.folded(best.form)
        is_configured = best.term == UNKNOWN and OSA.distance(word, form) == 1
        if sorted(form) == sorted(word) or is_configured:
            return True
        documents, large = self._snapshot.query_kernel.documents, self.is_large
        by_itself = where.context is None
        edits = 2 if by_itself and len(word) >= TWO_EDIT_LETTERS else 1
        if large and len(word) >= SURE_LETTERS and OSA.distance(word, form) <= edits:
            return True
        if where.alone and (len(word) >= SURE_LETTERS or (large and not where.abbreviation)):
            return True
        if where.alone and (where.abbreviation or not where.context):
            return False
        further_letters = max(len(word) - SURE_LETTERS, 0)
        likely = PER_LOG_DOCUMENTS * math.log(documents) + PER_LETTER * further_letters
        return not by_itself and best.score + likely > 0

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
        frequencies = self._snapshot.query_kernel.frequencies
        scores = _priors(frequencies[terms], distances)
        if where.unfinished and len(word) >= MIN_WORD_LETTERS:
            begun, distances = self.similar.begun(word, 1)
            missing = [_unfinished(word, self._name(term)) + _BOTH for term in begun.tolist()]
            terms = np.concatenate((terms, begun))
            scores = np.concatenate((scores, _priors(frequencies[begun], distances) - missing))
        prior: dict[int, float] = {}
        for term, score in zip(terms.tolist(), scores.tolist(), strict=True):
            if frequencies[term] >= least:
                prior[term] = max(score, prior.get(term, score))
        if len(prior) > _CANDIDATES:
            last = sorted(prior.values(), reverse=True)[_CANDIDATES - 1]
            prior = {term: score for term, score in prior.items() if score >= last}
        candidates = self._best_first(prior)[:_CANDIDATES]
        if not candidates:
            return None
        weights = self.weights(candidates, where.context or (), evidence)
        candidates.sort(key=lambda term: -prior[term] - weights[term])
        best: _Best | None = None
        for term in candidates:
            if best is not None and best.score >= prior[term] + weights[term]:
                break
            (forms,) = self._term_dictionary.forms([term], evidence)
            nearest = self._nearest_form(word, forms, edits, unfinished=where.unfinished)
            if nearest is not None:
                cost_, form = nearest
                score = math.log(frequencies[term]) + weights[term] - cost_
                if best is None or score > best.score:
                    best = _Best(score, weights[term], term, most_frequent_case(forms, form), form)
        return best

    def _nearest_form(
        self, word: str, forms: Counter[str], edits: int, *, unfinished: bool
    ) -> tuple[float, str] | None:
        """Return the cost of the written form that is probably meant by a word, and the form."""
        counts, costs = Counter[str](), list[tuple[float, str]]()
        for form, count in forms.items():
            counts[form.casefold()] += count
        for form in counts:
            folded = self._analyzer.folded(form)
            costs.append((cost(word, folded, edits), form))
            if unfinished and len(word) >= MIN_WORD_LETTERS:
                missing = _unfinished(word, folded) + _BOTH
                costs += (
                    (cost(word, folded[:length], 1) + missing, form)
                    for length in range(len(word) - 1, min(len(word) + 2, len(folded)))
                )
        best = min(costs, key=lambda one: (one[0] - math.log(counts[one[1]]), one), default=None)
        return None if best is None or math.isinf(best[0]) else best

    def weights(
        self, terms: Sequence[int], context: Sequence[int], evidence: Evidence
    ) -> dict[int, float]:
        """Return how well each term goes with other words, by the documents that contain both.

        The sum over the other words of the logarithm of how much more often than in all documents
        they are in those that contain the term. Cost: the postings of all terms.
        """
        kernel, names = self._snapshot.query_kernel, self._snapshot.vocabulary.terms
        frequencies, weights = kernel.frequencies, dict.fromkeys(terms, 0.0)
        contained = [term for term in {*context} if frequencies[term] > 0]
        contained.sort(key=lambda term: (int(frequencies[term]), names[term]))
        for other in contained[:_MAX_CONTEXT]:
            share = frequencies[other] / kernel.documents
            both = counts_with(self._snapshot, [[(other,)]], terms, evidence)
            for term in terms:
                rate = (both[term] + _SMOOTHING * share) / (frequencies[term] + _SMOOTHING)
                weights[term] += float(np.clip(math.log(rate / share), *_BOUNDS))
        return weights

    def is_misspelt(
        self, word: str, completions: Sequence[int], context: tuple[int, ...], evidence: Evidence
    ) -> bool:
        """Return whether a last word is rather misspelt, or correct, than unfinished.

        completions  of it, most frequent first
        """
        folded = self._analyzer.folded(word)
        terms = completions[:_CANDIDATES]
        weights = self.weights(terms, context, evidence)
        frequencies = self._snapshot.query_kernel.frequencies
        likely = max(
            math.log(frequencies[term]) + weights[term] - _unfinished(folded, self._name(term))
            for term in terms
        )
        where = WordContext(context, alone=not context)
        best = self._best(folded, evidence, where) if len(folded) >= MIN_WORD_LETTERS else None
        if best is not None and best.score > likely:
            return True
        documents = self._snapshot.query_kernel.documents
        return bool(context) and likely + PER_LOG_DOCUMENTS * math.log(documents) <= 0

    def begun(self, beginning: str) -> list[int]:
        """Return terms with a beginning at one edit of a folded text, best first."""
        terms, distances = self.similar.begun(beginning, 1)
        frequencies = self._snapshot.query_kernel.frequencies
        priors = _priors(frequencies[terms], distances).tolist()
        ordered = self._best_first(dict(zip(terms.tolist(), priors, strict=True)))
        return [term for term in ordered if frequencies[term]]

    def _best_first(self, score_of: Mapping[int, float]) -> list[int]:
        """Return terms, best first; equal ones by name, as later numbers differ in partitions."""
        return sorted(score_of, key=lambda term: (-score_of[term], self._name(term)))

    def _name(self, term: int) -> str:
        return self._snapshot.vocabulary.terms[term]

    @lazy_property
    def _common(self) -> frozenset[str]:
        """Terms of the language's function words, which are never corrected."""
        return self._analyzer.common()


def _unfinished(word: str, meant: str) -> float:
    """Return the cost of a word that is the beginning of another one, or about that."""
    return _UNFINISHED + _MISSING_LETTER * max(len(meant) - len(word), 0)


def _priors(
    frequencies: npt.NDArray[np.int64], distances: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return scores of candidates by their frequency and number of edits."""
    return np.log(np.maximum(frequencies, 1)) - 3.5 * distances
