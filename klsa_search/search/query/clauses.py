"""Clauses: from a part of a query to the terms that rank, and the documents that it restricts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from klsa_search.core.array_types import DocumentMask
from klsa_search.search.engine.query_terms import NO_TERM
from klsa_search.search.query.interpretation import END, QueryBuilder, Variant, Word
from klsa_search.search.query.joining import covered_words
from klsa_search.search.query.matching import (
    Alternatives,
    Operand,
    containing_every,
    containing_phrase,
    pattern_names,
)
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.syntax import BooleanQuery, Clause
from klsa_search.search.query.term_dictionary import MIN_PREFIX, best_completions
from klsa_search.search.query.word_reader import MAX_CORRECTIONS, MAX_FORMS, WordReader
from klsa_search.storage.columns.columns import Field

PAIRS: Final = 200
"""Most frequent pairs with a single character that documents are ranked by, at most."""

ALONE: Final = 8
"""Factor by which a single character counts more where it stands alone than in a pair."""

MAX_VARIANTS: Final = 32
"""Words of one query of which other writings are searched, at most."""


class ClauseReader:
    """Reads clauses of queries to one snapshot into a builder; thread-safe."""

    def __init__(self, pieces: PieceCache, columns: Mapping[str, Field]) -> None:
        self._pieces, self._columns = pieces, columns
        self._snapshot, self._analyzer = pieces.snapshot, pieces.analyzer
        self._term_dictionary, self._stop_words = pieces.term_dictionary, pieces.stop_words
        self.words = WordReader(pieces)

    def read(self, clause: Clause, builder: QueryBuilder, *, is_operand: bool = False) -> None:
        """Add the terms of a clause, or an operand of a Boolean query; restrict the documents."""
        if clause.has_sign:
            builder.plain_words.append(END)
        if clause.field in self._columns:
            builder.restrict(clause, (), self._columns[clause.field].equal(clause.text))
            return
        evidence = builder.rules.evidence
        pieces, words = self._pieces.of(clause.text), self._pieces.words(clause.text)
        if clause.kind == "prefix" and len(words) == 1 and len(clause.text) >= MIN_PREFIX:
            terms = self._term_dictionary.beginning_with(clause.text, evidence)
            self._read_terms(clause, terms, MAX_FORMS, builder)
            return
        alone = {word: terms for piece in pieces for word, terms in piece.characters.items()}
        if clause.has_sign and len(words) == 1 and alone:
            self._read_terms(clause, alone[words[0].text], PAIRS, builder)
            return
        restricts = is_operand or clause.has_sign
        forms: dict[Word, list[int]] | None = {} if restricts else builder.contained
        is_phrase = clause.kind == "phrase" and len(words) > 1
        if is_phrase:
            forms = None
        words, variants, divided = self.words.vary(
            clause.text,
            words,
            builder,
            forms,
            is_plain=not (restricts or is_phrase),
            excludes=clause.sign == "-",
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
            contained = {word: alone[word.text] for word in words if word.text in alone}
            builder.contained |= contained
            for word, terms in contained.items() if is_operand else ():
                for term in terms:
                    builder.count(word.key, (term,))
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
        is_acronym = operand.text.isupper() and len(operand.text) > 1 and operand.kind == "word"
        if is_acronym and self._stop_words.of(self._pieces.words(operand.text)):
            operand = operand._replace(kind="phrase")  # IT
        self.read(operand, builder, is_operand=True)
        if operand.sign:
            return None if builder.allowed is None else ~builder.allowed
        if len(builder.unknown) > unknown:
            return np.zeros(len(self._snapshot), np.bool_)
        words, allowed = builder.alternatives.values(), builder.allowed
        if not words:
            return allowed
        containing = containing_every(self._snapshot, words)
        return containing if allowed is None else allowed & containing

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
                numbers = self._stop_words.numbers(variant.words)
                matching |= containing_phrase(self._snapshot, numbers, clause.field)
                if clause.sign == "-":
                    builder.show(variant, builder.excluded_variants)
        names = (pattern_names(self._snapshot, numbers) for numbers in patterns)
        builder.restrict(clause, tuple(chain.from_iterable(names)), matching)

    def complete(self, builder: QueryBuilder) -> None:
        """Add completions of the last word, and terms that stand for words of plain queries.

        For the first `MAX_CORRECTIONS` the one that fits the other words, else the most frequent.
        """
        compounds = self.words.compounds(builder.plain_words, builder.rules.spelling)
        if compounds:
            builder.beside_compounds = builder.plain_words[0]
        if (last := builder.last) is not None:
            terms = self._term_dictionary.completions(last.text, builder.rules.evidence)
            self._complete(last, terms, f"{last.text}*", builder.context(last), builder)
        elif builder.beside_compounds is not None:
            builder.contained[builder.beside_compounds] = compounds
        context = builder.context()
        for word, terms in builder.contained.items():
            if not context and word.number >= 0 and word != builder.beside_compounds:
                builder.terms += [word.number] * (ALONE - 1)
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
        """Read a prefix or single character; rank by the first `limit` of the terms it matches."""
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
    terms = [position for position, number in enumerate(numbers) if number != NO_TERM]
    return numbers[terms[0] : terms[-1] + 1] if terms else []
