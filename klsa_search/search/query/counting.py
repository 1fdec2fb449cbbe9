"""Counts of what makes a query expensive, by which `search.costs` estimates its cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.config import LanguageSettings
from klsa_search.search.costs import CHARACTERS_PER_WORD, QueryCounts
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.boolean import parse_boolean
from klsa_search.search.query.clauses import MAX_CORRECTIONS
from klsa_search.search.query.operators import MAX_SIGNS, OperatorReader
from klsa_search.search.query.pieces import CHARACTERS, SIGNS, Pieces, numbers_of, traits_of
from klsa_search.search.query.syntax import Clause

LONGEST_COUNTED: Final = 1_000
"""Characters of a query up to which its words are looked up to estimate its cost."""


class QueryCounter:
    """Counts what makes queries to one snapshot expensive; thread-safe.

    fields  names that a clause may begin with
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        pieces: Pieces,
        operators: OperatorReader,
        fields: Collection[str],
    ) -> None:
        self._snapshot, self._analyzer, self._fields = snapshot, analyzer, fields
        self._pieces, self._operators = pieces, operators

    def counts(self, query: str, settings: LanguageSettings) -> QueryCounts:
        """Return counts of what makes a query expensive. Cost: 3 µs without operators, else 50.

        settings  how the query is parsed: operators read as words and disabled spelling cost
                  nothing
        Long queries, and those for a custom tokenizer, are counted by their length.
        """
        documents = len(self._snapshot)
        if not query.strip():  # with a filter, it matches every document
            return QueryCounts(matches=documents)
        if len(query) > LONGEST_COUNTED or self._analyzer.tokenizes:
            return QueryCounts(len(query) / CHARACTERS_PER_WORD, matches=documents)
        if settings.operators is not False and (boolean := parse_boolean(query, self._fields)):
            clauses = [operand.clause for operand in boolean.operands[:MAX_SIGNS]]
            return QueryCounts(
                len(query) / CHARACTERS_PER_WORD,
                len(clauses),
                phrase_documents=self._documents_of_phrases(clauses),
                matches=documents,
            )
        operators = phrase_documents = 0
        has_prefix = False
        pieces = self._pieces.of(query)
        if settings.operators is not False and traits_of(pieces) & SIGNS:
            clauses, reason = self._operators.read(query, settings.operators)
            if reason is None:
                signed = [clause for clause in clauses if clause.has_sign][:MAX_SIGNS]
                operators, phrase_documents = len(signed), self._documents_of_phrases(signed)
                has_prefix = any(clause.kind == "prefix" for clause in signed)
                query = " ".join(clause.text for clause in clauses if clause.kind != "prefix")
                pieces = self._pieces.of(query)
        numbers, frequencies = numbers_of(pieces), self._snapshot.query_kernel.postings.frequencies
        misspelt = 0 if settings.spelling == "off" else min(MAX_CORRECTIONS, numbers.count(UNKNOWN))
        matches = sum(int(frequencies[number]) for number in {*numbers} if number >= 0)
        if max(numbers, default=NO_TERM) == NO_TERM:  # stop words are searched in all documents
            matches = phrase_documents = documents
        if has_prefix or traits_of(pieces) & CHARACTERS:
            matches = documents
        return QueryCounts(
            len(numbers),
            operators,
            misspelt,
            phrase_documents=phrase_documents,
            matches=min(matches, documents),
        )

    def _documents_of_phrases(self, clauses: Iterable[Clause]) -> int:
        """Return the number of documents that contain the rarest word of each phrase, in total."""
        frequencies, count = self._snapshot.query_kernel.postings.frequencies, 0
        for clause in clauses:
            words = self._pieces.words(clause.text) if clause.kind == "phrase" else []
            numbers = [word.number for word in words]
            terms = [number for number in numbers if number >= 0]
            if len(numbers) > 1 and terms and UNKNOWN not in numbers:
                count += int(frequencies[terms].min())
        return count
