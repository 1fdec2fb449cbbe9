"""Stop words that a query means: in capitals, joined by &, in phrases, or without other words.

The postings and the vocabulary leave stop words out, so no score of other words depends on them;
the forward index has them. Queries of stop words alone are ranked by how much of a document they
are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.array_types import DocumentMask, Numbers, Scores
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.interpretation import Word
from klsa_search.search.query.matching import containing_phrase, count_in_documents, pattern_names
from klsa_search.search.query.syntax import Clause, in_capitals, translated_operators

SHORT: Final = 3
"""Largest number of words of a query in which stop words in capitals, and all operators, count. On
judged queries with operators added, larger values lose.
"""

_MAY_BE_MEANT: Final = re.compile(r"(?<![^\W_])[A-Z]+(?![^\W_])|\w&\w")
_AROUND: Final = ".,;:!?()[]'"
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})


class StopWords:
    """Finds documents by stop words, in the forward index of a snapshot; thread-safe."""

    def __init__(self, snapshot: Snapshot, analyzer: Analyzer) -> None:
        self.snapshot, self.analyzer = snapshot, analyzer

    def numbers(self, words: Sequence[Word]) -> list[int]:
        """Return the numbers of words; those of stop words are `NO_TERM` less their codes."""
        stop_code = self.analyzer.term_of.stop_code
        return [
            word.number if word.number != NO_TERM else NO_TERM - stop_code(word.text)
            for word in words
        ]

    def patterns(self, words: Sequence[Word]) -> list[list[int]]:
        """Return the numbers of the words of a phrase, in each of the languages of documents."""
        analyzer = self.analyzer
        term_numbers = self.snapshot.vocabulary.numbers
        patterns = {tuple(self.numbers(words)): None}
        for language in analyzer.languages if len(analyzer.languages) > 1 else ():
            terms = [analyzer.in_language(language).terms(word.text) for word in words]
            patterns[
                tuple(
                    term_numbers.get(term[0], UNKNOWN)
                    if term
                    else NO_TERM - analyzer.term_of.stop_code(word.text)
                    for word, term in zip(words, terms, strict=True)
                )
            ] = None
        return [list(numbers) for numbers in patterns]

    def of(self, words: Sequence[Word]) -> list[Word]:
        """Return those of the words that are stop words of the forward index."""
        return [word for word in words if word.number == NO_TERM and self._is_stop_word(word.text)]

    def meant(self, query: str) -> list[Clause]:
        """Return a short query as clauses, with phrases for stop words that it means, or none.

        A stop word is meant if it is in capitals and other words are not: *IT department*. One of a
        single letter, only behind the words it belongs to: *vitamin A*. All of *AT&T*, *A/C* and
        *A.I.* are. Cost: 0.5 µs for most queries.
        """
        if not _MAY_BE_MEANT.search(query) or len(written := query.split()) > SHORT:
            return []
        shouted = in_capitals(query) and len(written) > 1
        operators = _OPERATORS.union(translated_operators(query))
        clauses: list[Clause] = []
        is_meant = False
        for word in written:
            bare = word.strip(_AROUND)
            parts = re.split("[&/.]" if bare.isupper() else "&", bare)
            clause = Clause("", "", "word", word, word)
            if len(parts) > 1 and all(parts):
                if any(map(self._is_stop_word, parts)):
                    clause = Clause("", "", "phrase", bare, bare)
            elif bare.isupper() and not shouted and self._is_stop_word(bare):
                if len(bare) > 1 and bare not in operators:
                    clause = Clause("", "", "phrase", bare, bare)
                elif len(bare) == 1 and clauses:
                    before = [clauses.pop()]
                    while clauses and self._is_stop_word(before[0].text):
                        before.insert(0, clauses.pop())
                    text = " ".join([*(clause.text for clause in before), bare])
                    clause = Clause("", "", "phrase", text, text)
            is_meant |= clause.kind == "phrase"
            clauses.append(clause)
        return clauses if is_meant else []

    def containing(self, text: str, numbers: list[int], field: str) -> DocumentMask:
        """Return which documents contain a phrase, its stop words in capitals as typed: (N,)."""
        return containing_phrase(self.snapshot, numbers, field, as_written=_has_case(text, numbers))

    def scores(self, query: str, words: Sequence[Word], evidence: Evidence) -> Scores:
        """Return scores of all documents for a query of stop words: (N,) float32, at most 1.

        A score is the share of a document that is these words: in sequence, with capitals as in the
        query if documents have them; else all of them anywhere. Cost: 3 ns a word of all documents.
        """
        snapshot = self.snapshot
        numbers = self.numbers(words)
        for as_written in (True, False) if _has_case(query, numbers) else (False,):
            counts = count_in_documents(snapshot, numbers, as_written=as_written)
            question = "stop words", as_written, *pattern_names(snapshot, numbers)
            matching = counts[snapshot.live_docs()]
            if evidence.of(question, lambda: int(np.count_nonzero(matching))):  # noqa: B023
                return self._shares(counts * len(numbers))
        counts_of_word = [
            count_in_documents(snapshot, [number], as_written=False)
            for number in dict.fromkeys(numbers)
        ]
        return self._shares(np.sum(counts_of_word, axis=0) * np.all(counts_of_word, axis=0))

    def _shares(self, counts: Numbers) -> Scores:
        lengths = np.asarray(self.snapshot.lengths, np.float64)
        total = counts + lengths
        shares: Scores = np.divide(counts, np.maximum(total, 1.0)).astype(np.float32)
        return shares

    def _is_stop_word(self, word: str) -> bool:
        return self.analyzer.term_of.stop_code(word) > 0


def _has_case(text: str, numbers: Sequence[int]) -> bool:
    """Return whether capitals of stop words say something: not if all of several words are."""
    has_capitals = any(number < NO_TERM and (NO_TERM - number) % 2 == 0 for number in numbers)
    return has_capitals and (len(numbers) == 1 or not in_capitals(text))
