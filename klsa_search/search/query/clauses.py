"""Clauses: from a part of a query to the terms that rank, and the documents that it restricts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from klsa_search.analysis.languages import stop_list
from klsa_search.core.array_types import DocumentMask
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.query.compounds import covered_words
from klsa_search.search.query.corrections import Circumstances, Correction, Corrector
from klsa_search.search.query.interpretation import END, QueryBuilder, Variant, Word, Words
from klsa_search.search.query.matching import (
    Alternatives,
    Operand,
    containing_phrase,
    containing_words,
    pattern_names,
)
from klsa_search.search.query.pieces import Pieces
from klsa_search.search.query.syntax import BooleanQuery, Clause
from klsa_search.search.query.term_dictionary import MIN_PREFIX, best_completions
from klsa_search.storage.columns.columns import Field

EXPANSIONS: Final = 20
"""Most frequent terms of a prefix that documents are ranked by, at most."""

PAIRS: Final = 200
"""Most frequent pairs with a single character that documents are ranked by, at most."""

ALONE: Final = 8
"""Factor by which a single character counts more where it stands alone than in a pair."""

MAX_VARIANTS: Final = 32
"""Words of one query of which other writings are searched, at most."""

PREFIXED: Final = 5
"""Forms of a word with other joined articles and prepositions, the most frequent, at most."""

MAX_CORRECTIONS: Final = 10
"""Words of one query that are corrected, at most, and that may be divided."""

LESS_LIKELY: Final = 3.0
"""Factor by which words may be less frequent in a further language of a query."""

UNSEEN: Final = 0.1
"""Frequency of a word that is in no document."""


class ClauseReader:
    """Reads clauses of queries to one snapshot into a builder; thread-safe.

    columns  keyword fields that can be searched by name
    """

    def __init__(self, pieces: Pieces, columns: Mapping[str, Field]) -> None:
        self._pieces, self._columns = pieces, columns
        self._snapshot, self._analyzer = pieces.snapshot, pieces.analyzer
        self._compounds, self._term_dictionary = pieces.compounds, pieces.term_dictionary
        self.corrector, self._stop_words = Corrector(pieces), pieces.stop_words

    def read(self, clause: Clause, builder: QueryBuilder, *, is_operand: bool = False) -> None:
        """Add the terms of a clause to the query, and restrict the documents.

        is_operand  whether it is one of a Boolean query
        """
        if clause.has_sign:
            builder.plain_words.append(END)
        if clause.field in self._columns:
            builder.restrict(clause, (), self._columns[clause.field].equal(clause.text))
            return
        evidence = builder.rules.evidence
        pieces, words = self._pieces.of(clause.text), self._pieces.words(clause.text)
        if clause.kind == "prefix" and len(words) == 1 and len(clause.text) >= MIN_PREFIX:
            terms = self._term_dictionary.beginning_with(clause.text, evidence)
            self._read_terms(clause, terms, EXPANSIONS, builder)
            return
        alone = {word: terms for piece in pieces for word, terms in piece.characters.items()}
        if clause.has_sign and len(words) == 1 and alone:
            self._read_terms(clause, alone[words[0].text], PAIRS, builder)
            return
        restricts = is_operand or clause.has_sign
        forms: dict[Word, list[int]] | None = {} if restricts else builder.contained
        if clause.kind == "phrase" and len(words) > 1:
            forms = None
        words, variants, divided = self.vary(
            clause.text, words, builder, forms, excludes=clause.sign == "-"
        )
        if restricts and forms:
            names = self._snapshot.vocabulary.terms
            variants += [
                Variant(word.text, (), (Word(names[term], term),))
                for word, terms in forms.items()
                for term in terms
            ]
        variants += [
            Variant(word.text, (word.number,), parts) for word, parts in divided.items() if parts
        ]
        if alone:
            builder.contained |= {word: alone[word.text] for word in words if word.text in alone}
        if clause.sign != "-":
            written = [*dict.fromkeys(variant.written for variant in variants)]
            written = written[: MAX_VARIANTS - len(builder.variants)]
            variants = [variant for variant in variants if variant.written in written]
            covered = covered_words(variants)
            builder.rank([word for word in words if word.number >= 0 or word.text not in covered])
            for variant in variants:
                builder.vary(variant)
        if not clause.has_sign:
            builder.plain_words += words
        if clause.sign or clause.field or clause.kind == "phrase":
            self._restrict(clause, words, variants, builder)

    def read_boolean(self, boolean: BooleanQuery, builder: QueryBuilder) -> None:
        """Read a Boolean query: rank by what it does not exclude, restrict to what it matches."""
        stack: list[Operand | None] = []  # None: without a term
        for item in boolean.postfix:
            if isinstance(item, Clause):
                before = len(builder.excluded)
                matching = self._matching(item, builder)
                excluded = frozenset(builder.excluded[before:])
                operand = None if matching is None else Operand(matching, frozenset(), excluded)
                stack.append(operand)
            elif item == "NOT":
                operand = stack.pop()
                stack.append(operand and ~operand)
            else:
                right, left = stack.pop(), stack.pop()
                if left is None or right is None:
                    stack.append(left or right)
                else:
                    stack.append(left & right if item == "AND" else left | right)
        (query,) = stack
        builder.allowed = query and query.matching
        absent = query.not_in_hits if query else ()
        builder.excluded = [shown for shown in builder.excluded if shown in absent]
        # What ranks neither restricts further nor has synonyms.
        builder.alternatives, builder.plain_words, builder.plain_phrases = {}, [], []

    def _matching(self, operand: Clause, builder: QueryBuilder) -> DocumentMask | None:
        """Read an operand; return which documents match it, or None if it has no term."""
        builder.allowed, builder.alternatives, unknown = None, {}, len(builder.unknown)
        self.read(operand, builder, is_operand=True)
        if operand.sign:
            return None if builder.allowed is None else ~builder.allowed
        if len(builder.unknown) > unknown:
            return np.zeros(len(self._snapshot), np.bool_)
        words, allowed = builder.alternatives.values(), builder.allowed
        if not words:
            return allowed
        containing = containing_words(self._snapshot, words, "all", builder.rules.evidence)
        return containing if allowed is None else allowed & containing

    def vary(
        self,
        text: str,
        words: list[Word],
        builder: QueryBuilder,
        forms: dict[Word, list[int]] | None,
        *,
        excludes: bool = False,
    ) -> tuple[list[Word], list[Variant], dict[Word, Words]]:
        """Return corrected words, and how documents also write them: joined, and in parts.

        text      that the words are of
        forms     gets terms that stand for words which no document contains; None if none may
        excludes  whether they are to be excluded: as typed, without corrections
        The parts of a word are () if no document writes it in parts.
        """
        words, in_languages = self._in_languages(words)
        if builder.rules.spelling == "off":
            return words, in_languages, {}
        joined = self._compounds.joined(text, builder.rules.evidence)
        if builder.rules.context is not None and builder.rules.spelling == "auto":
            words, joined = self._compounds.replace_split(words, joined, builder.rules.evidence)
        joined += self._with_other_prefixes(words)
        if not excludes:
            joined += self._more_common(words, builder)
        words = self._correct(words, builder, forms, covered_words(joined), excludes=excludes)
        if not excludes:
            return words, in_languages + joined, self._divided(words, builder)
        divided = dict[Word, Words]()
        if len(words) == 1:  # its parts do not correct it
            (word,) = words
            is_unknown, evidence = word.number == UNKNOWN, builder.rules.evidence
            divided[word] = self._compounds.parts(word.text, evidence, typed=is_unknown)
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
        """Return number and frequency of a word in each language.

        Words on its stop list are in all documents. Else each document with the term of the word
        counts, whatever its language.
        """
        kernel, numbers, frequencies = self._snapshot.query_kernel, {}, {}
        for language in self._analyzer.languages:
            terms = self._analyzer.in_language(language).terms(word.text)
            number = self._snapshot.vocabulary.numbers.get(terms[0], UNKNOWN) if terms else NO_TERM
            numbers[language] = number
            frequency = int(kernel.frequencies[number]) if number >= 0 else 0
            is_listed = word.text.casefold() in stop_list(language)
            frequencies[language] = kernel.documents if is_listed else frequency
        return numbers, frequencies

    def _more_common(self, words: Sequence[Word], builder: QueryBuilder) -> list[Variant]:
        """Return what rare words that are similar to frequent ones are probably meant to be."""
        rules, variants = builder.rules, list[Variant]()
        if rules.context is None or rules.spelling != "auto":
            return []
        for word in dict.fromkeys(words):
            context = tuple(term for term in rules.context if term != word.number)
            meant = self.corrector.more_common(word, rules.evidence, context)
            if meant is not None:
                (term,) = meant.terms
                variants.append(Variant(word.text, (word.number,), (Word(meant.words, term),)))
        return variants

    def _restrict(
        self,
        clause: Clause,
        words: Sequence[Word],
        variants: Sequence[Variant],
        builder: QueryBuilder,
    ) -> None:
        """Restrict the documents to those that contain the words of a clause, or do not."""
        patterns = list(filter(None, map(_trim, self._stop_words.patterns(words))))
        if not patterns:
            return
        matching = np.zeros(len(self._snapshot), np.bool_)
        for numbers in patterns:
            matching |= self._stop_words.containing(clause.text, numbers, clause.field)
        stops = [word.text for word in words if word.number == NO_TERM]
        builder.stop_words += stops if clause.sign != "-" else []
        written = {clause.text, " ".join(word.text for word in words)}  # with signs or without
        for variant in variants:
            if variant.written in written:
                terms = [word.number for word in variant.words]
                matching |= containing_phrase(self._snapshot, terms, clause.field)
                if clause.sign == "-":
                    builder.show(variant, builder.excluded_variants)
        names = (pattern_names(self._snapshot, numbers) for numbers in patterns)
        builder.restrict(clause, tuple(chain.from_iterable(names)), matching)

    def _divided(self, words: Sequence[Word], builder: QueryBuilder) -> dict[Word, Words]:
        """Return the parts of each word that may have some, of ten words of a query at most.

        A word that no document contains has those of its correction.
        """
        divided: dict[Word, Words] = {}
        for word in dict.fromkeys(words):
            if word.number >= 0 and self._compounds.may_divide(word.text):
                if len(builder.checked) >= MAX_CORRECTIONS:
                    break
                builder.checked.add(word.text)
                divided[word] = self._compounds.parts(word.text, builder.rules.evidence)
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
        """
        rules, corrected = builder.rules, list[Word]()
        for word in words:
            is_meant = rules.synonyms is not None and self.term(word) in rules.synonyms
            if word.number != UNKNOWN or word == builder.last or is_meant:
                corrected.append(word)
                continue
            is_auto = rules.spelling == "auto"
            terms = self._term_dictionary.with_other_accents(word.text) if is_auto else []
            if forms is not None and terms:
                forms[word] = terms[:EXPANSIONS]
            if excludes or word in (forms or ()):
                corrected.append(word)
                continue
            matching = None
            may_check = word.text in builder.checked or len(builder.checked) < MAX_CORRECTIONS
            if may_check and word.text not in joined:
                builder.checked.add(word.text)
                matching = self._correction(word, builder)
            if matching is not None:
                builder.corrections[word.text] = matching.words
            if matching is not None and matching.sure and rules.spelling == "auto":
                corrected += map(Word, matching.words.split(), matching.terms)
                builder.corrected.update(matching.terms)
                continue
            corrected.append(word)
            terms = [] if word == builder.last else self._term_dictionary.compounds(word.text)
            if forms is not None and terms:
                forms[word] = terms[:EXPANSIONS]
        return corrected

    def _correction(self, word: Word, builder: QueryBuilder) -> Correction | None:
        """Return the correction of a word, by the words before it as corrected.

        None if there is none, or if it is the last word and rather unfinished, which is noted.
        """
        rules = builder.rules
        context, is_last = rules.context, word == rules.unfinished
        if context is not None:
            context = (*context, *sorted(builder.corrected))
        if is_last:
            completions = self._term_dictionary.completions(word.text, rules.evidence)
            if completions and not self.corrector.is_misspelt(
                word.text, completions, context or (), rules.evidence
            ):
                builder.last = word
                return None
        has_capitals = any(map(str.isupper, word.text[1:]))
        where = Circumstances(
            context,
            alone=rules.context == (),
            abbreviation=rules.has_case and has_capitals,
            unfinished=is_last and rules.is_typing,
        )
        correction = self.corrector.correction(word.text, rules.evidence, where)
        if correction is None and is_last:  # perhaps misspelt and unfinished
            where = where._replace(unfinished=True)
            correction = self.corrector.correction(word.text, rules.evidence, where)
        return correction

    def term(self, word: Word) -> str:
        """Return the term of a word, known or not; "" if it has none."""
        if word.number >= 0:
            return self._snapshot.vocabulary.terms[word.number]
        return "".join(self._analyzer.terms(word.text)[:1]) if word.number == UNKNOWN else ""

    def complete(self, builder: QueryBuilder) -> None:
        """Add completions of the last word, and terms that stand for words of plain queries.

        For the first `MAX_CORRECTIONS` the one that fits the other words, else the most frequent.
        """
        if (last := builder.last) is not None:
            terms = self._term_dictionary.completions(last.text, builder.rules.evidence)
            self._complete(last, terms, f"{last.text}*", builder.context(last), builder)
        context = builder.context()
        for word, terms in builder.contained.items():
            self._complete(word, terms, word.text, context, builder)

    def _complete(
        self,
        word: Word,
        terms: Sequence[int],
        shown: str,
        context: Sequence[Alternatives],
        builder: QueryBuilder,
    ) -> None:
        """Add the completions of a word, or the pairs with a single character."""
        for term in terms:
            builder.count(word.key, (term,))
        if word in builder.contained and not context:
            best = list(terms[:PAIRS])
            builder.terms += [word.number] * (ALONE - 1) * (word.number >= 0)
        else:
            if len(builder.prefixes) >= MAX_CORRECTIONS:
                terms = terms[:1]
            best = best_completions(self._snapshot, word, terms, context, builder.rules.evidence)
        if not best:
            return
        names = self._snapshot.vocabulary.terms
        builder.prefixes[shown] = tuple(names[term] for term in best)
        if word not in builder.contained:
            builder.writings.append(((word.key,), (Word(names[best[0]], best[0]),)))
        added = [term for term in best if term not in builder.terms]
        builder.terms += added
        typed = word.number if word.number >= 0 else best[0]
        if alternatives := [names[term] for term in added if term != typed]:
            builder.completions = names[typed], alternatives

    def _read_terms(
        self, clause: Clause, terms: list[int], limit: int, builder: QueryBuilder
    ) -> None:
        """Read a prefix or a single character, which match these terms.

        limit  terms that documents are ranked by, the most frequent, at most
        """
        names = tuple(self._snapshot.vocabulary.terms[term] for term in terms[:limit])
        if clause.sign != "-":
            builder.terms += terms[:limit]
            builder.prefixes[clause.shown] = names
            for term in terms:
                builder.count(clause.shown, (term,))
        if clause.field:
            allowed = np.zeros(len(self._snapshot), np.bool_)
            for term in terms:
                allowed |= containing_phrase(self._snapshot, [term], clause.field)
            builder.restrict(clause, names, allowed)
        elif clause.sign:
            builder.restrict(clause, names, self._snapshot.bm25_engine.containing_any(terms))


def _trim(numbers: list[int]) -> list[int]:
    """Return the words of a phrase from its first term to its last."""
    terms = [position for position, number in enumerate(numbers) if number != NO_TERM]
    return numbers[terms[0] : terms[-1] + 1] if terms else []
