"""Query parser: from the text of a query to its terms and required words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from klsa_search import _native
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.array_types import DocumentMask, Scores
from klsa_search.core.parameters import ParsingSettings, SpellingName
from klsa_search.search.engine.evidence import LOCAL, Evidence, Question
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.clauses import MAX_VARIANTS, ClauseReader
from klsa_search.search.query.codes import CodeReader, new_terms
from klsa_search.search.query.interpretation import (
    ParsingRules,
    QueryBuilder,
    QueryInterpretation,
    Relaxed,
    Variant,
    Word,
)
from klsa_search.search.query.joining import covered_words, may_be_split
from klsa_search.search.query.matching import containing_words
from klsa_search.search.query.operators import OperatorReader, as_words
from klsa_search.search.query.pieces import (
    ALL_FLAGS,
    BOOLEAN,
    CHARACTERS,
    DOUBTFUL,
    HAS_UNKNOWN,
    MAY_BE_CODE,
    SIGNS,
    PieceCache,
    flags_of,
)
from klsa_search.search.query.similar_terms import MIN_FITTING_LETTERS
from klsa_search.search.query.synonyms import NONE, SynonymExpansion, Synonyms, add_synonyms
from klsa_search.search.query.syntax import BooleanQuery, Clause, in_capitals, last_word
from klsa_search.search.query.term_dictionary import DocumentsAt
from klsa_search.search.query.word_reader import MAX_CORRECTIONS
from klsa_search.storage.columns.columns import Field

_CAPACITY: Final = 2**16  # forms
_LONGEST: Final = 1_000  # characters of a query that is read by its forms
_NAME_APART: Final = re.compile(r"(?<!\S)([A-Za-z]) (\+\+|#)(?!\S)")  # C ++
_NO_VARIANTS: Final[dict[str, str]] = {}  # of most forms

MAX_TERMS: Final = 256
"""Distinct terms that a query is ranked by, at most; the lightest of more are left out."""


class ParsedQuery(NamedTuple):
    """A parsed query.

    terms         numbers of the terms to rank by, repetitions included, at most `MAX_TERMS`
                  distinct; negative if unknown
    mask          documents that satisfy required and excluded clauses, and contain as many words as
                  `match` requires; None for all
    builder       what it was made by; None if that was not needed: see `QueryParser.interpretation`
    synonyms      what synonyms added
    stop_scores   (N,) scores of a query of stop words alone, which has no terms; else None
    typed_matches  (N,) which documents come first, as they contain what was typed: its codes, or
                  its only word if compounds are searched as well; None without these
    """

    terms: Sequence[int]
    mask: Mask | None = None
    builder: QueryBuilder | None = None
    synonyms: SynonymExpansion = NONE
    stop_scores: Scores | None = None
    typed_matches: DocumentMask | None = None


class _Form(NamedTuple):
    """What a form adds to a query, as `_native.QueryForms.add` takes it."""

    first: int
    last: int
    begins: bool
    ends: bool
    flags: int
    covers_unknown: bool
    words: list[int]
    joined: list[int]
    corrected: list[str]
    divided: list[tuple[str, list[int]]]
    variants: dict[str, str]


class QueryParser:
    """Parses queries to one snapshot; thread-safe.

    columns  keyword fields that can be searched by name, unless their words are searched
    stored   names of all fields of metadata
    rules    queries of rules
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        columns: Mapping[str, Field],
        documents_at: DocumentsAt,
        synonyms: Synonyms,
        stored: Collection[str] = (),
        rules: Iterable[str] = (),
    ) -> None:
        analyzer = analyzer.preferring(snapshot.vocabulary.numbers)
        self.snapshot, self.analyzer = snapshot, analyzer
        searched = snapshot.forward.fields.searched
        self.columns = {name: columns[name] for name in columns.keys() - set(searched)}
        self.fields = {*searched, *columns}
        self.pieces = PieceCache(snapshot, analyzer, documents_at, synonyms.as_written, rules)
        self.codes = CodeReader(self.pieces)
        self.operators = OperatorReader(self.pieces, self.fields, stored)
        self._clauses = ClauseReader(self.pieces, self.columns)
        self.words, self._stop_words = self._clauses.words, self.pieces.stop_words
        self._is_large = self.words.corrector.is_large
        self._forms: dict[tuple[SpellingName, bool], _native.QueryForms] = {}
        # Words that a tokenizer finds, or that have to tell the language together.
        self._reads_together = analyzer.tokenizes or len(analyzer.languages) > 1
        self._synonyms = synonyms
        numbers = snapshot.vocabulary.numbers
        # A query without any of these is parsed as fast as without synonyms.
        self._first_terms = frozenset(numbers.get(term, UNKNOWN) for term in synonyms.first_terms)

    def parse(
        self,
        query: str,
        settings: ParsingSettings,
        *,
        typed: bool = False,
        complete_last: bool = False,
        evidence: Evidence = LOCAL,
    ) -> ParsedQuery:
        """Parse a query.

        typed  by a person: correct words by the others, and complete an unknown last word
        complete_last  also search for completions of the last word
        evidence       of documents, by default of the snapshot
        Of a query of more than `MAX_TERMS` distinct terms the heaviest count, see `left_out` of
        the interpretation. Cost: 3 µs for plain words, else that of `match` and `spelling`.
        """
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
        kernel, names = self.snapshot.query_kernel, self.snapshot.vocabulary.terms
        weights = dict(zip(counts, kernel.weights([*counts]).tolist(), strict=True))
        ordered = sorted(counts, key=lambda term: -counts[term] * weights[term])
        kept, builder = set(ordered[:MAX_TERMS]), parsed.builder
        assert builder is not None, "it has too many terms for a query of words"
        words = {word: self.pieces.numbers[word] for word in builder.words}
        left_out = [word for word, number in words.items() if number not in kept]
        added = [term for term in ordered[MAX_TERMS:] if term not in words.values()]
        builder.left_out = (*left_out, *(names[term] for term in added))
        builder.words = [word for word in builder.words if words[word] in kept]
        return parsed._replace(terms=[term for term in parsed.terms if term in kept])

    def _parse_words(
        self, query: str, settings: ParsingSettings, evidence: Evidence, *, typed: bool
    ) -> ParsedQuery | None:
        """Parse a query of words by the forms of its words; return None for any other."""
        if settings.match != "any" or self._reads_together:
            return None
        has_case = not _are_in_capitals(query)
        rules = ParsingRules(settings.spelling, evidence=evidence, has_case=has_case)
        terms, flags = self._read_forms(query, rules, typed=typed)
        operators, refused = settings.operators, CHARACTERS | (HAS_UNKNOWN | DOUBTFUL) * typed
        if operators is not False:
            refused |= SIGNS | BOOLEAN * (has_case or operators is True)
        if flags & refused:
            return None
        may_mean = has_case or "&" in query or "/" in query  # stop words
        if operators is None and may_mean and self._stop_words.meant(query):
            return None
        if self.pieces.term_dictionary.has_compounds and self.words.compounds(
            self.pieces.words(query), settings.spelling
        ):
            return None
        typed_matches = None
        may_be_code = typed and flags & MAY_BE_CODE and settings.spelling != "off"
        if may_be_code and (codes := self.codes.read(query, evidence)):
            typed_matches = self.codes.documents(codes, evidence)
            terms = [*terms, *new_terms(codes, terms)]
        has_synonyms = flags & HAS_UNKNOWN or not self._first_terms.isdisjoint(terms)
        if settings.synonyms and self._first_terms and has_synonyms:
            return None
        return ParsedQuery(terms, typed_matches=typed_matches)

    def _read_forms(self, query: str, rules: ParsingRules, *, typed: bool) -> tuple[list[int], int]:
        """Return the terms of a query of words, as `ClauseReader.read` adds them, and its flags.

        A form is a piece of a query, or several that may be joined. Neither the analyser nor the
        syntax looks across other blanks outside of quotes, and queries repeat words, so what a form
        adds is found once: 65,536 are cached for each way of reading, some 8 MB.

        typed  do not correct words, which depends on the others: see `parse`
        Flags are -1 without a term, and if words must be read together: those of long queries, and
        of queries with many corrections; and if other calls may not know the evidence of a new
        form. Cost: 1 µs for ten words that were read before.
        """
        if len(query) > _LONGEST:
            return [], -1
        key = rules.spelling, rules.has_case
        if (table := self._forms.get(key)) is None:
            table = _native.QueryForms(_CAPACITY, MAX_CORRECTIONS, MAX_VARIANTS)
            self._forms[key] = table
        while isinstance(result := table.read(query), list):
            if typed and flags_of(self.pieces.of(query)) & HAS_UNKNOWN:
                return [], -1
            if not all(self._add_form(text, rules, table) for text in result):
                return [], -1
        return result

    def _add_form(self, text: str, rules: ParsingRules, table: _native.QueryForms) -> bool:
        """Read a form by itself; return False if other calls may read it by other evidence."""
        uncacheable = rules.evidence.uncacheable_reads
        key = "form", rules.spelling, rules.has_case, self._is_large, text
        form = rules.evidence.cached(self.pieces.derived, key, partial(self._form, text, rules))
        if rules.evidence.uncacheable_reads > uncacheable:
            return False
        if form is None:
            table.add_separate(text)
        else:
            table.add(text, *form)
        return True

    def _form(self, text: str, rules: ParsingRules) -> _Form | None:
        """Return what a form adds; None for two pieces that are not read together."""
        pieces, joiner = [*map(self.pieces.read, text.split(" "))], self.pieces.joiner
        if len(pieces) == 2 and not joiner.read_together(pieces[0].last, pieces[1].first):
            return None
        builder = QueryBuilder(rules)
        before = [word for piece in pieces for word in piece.words]
        words, joined, divided = self.words.vary(
            text, before, builder, builder.contained, is_plain=True
        )
        unknown = dict.fromkeys(word.text for word in before if word.number == UNKNOWN)
        if unknown:  # corrected by all documents
            self.pieces.derived.note_all()
        is_alone = not builder.contained and len(builder.checked) < MAX_CORRECTIONS
        is_split = any(" " in one.written or may_be_split(one) for one in joined)
        is_doubtful = is_split or any(map(self.words.is_doubtful, before))
        flags = flags_of(pieces) | DOUBTFUL * is_doubtful
        variants = [*joined, *(Variant(word.text, (), parts) for word, parts in divided.items())]
        shown = dict[str, str]()
        for variant in variants:
            if variant.shown not in ("", variant.written):
                shown.setdefault(variant.written, variant.shown)
        return _Form(
            first=pieces[0].first.first,
            last=pieces[-1].last.last,
            begins=pieces[0].first.may_end,
            ends=pieces[-1].last.may_begin,
            flags=flags if is_alone else ALL_FLAGS,
            covers_unknown=not unknown.keys().isdisjoint(covered_words(joined)),
            words=[word.number for word in words if word.number >= 0],
            joined=_numbers(word for variant in joined for word in variant.words),
            corrected=[word for word in unknown if word in builder.checked],
            divided=[(word.text, _numbers(parts)) for word, parts in divided.items()],
            variants=shown or _NO_VARIANTS,
        )

    def _parse(
        self,
        query: str,
        settings: ParsingSettings,
        evidence: Evidence,
        *,
        typed: bool = False,
        complete_last: bool = False,
    ) -> ParsedQuery:
        query = _NAME_APART.sub(self._with_name, query)
        synonyms = self._synonyms if settings.synonyms and self._synonyms else None
        relaxed: dict[str, Relaxed] = {}
        boolean, clauses = self.operators.read(query, settings, evidence, relaxed)
        has_case = not _are_in_capitals(query)
        rules = ParsingRules(settings.spelling, synonyms, evidence=evidence, has_case=has_case)
        texts = [query]  # what it neither excludes nor filters by
        if boolean is None:
            kept = (clause for clause in clauses if clause.sign != "-")
            texts = [clause.text for clause in kept if clause.field not in self.columns]
        words = [word for text in texts for word in self.pieces.words(text)]
        if typed:
            context = dict.fromkeys(word.number for word in words if word.number >= 0)
            rules = rules._replace(context=tuple(context))
        if boolean is None and not (clauses and clauses[-1].has_sign):
            rules = self._with_last_word(query, rules._replace(is_typing=complete_last))
        builder = self._read_clauses(clauses, rules, boolean)
        while settings.operators is None and (unmatched := self._unmatched(builder)):
            relaxed |= {clause.written: "no_match" for clause in unmatched}
            clauses = [
                as_words(clause.text) if clause in unmatched else clause for clause in clauses
            ]
            builder = self._read_clauses(clauses, rules)
        typed_matches = None
        if typed and boolean is None:
            typed_matches = self.codes.apply(clauses, builder, exact=settings.match != "any")
            if typed_matches is None and builder.beside_compounds is not None:
                word = builder.beside_compounds.number
                typed_matches = self.snapshot.bm25_engine.containing_any([word])
        builder.relaxed = relaxed
        builder.boolean = None if boolean is None else boolean.written
        expansion, scores = NONE, None
        if synonyms is not None:
            expansion = add_synonyms(synonyms, builder, self.snapshot.vocabulary, self.words.term)
        if builder.completions:
            expansion = expansion.with_terms(*builder.completions)
        is_empty = not (builder.terms or builder.unknown)
        if is_empty and (ranking := self._stop_words.of(words)):
            builder.stop_words = [word.text for word in ranking]
            scores = self._stop_words.scores(query, ranking, evidence)
        allowed = builder.allowed
        counted = builder.alternatives.values()
        if settings.match != "any" and counted:
            containing = containing_words(self.snapshot, counted, settings.match, evidence)
            allowed = containing if allowed is None else allowed & containing
        mask = None if allowed is None else Mask(allowed)
        return ParsedQuery(builder.terms, mask, builder, expansion, scores, typed_matches)

    def _with_name(self, apart: re.Match[str]) -> str:
        name = apart[1] + apart[2]
        return name if self.pieces.counts.of(name) else apart[0]

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

    def interpretation(
        self,
        query: str,
        parsed: ParsedQuery,
        settings: ParsingSettings,
        evidence: Evidence = LOCAL,
    ) -> QueryInterpretation:
        """Return how a query was interpreted, by settings and evidence that it was parsed with."""
        builder = parsed.builder
        if builder is None:
            table = self._forms.get((settings.spelling, not _are_in_capitals(query)))
            if table is not None and (variants := table.variants(query)) is not None:
                words = tuple([word.text for word in self.pieces.words(query) if word.number >= 0])
                return QueryInterpretation(words=words, variants=variants)
            builder = self._parse(query, settings, evidence).builder
            assert builder is not None
        return builder.interpretation(query)

    def term_names(self, parsed: ParsedQuery) -> set[str]:
        """Return the terms of a query that the index knows."""
        terms = self.snapshot.vocabulary.terms
        return {terms[number] for number in parsed.terms if number >= 0}


def _numbers(words: Iterable[Word]) -> list[int]:
    return [word.number for word in words if word.number >= 0]


def _are_in_capitals(query: str) -> bool:
    """Return whether several words are all in capitals, which then say nothing about any."""
    return in_capitals(query) and len(query.split(None, 1)) > 1
