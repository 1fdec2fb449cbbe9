"""Query parser: from the text of a query to its terms and required words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.array_types import DocumentMask, Scores
from klsa_search.core.parameters import LanguageSettings, MatchName
from klsa_search.errors import QueryError
from klsa_search.search.engine.evidence import LOCAL, Evidence, Question
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.clauses import ClauseReader
from klsa_search.search.query.codes import CodeReader, new_terms
from klsa_search.search.query.corrections import MIN_FITTING_LETTERS
from klsa_search.search.query.forms import QueryForms
from klsa_search.search.query.interpretation import (
    ParsingRules,
    QueryBuilder,
    QueryInterpretation,
    Relaxed,
)
from klsa_search.search.query.matching import Alternatives, containing_words
from klsa_search.search.query.operators import SHORT, OperatorReader, as_words
from klsa_search.search.query.pieces import (
    BOOLEAN,
    CHARACTERS,
    DOUBTFUL,
    HAS_UNKNOWN,
    MAY_BE_CODE,
    SIGNS,
    Pieces,
    numbers_of,
    traits_of,
)
from klsa_search.search.query.synonyms import NONE, SynonymExpansion, Synonyms, add_synonyms
from klsa_search.search.query.syntax import (
    BooleanQuery,
    Clause,
    in_capitals,
    last_word,
)
from klsa_search.search.query.term_dictionary import DocumentsAt
from klsa_search.storage.columns.columns import Field

MAX_TERMS: Final = 256
"""Distinct terms that a query is ranked by, at most; the lightest of more are left out."""


class ParsedQuery(NamedTuple):
    """A parsed query.

    terms       numbers of the terms to rank by, repetitions included, at most `MAX_TERMS` distinct;
                negative if unknown
    mask        documents that satisfy required and excluded clauses, and contain as many words as
                `match` requires; None for all
    reading     how it was read; None if that was not needed: see `QueryParser.interpretation`
    synonyms    what synonyms added
    stop_scores  (N,) scores of a query of stop words alone, which has no terms; else None
    leading     (N,) which documents contain its codes as typed, and come first; None for none
    """

    terms: Sequence[int]
    mask: Mask | None = None
    reading: QueryBuilder | None = None
    synonyms: SynonymExpansion = NONE
    stop_scores: Scores | None = None
    leading: DocumentMask | None = None


class QueryParser:
    """Parses queries to one snapshot; thread-safe.

    columns  keyword fields that can be searched by name, unless their words are searched
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        columns: Mapping[str, Field],
        documents_at: DocumentsAt,
        synonyms: Synonyms,
    ) -> None:
        analyzer = analyzer.preferring(snapshot.vocabulary.numbers)
        self.snapshot, self.analyzer = snapshot, analyzer
        searched = snapshot.forward.fields.searched
        self._columns = {name: columns[name] for name in columns.keys() - set(searched)}
        self.fields = {*searched, *columns}
        self.pieces = Pieces(snapshot, analyzer, documents_at)
        self._codes = CodeReader(self.pieces)
        self.operators = OperatorReader(self.pieces, self.fields)
        self._clauses = ClauseReader(self.pieces, self._columns)
        self.corrector, self._stop_words = self._clauses.corrector, self.pieces.stop_words
        self._forms = QueryForms(self.pieces, self._clauses)
        # Words that a tokenizer finds, or that have to tell the language together.
        self._reads_together = analyzer.tokenizes or len(analyzer.languages) > 1
        self._synonyms, numbers = synonyms, snapshot.vocabulary.numbers
        # A query without any of these is parsed as fast as without synonyms.
        self._first_terms = frozenset(numbers.get(term, UNKNOWN) for term in synonyms.first_terms)

    def parse(
        self,
        query: str,
        settings: LanguageSettings,
        *,
        typed: bool = False,
        complete_last: bool = False,
        evidence: Evidence | None = None,
    ) -> ParsedQuery:
        """Parse a query; QueryError if it is not a text.

        typed  by a person: correct words by the others, and complete an unknown last word
        complete_last  also search for completions of the last word
        evidence       of documents, by default of the snapshot
        Of a query of more than `MAX_TERMS` distinct terms the heaviest count, see `left_out` of
        the interpretation. Cost: 3 µs for plain words, else that of `matching` and `spelling`.
        """
        if not isinstance(query, str):
            raise QueryError(f"query = {query!r} is not a text; give a string", field="query")
        evidence = evidence or LOCAL
        if not (complete_last and last_word(query)):
            of_words = self._parse_words(query, settings, evidence, typed=typed)
            if of_words is not None and len(of_words.terms) <= MAX_TERMS:
                return of_words
        parsed = self._parse(query, settings, evidence, typed=typed, complete_last=complete_last)
        return parsed if len(parsed.terms) <= MAX_TERMS else self._heaviest(parsed)

    def _heaviest(self, parsed: ParsedQuery) -> ParsedQuery:
        """Return a long query with its heaviest terms, each as often as it occurs.

        Terms weigh as in all partitions, so all of them leave out the same.
        """
        counts = Counter(number for number in parsed.terms if number >= 0)
        if len(counts) <= MAX_TERMS:
            return parsed
        weights = dict(
            zip(counts, self.snapshot.query_kernel.weights([*counts]).tolist(), strict=True)
        )
        ordered = sorted(counts, key=lambda term: -counts[term] * weights[term])
        kept, names = set(ordered[:MAX_TERMS]), self.snapshot.vocabulary.terms
        builder = parsed.reading
        assert builder is not None, "it has too many terms for a query of words"
        words = [(word, self.pieces.numbers[word]) for word in builder.words]
        left_out = dict.fromkeys(word for word, number in words if number not in kept)
        light = set(ordered[MAX_TERMS:]).difference(number for _, number in words)
        left_out |= dict.fromkeys(names[term] for term in ordered if term in light)
        builder.words = [word for word, number in words if number in kept]
        builder.left_out = tuple(left_out)
        terms = [term for term in parsed.terms if term in kept]
        return parsed._replace(terms=terms, reading=builder)

    def _parse_words(
        self, query: str, settings: LanguageSettings, evidence: Evidence, *, typed: bool
    ) -> ParsedQuery | None:
        """Parse a query of words by the forms of its words; return None for any other."""
        if settings.match != "any" or self._reads_together:
            return None
        has_case = not _are_in_capitals(query)
        terms, traits = self._forms.read(
            query, settings.spelling, evidence, has_case=has_case, typed=typed
        )
        operators, refused = settings.operators, CHARACTERS | (HAS_UNKNOWN | DOUBTFUL) * typed
        if operators is not False:
            refused |= SIGNS | BOOLEAN * (has_case or operators is True)
        if traits & refused:
            return None
        may_mean = has_case or "&" in query or "/" in query  # stop words
        if operators is None and may_mean and self._stop_words.meant(query, SHORT):
            return None
        leading, may_be_code = None, typed and traits & MAY_BE_CODE and settings.spelling != "off"
        if may_be_code and (codes := self._codes.read(query, evidence)):
            leading = self._codes.documents(codes, evidence)
            terms = [*terms, *new_terms(codes, terms)]
        has_synonyms = traits & HAS_UNKNOWN or not self._first_terms.isdisjoint(terms)
        if settings.synonyms and self._first_terms and has_synonyms:
            return None
        return ParsedQuery(terms, leading=leading)

    def _parse(
        self,
        query: str,
        settings: LanguageSettings,
        evidence: Evidence,
        *,
        typed: bool = False,
        complete_last: bool = False,
    ) -> ParsedQuery:
        """Parse a query of any number of terms: see `parse`."""
        synonyms = self._synonyms if settings.synonyms and self._synonyms else None
        relaxed: dict[str, Relaxed] = {}
        boolean, clauses = self.operators.read(query, settings, evidence, relaxed)
        has_case = not _are_in_capitals(query)
        rules = ParsingRules(settings.spelling, synonyms, evidence=evidence, has_case=has_case)
        if typed:
            texts = [query] if boolean is not None else self._ranking_texts(clauses)
            numbers = (word.number for text in texts for word in self.pieces.words(text))
            rules = rules._replace(context=tuple(dict.fromkeys(n for n in numbers if n >= 0)))
        if boolean is None and not (clauses and clauses[-1].has_sign):
            rules = self._with_last_word(query, rules._replace(is_typing=complete_last))
        builder = self._read_clauses(clauses, rules, boolean)
        while settings.operators is None and (unmatched := self._unmatched(builder)):
            relaxed |= {clause.written: "no_match" for clause in unmatched}
            clauses = [
                as_words(clause.text) if clause in unmatched else clause for clause in clauses
            ]
            builder = self._read_clauses(clauses, rules)
        leading = None
        if typed and boolean is None:
            leading = self._codes.apply(clauses, builder, exact=settings.match != "any")
        builder.relaxed = relaxed
        builder.boolean = None if boolean is None else boolean.written
        expansion, scores = NONE, None
        if synonyms is not None:
            expansion = add_synonyms(
                synonyms, builder, self.snapshot.vocabulary, self._clauses.term
            )
        if builder.completions:
            expansion = expansion.with_terms(*builder.completions)
        if not (builder.terms or builder.unknown):
            texts = [query] if boolean is not None else self._ranking_texts(clauses)
            ranking = self._stop_words.of(
                [word for text in texts for word in self.pieces.words(text)]
            )
            if ranking:
                builder.stop_words = [word.text for word in ranking]
                scores = self._stop_words.scores(query, ranking, evidence)
        words = builder.alternatives.values()
        mask = self._mask(builder.allowed, words, settings.match, evidence)
        parsed = ParsedQuery(builder.terms, mask, builder, synonyms=expansion, stop_scores=scores)
        return parsed._replace(leading=leading)

    def _ranking_texts(self, clauses: Sequence[Clause]) -> list[str]:
        """Return the texts of a query that it neither excludes nor filters by."""
        return [
            clause.text
            for clause in clauses
            if clause.sign != "-" and clause.field not in self._columns
        ]

    def _mask(
        self,
        allowed: DocumentMask | None,
        words: Collection[Alternatives],
        match: MatchName,
        evidence: Evidence,
    ) -> Mask | None:
        """Return the allowed documents that contain as many of these words as required."""
        if match == "any":
            return None if allowed is None else Mask(allowed)
        if words:
            containing = containing_words(self.snapshot, words, match, evidence)
            allowed = containing if allowed is None else allowed & containing
        return None if allowed is None else Mask(allowed)

    def _with_last_word(self, query: str, rules: ParsingRules) -> ParsingRules:
        """Return rules with the last word of the query if it is to be completed, or may be."""
        words = self.pieces.words(last_word(query))
        if len(words) != 1 or words[0].number == NO_TERM:
            return rules
        (word,) = words
        corrects = rules.context is not None and rules.spelling == "auto"
        if corrects and word.number == UNKNOWN and word.text.isalpha():
            may_be_unfinished = rules.is_typing or len(word.text) >= MIN_FITTING_LETTERS
            return rules._replace(unfinished=word if may_be_unfinished else None)
        has_any = rules.is_typing and self.pieces.term_dictionary.completions(
            word.text, rules.evidence
        )
        return rules._replace(last=word if has_any else None)

    def _read_clauses(
        self, clauses: Sequence[Clause], rules: ParsingRules, boolean: BooleanQuery | None = None
    ) -> QueryBuilder:
        """Read all clauses of a query, or a Boolean query."""
        builder = QueryBuilder(rules, rules.last)
        for clause in clauses:
            self._clauses.read(clause, builder)
        if boolean is not None:
            self._clauses.read_boolean(boolean, builder)
        self._clauses.complete(builder)
        return builder

    def _unmatched(self, builder: QueryBuilder) -> set[Clause]:
        """Return plain phrases that no live document contains, or all if no document is left."""
        if builder.allowed is None:
            return set()
        live, evidence = self.snapshot.live_docs(), builder.rules.evidence

        def documents(question: Question, matching: DocumentMask) -> int:
            return evidence.of(question, lambda: int((matching & live).sum()))

        missing = {
            clause
            for clause, restriction, matching in builder.plain_phrases
            if not documents(("clause", *restriction), matching)
        }
        if missing or documents(("clauses", *builder.restrictions), builder.allowed):
            return missing
        return {clause for clause, _, _ in builder.plain_phrases}

    def known_terms_of(self, query: str) -> Sequence[int] | None:
        """Return the term numbers of a query of known words, or None for other queries.

        Parsing such a query takes at most 20 µs. Cost: 1 µs.
        """
        pieces = self.pieces.of(query)
        numbers = numbers_of(pieces)
        if traits_of(pieces) & (SIGNS | HAS_UNKNOWN):
            return None
        if max(numbers, default=0) < 0:  # stop words only
            return None
        return None if self._stop_words.meant(query, SHORT) else numbers

    def interpretation(
        self,
        query: str,
        parsed: ParsedQuery,
        settings: LanguageSettings,
        evidence: Evidence | None = None,
    ) -> QueryInterpretation:
        """Return how a query was interpreted, by settings and evidence that it was parsed with."""
        builder = parsed.reading
        if builder is None:
            has_case = not _are_in_capitals(query)
            variants = self._forms.variants(query, settings.spelling, has_case=has_case)
            if variants is not None:
                words = tuple([word.text for word in self.pieces.words(query) if word.number >= 0])
                return QueryInterpretation(words=words, variants=variants)
            builder = self._parse(query, settings, evidence or LOCAL).reading
            assert builder is not None
        return builder.interpretation(query)

    def known_terms(self, parsed: ParsedQuery) -> set[str]:
        """Return the terms of a query that the index knows."""
        terms = self.snapshot.vocabulary.terms
        return {terms[number] for number in parsed.terms if number >= 0}


def _are_in_capitals(query: str) -> bool:
    """Return whether several words are all in capitals, which then say nothing about any."""
    return in_capitals(query) and len(query.split(None, 1)) > 1
