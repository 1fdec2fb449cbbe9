"""Forms: what the words of a query add to its terms, found once and then looked up.

A form is a piece of a query between blanks, or several pieces that may be joined. Neither the
analyser nor the syntax looks across other blanks outside of quotes, and queries repeat words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from klsa_search import _native
from klsa_search.core.parameters import SpellingName
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.query.clauses import MAX_CORRECTIONS, MAX_VARIANTS, ClauseReader
from klsa_search.search.query.compounds import covered_words
from klsa_search.search.query.interpretation import ParsingRules, QueryBuilder, Variant, Word
from klsa_search.search.query.pieces import ALL_TRAITS, DOUBTFUL, HAS_UNKNOWN, Pieces, traits_of

_CAPACITY: Final = 2**16
_LONGEST: Final = 1_000  # characters of a query
_NO_VARIANTS: Final[dict[str, str]] = {}


class QueryForms:
    """Reads queries of words by the documents of one snapshot; thread-safe.

    It caches 65,536 forms for each way of reading, and pairs of pieces that are none, some 8 MB.
    """

    def __init__(self, pieces: Pieces, clauses: ClauseReader) -> None:
        self._pieces, self._clauses = pieces, clauses
        self._tables: dict[tuple[SpellingName, bool], _native.QueryForms] = {}

    def read(
        self,
        query: str,
        spelling: SpellingName,
        evidence: Evidence,
        *,
        has_case: bool,
        typed: bool,
    ) -> tuple[list[int], int]:
        """Return the terms of a query of words, as `ClauseReader.read` adds them, and its traits.

        spelling, evidence, has_case  see `ParsingRules`
        typed  do not correct words, which depends on the others: see `QueryParser.parse`
        Traits are -1 without a term, and if words must be read together: those of long queries, and
        of queries with many corrections; and if other calls may not know the evidence of a new
        form. Cost: 1 µs for ten words that were read before.
        """
        if len(query) > _LONGEST:
            return [], -1
        table = self._tables.get((spelling, has_case))
        if table is None:
            table = _native.QueryForms(_CAPACITY, MAX_CORRECTIONS, MAX_VARIANTS)
            self._tables[spelling, has_case] = table
        while isinstance(result := table.read(query), list):
            if typed and traits_of(self._pieces.of(query)) & HAS_UNKNOWN:
                return [], -1
            rules = ParsingRules(spelling, evidence=evidence, has_case=has_case)
            if not all(self._add(text, rules, table) for text in result):
                return [], -1
        return result

    def variants(
        self, query: str, spelling: SpellingName, *, has_case: bool
    ) -> dict[str, str] | None:
        """Return how documents also write words of a query that was read.

        None if more than its words and these is to be told of it. Cost: 1 µs.
        """
        table = self._tables.get((spelling, has_case))
        return None if table is None else table.variants(query)

    def _add(self, text: str, rules: ParsingRules, table: _native.QueryForms) -> bool:
        """Read a form by itself; return False if other calls may read it by other evidence."""
        pieces = self._pieces.of(text)
        read_together = self._pieces.compounds.read_together
        if len(pieces) == 2 and not read_together(pieces[0].last, pieces[1].first):
            table.add_separate(text)
            return True
        builder, unsettled = QueryBuilder(rules), rules.evidence.unsettled
        before = [word for piece in pieces for word in piece.words]
        words, joined, divided = self._clauses.vary(text, before, builder, builder.contained)
        if rules.evidence.unsettled > unsettled:
            return False
        unknown = dict.fromkeys(word.text for word in before if word.number == UNKNOWN)
        is_alone = not builder.contained and len(builder.checked) < MAX_CORRECTIONS
        is_split = any(" " in variant.written for variant in joined)
        is_doubtful = is_split or any(map(self._clauses.corrector.is_doubtful, before))
        traits = traits_of(pieces) | DOUBTFUL * is_doubtful
        variants = [*joined, *(Variant(word.text, (), parts) for word, parts in divided.items())]
        shown = dict[str, str]()
        for variant in variants:
            if variant.shown not in ("", variant.written):
                shown.setdefault(variant.written, variant.shown)
        table.add(
            text=text,
            first=pieces[0].first.first,
            last=pieces[-1].last.last,
            begins=pieces[0].first.may_end,
            ends=pieces[-1].last.may_begin,
            traits=traits if is_alone else ALL_TRAITS,
            covers_unknown=not unknown.keys().isdisjoint(covered_words(joined)),
            words=[word.number for word in words if word.number >= 0],
            joined=_numbers(word for variant in joined for word in variant.words),
            corrected=[word for word in unknown if word in builder.checked],
            divided=[(word.text, _numbers(parts)) for word, parts in divided.items()],
            variants=shown or _NO_VARIANTS,
        )
        return True


def _numbers(words: Iterable[Word]) -> list[int]:
    return [word.number for word in words]
