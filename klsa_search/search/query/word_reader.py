"""Words of a query as they are meant: corrected, in their languages, joined, in parts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Final

from klsa_search.analysis.languages import stop_list
from klsa_search.core.parameters import SpellingName
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.query.corrections import (
    SURE_LETTERS,
    Correction,
    Corrector,
    WordContext,
)
from klsa_search.search.query.interpretation import (
    ParsingRules,
    QueryBuilder,
    Variant,
    Word,
    Words,
)
from klsa_search.search.query.joining import covered_words
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.similar_terms import UNLIKELY

PREFIXED: Final = 5
"""Forms of a word with other joined articles and prepositions, the most frequent, at most."""

MAX_FORMS: Final = 20
"""Terms, the most frequent, that stand for a prefix, or a word in no document, at most."""

MAX_CORRECTIONS: Final = 10
"""Words of one query that are corrected, at most, and that may be divided."""

LESS_LIKELY: Final = 3.0
"""Factor by which words may be less frequent in a further language of a query."""

MOST_UNLIKELY: Final = 100.0
"""Minus the score of what is not meant."""

SPLIT: Final = 3.0
"""Cost of a blank within a word, as of an edit."""

UNSEEN: Final = 0.1
"""Frequency of a word that is in no document."""

MAX_RARE_DOCUMENTS: Final = 3
"""Documents that contain a word of which another writing is searched as well, at most."""

MIN_FREQUENCY_RATIO: Final = 100
"""Factor by which that writing is more frequent, at least."""


class WordReader:
    """Corrects words of queries to one snapshot, and finds their other writings; thread-safe."""

    def __init__(self, pieces: PieceCache) -> None:
        self._pieces, self._snapshot, self._analyzer = pieces, pieces.snapshot, pieces.analyzer
        self._divider, self._joiner = pieces.divider, pieces.joiner
        self._term_dictionary, self.corrector = pieces.term_dictionary, Corrector(pieces)

    def vary(
        self,
        text: str,
        words: list[Word],
        builder: QueryBuilder,
        forms: dict[Word, list[int]] | None,
        *,
        is_plain: bool,
        excludes: bool = False,
    ) -> tuple[list[Word], list[Variant], dict[Word, Words]]:
        """Return corrected words, and how documents also write them: joined, and in parts.

        text      that the words are of
        forms     gets terms that stand for words which no document contains; None if none may
        is_plain  whether they are plain words, which may be joined to correct them
        excludes  whether they are to be excluded: as typed, without corrections
        The parts of a word are () if no document writes it in parts.
        """
        words, in_languages = self._in_languages(words)
        rules = builder.rules
        if rules.spelling == "off":
            return words, in_languages, {}
        joined = self._joiner.joined(text, rules.evidence)
        corrects = rules.context is not None and rules.spelling == "auto"
        if corrects and is_plain:
            words, joined = self._joiner.replace_split(words, joined, rules.evidence)
            words = self._join_misspelt(words, covered_words(joined), builder)
        joined += self._with_other_prefixes(words)
        if not excludes:
            joined += self._more_common(words, builder)
        words = self._correct(words, builder, forms, covered_words(joined), excludes=excludes)
        if not excludes:
            return words, in_languages + joined, self._divided(words, builder)
        divided = dict[Word, Words]()
        if len(words) == 1:  # its parts do not correct it
            (word,) = words
            is_unknown = word.number == UNKNOWN
            divided[word] = self._divider.parts(word.text, rules.evidence, visible_only=is_unknown)
        return words, in_languages + joined, divided

    def _with_other_prefixes(self, words: Sequence[Word]) -> list[Variant]:
        """Return how documents write words with other joined articles and prepositions."""
        names = self._snapshot.vocabulary.terms
        return [
            Variant(word.text, (word.number,) * (word.number >= 0), (Word(names[term], term),))
            for word in dict.fromkeys(words)
            if word.number != NO_TERM
            for term in self._term_dictionary.with_other_prefixes(word.text)[:PREFIXED]
        ]

    def _in_languages(self, words: list[Word]) -> tuple[list[Word], list[Variant]]:
        """Return words with their terms in the languages that they are in, and further terms.

        Words are in the language in which they are most frequent, and in others in which they are
        almost as frequent; a word that is known in none of these may be in any.
        """
        if len(self._analyzer.languages) == 1:
            return words, []
        read, further = list[Word](), list[Variant]()
        readings = [self._readings(word) for word in words]
        likely = {
            language: sum(math.log(max(frequency[language], UNSEEN)) for _, frequency in readings)
            for language in self._analyzer.languages
        }
        least = max(likely.values()) - math.log(LESS_LIKELY)
        chosen = [language for language, value in likely.items() if value >= least]
        for word, (number_of, _) in zip(words, readings, strict=True):
            numbers = dict.fromkeys(number_of[language] for language in chosen)
            if NO_TERM in numbers or numbers.keys() == {UNKNOWN}:
                numbers = {word.number: None}
            number, *variants = [number_ for number_ in numbers if number_ != UNKNOWN] or [UNKNOWN]
            read.append(Word(word.text, number))
            further += [
                Variant(word.text, (number,), (Word(word.text, other),)) for other in variants
            ]
        return read, further

    def _readings(self, word: Word) -> tuple[dict[str, int], dict[str, int]]:
        """Return number and frequency of a word by language; all documents have stop words."""
        kernel, numbers, frequencies = self._snapshot.query_kernel, {}, {}
        for language in self._analyzer.languages:
            terms = self._analyzer.in_language(language).terms(word.text)
            number = self._snapshot.vocabulary.numbers.get(terms[0], UNKNOWN) if terms else NO_TERM
            numbers[language] = number
            frequency = int(kernel.counts.frequencies[number]) if number >= 0 else 0
            is_listed = word.text.casefold() in stop_list(language)
            frequencies[language] = kernel.counts.documents if is_listed else frequency
        return numbers, frequencies

    def is_doubtful(self, word: Word) -> bool:
        """Return whether a word is so rare beside a similar one that it may be misspelt."""
        frequencies = self._snapshot.query_kernel.counts.frequencies
        if word.number < 0 or not self.corrector.is_large or not word.text.isalpha():
            return False
        frequency = int(frequencies[word.number])
        folded = self._analyzer.folded(word.text)
        if frequency > MAX_RARE_DOCUMENTS or len(folded) < SURE_LETTERS:
            return False
        if any(map(str.isupper, word.text[1:])):
            return False
        self._pieces.derived.note_all()
        terms, distances = self.corrector.similar.near(folded, 1)
        near = terms[distances <= 1]
        return bool((frequencies[near] >= MIN_FREQUENCY_RATIO * frequency).any())

    def _more_common(self, words: Sequence[Word], builder: QueryBuilder) -> list[Variant]:
        """Return what rare words that are similar to frequent ones are probably meant to be."""
        rules, variants = builder.rules, list[Variant]()
        if rules.context is None or rules.spelling != "auto":
            return []
        for word in filter(self.is_doubtful, dict.fromkeys(words)):
            context = tuple(term for term in rules.context if term != word.number)
            folded = self._analyzer.folded(word.text)
            frequency = int(self._snapshot.query_kernel.counts.frequencies[word.number])
            least = MIN_FREQUENCY_RATIO * frequency
            meant = self.corrector.best(folded, rules.evidence, WordContext(context), least)
            if meant is not None:
                (term,) = meant.terms
                variants.append(Variant(word.text, (word.number,), (Word(meant.words, term),)))
        return variants

    def _divided(self, words: Sequence[Word], builder: QueryBuilder) -> dict[Word, Words]:
        """Return the parts of each word that may have some, of ten words of a query at most.

        A word that no document contains has those of its correction.
        """
        divided: dict[Word, Words] = {}
        for word in dict.fromkeys(words):
            if word.number >= 0 and self._divider.may_divide(word.text):
                if len(builder.checked) >= MAX_CORRECTIONS:
                    break
                builder.checked.add(word.text)
                divided[word] = self._divider.parts(word.text, builder.rules.evidence)
        return divided

    def _correct(
        self,
        words: list[Word],
        builder: QueryBuilder,
        forms: dict[Word, list[int]] | None,
        joined: Collection[str],
        *,
        excludes: bool,
    ) -> list[Word]:
        """Replace words that no document contains by their corrections, or only record these.

        joined    words that documents write joined to their neighbours, which are correct
        excludes  whether they only may be written with other accents
        Corrections of later words may decide that of an earlier one: *coffe mashine*.
        """
        before = len(builder.corrected)
        for _ in range(2):
            meant = {
                word: tuple(self._corrected(word, builder, forms, joined, excludes=excludes))
                for word in dict.fromkeys(words)
            }
            words = [corrected for word in words for corrected in meant[word]]
            has_more = builder.rules.context is not None and len(builder.corrected) > before
            if not (has_more and any(word.number == UNKNOWN for word in words)):
                break
        return words

    def _corrected(
        self,
        word: Word,
        builder: QueryBuilder,
        forms: dict[Word, list[int]] | None,
        joined: Collection[str],
        *,
        excludes: bool,
    ) -> Iterable[Word]:
        rules, dictionary = builder.rules, self._term_dictionary
        is_meant = rules.synonyms is not None and self.term(word) in rules.synonyms
        is_meant |= word.text in builder.corrections.values()  # a word of rules
        if word.number != UNKNOWN or word == builder.last or is_meant:
            return (word,)
        is_auto = rules.spelling == "auto"
        if forms is not None and is_auto and (terms := dictionary.with_other_accents(word.text)):
            forms[word] = terms[:MAX_FORMS]
        if excludes or word in (forms or ()):
            return (word,)
        may_check = word.text in builder.checked or len(builder.checked) < MAX_CORRECTIONS
        if may_check and word.text not in joined:
            builder.checked.add(word.text)
            if (meant := self._correction(word, builder)) is not None:
                builder.corrections[word.text] = meant.words
                if meant.sure and is_auto:
                    builder.corrected.update(term for term in meant.terms if term >= 0)
                    return map(Word, meant.words.split(), meant.terms)
        terms = [] if word == builder.last else dictionary.compounds(word.text)
        if forms is not None and terms:
            forms[word] = terms
        # Two words that were taken for one stay two if the words before them say otherwise.
        return self._pieces.words(word.text) if " " in word.text else (word,)

    def compounds(self, words: Sequence[Word], spelling: SpellingName) -> list[int]:
        """Return the terms of compounds that the only word of a query finds, if it is known."""
        if spelling == "off" or len(words) != 1 or words[0].number < 0:
            return []
        return self._term_dictionary.compounds(words[0].text)

    def _join_misspelt(
        self, words: list[Word], covered: Collection[str], builder: QueryBuilder
    ) -> list[Word]:
        """Return words with those as one that are a misspelt word written apart: *co fee*.

        covered  words that documents write joined
        The likeliest are joined first: *acou sttic* rather than *red acou*.
        """
        rules, checked = builder.rules, set[str]()
        pairs = [*pairwise(words)]
        gains = dict[tuple[Word, Word], float]()
        for before, word in dict.fromkeys(pairs):
            unknown = {one.text for one in (before, word) if one.number == UNKNOWN}
            may_check = len(checked | unknown) <= MAX_CORRECTIONS and word != rules.last
            if unknown and may_check and not {before.text, word.text} <= {*covered}:
                checked |= unknown
                gains[before, word] = self._gain_of_joining(before, word, rules)
        likely = [at for at, pair in enumerate(pairs) if gains.get(pair, 0.0) > 0]
        joined = set[int]()
        for at in sorted(likely, key=lambda at: -gains[pairs[at]]):
            if joined.isdisjoint((at - 1, at, at + 1)):
                joined.add(at)
        return [
            Word(f"{word.text} {words[at + 1].text}", UNKNOWN) if at in joined else word
            for at, word in enumerate(words)
            if at - 1 not in joined
        ]

    def _gain_of_joining(self, before: Word, word: Word, rules: ParsingRules) -> float:
        """Return how much likelier two words are one that is misspelt: at most 0 if they are not.

        No document contains one of them, which is no abbreviation and has no synonyms. The joined
        word has a correction, which is neither of the two, and is likelier than what these are
        meant to be side by side.
        """
        text, words = before.text + word.text, (before, word)
        has_capitals = any(map(str.isupper, before.text[1:] + word.text[1:]))
        is_abbreviation = rules.has_case and has_capitals
        if not text.isalpha() or is_abbreviation or min(len(before.text), len(word.text)) < 2:
            return 0.0
        unknown = (one for one in words if one.number == UNKNOWN)
        if rules.synonyms is not None and any(self.term(one) in rules.synonyms for one in unknown):
            return 0.0
        numbers = {before.number, word.number} - {UNKNOWN}
        joined = self.corrector.correction_to_one(text, rules.evidence, _where(rules, numbers))
        if joined is None or not joined.sure or joined.terms[0] in numbers:
            return 0.0
        instead = self._score_unfinished(word, rules)
        if joined.cost > UNLIKELY and rules.context:  # two errors, and something else to search for
            instead = max(instead, self.corrector.least_score(text))
        prior = joined.score - joined.weight
        return min(joined.score - instead, prior - self._prior_apart(words, rules)) - SPLIT

    def _score_unfinished(self, word: Word, rules: ParsingRules) -> float:
        """Return the score of the best completion of a word at the end of the query."""
        if word != rules.unfinished:
            return -MOST_UNLIKELY
        completions = self._term_dictionary.completions(word.text, rules.evidence)
        if not completions:
            return -MOST_UNLIKELY
        folded, context = self._analyzer.folded(word.text), rules.context or ()
        return self.corrector.unfinished_score(folded, completions, context, rules.evidence)

    def _prior_apart(self, words: Sequence[Word], rules: ParsingRules) -> float:
        """Return ln of how many documents have words, corrected, side by side, less the costs."""
        meant, cost = list[str](), 0.0
        for word in words:
            if word.number != UNKNOWN:
                meant.append(word.text)
                continue
            correction = self._sure_correction(word.text, rules)
            if correction is None:
                return -MOST_UNLIKELY
            meant += correction.words.split()
            cost += correction.cost
        documents = self._pieces.counts.side_by_side(meant, rules.evidence)
        return math.log(documents or UNSEEN) - cost

    def _sure_correction(self, text: str, rules: ParsingRules) -> Correction | None:
        """Return the correction that replaces a word, by the terms of the query, if any."""
        correction = self.corrector.correction(text, rules.evidence, _where(rules))
        return correction if correction is not None and correction.sure else None

    def _correction(self, word: Word, builder: QueryBuilder) -> Correction | None:
        """Return the correction of a word, by the words before it as corrected.

        None if there is none, or if it is the last word and rather unfinished, which is noted.
        """
        rules = builder.rules
        context, is_last = rules.context, word == rules.unfinished
        if context is not None:
            parts = {self._pieces.numbers[part] for part in word.text.split()}
            kept = (term for term in context if term not in parts)
            context = (*kept, *sorted(builder.corrected))
        if is_last:
            completions = self._term_dictionary.completions(word.text, rules.evidence)
            if completions and not self.corrector.is_misspelt(
                word.text, completions, context or (), rules.evidence
            ):
                builder.last = word
                return None
        has_capitals = any(any(map(str.isupper, part[1:])) for part in word.text.split())
        where = WordContext(
            context,
            alone=rules.context == (),
            abbreviation=rules.has_case and has_capitals,
            unfinished=is_last and rules.is_typing,
            synonyms=rules.synonyms is not None,
        )
        text = word.text.replace(" ", "")  # of a word written apart
        correction = self.corrector.correction(text, rules.evidence, where)
        if correction is None and is_last:  # perhaps misspelt and unfinished
            where = where._replace(unfinished=True)
            correction = self.corrector.correction(text, rules.evidence, where)
        return correction

    def term(self, word: Word) -> str:
        """Return the term of a word, known or not; "" if it has none."""
        if word.number >= 0:
            return self._snapshot.vocabulary.terms[word.number]
        return "".join(self._analyzer.terms(word.text)[:1]) if word.number == UNKNOWN else ""


def _where(rules: ParsingRules, without: Collection[int] = ()) -> WordContext:
    """Return the context of a word among the terms of a query but `without`."""
    context = rules.context
    if context is not None:
        context = tuple(term for term in context if term not in without)
    alone, has_synonyms = rules.context == (), rules.synonyms is not None
    return WordContext(context, alone=alone, synonyms=has_synonyms)
