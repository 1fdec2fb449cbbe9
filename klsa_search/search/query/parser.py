"""Query parser: from the text of a query to its terms and required words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import characters
from klsa_search.analysis.unicode import nfkc
from klsa_search.collection.model import Document
from klsa_search.core.array_types import DocumentMask, Scores
from klsa_search.core.config import LanguageSettings
from klsa_search.core.parameters import MatchName
from klsa_search.errors import QueryError
from klsa_search.search.costs import CHARACTERS_PER_WORD, QueryCounts
from klsa_search.search.engine.mask import Mask
from klsa_search.search.query.boolean import (
    BooleanQuery,
    Operand,
    parse_boolean,
)
from klsa_search.search.query.builder import END, ParsingRules, QueryBuilder, Variant, Word
from klsa_search.search.query.completion import best_completions, last_word
from klsa_search.search.query.compounds import Compounds, may_vary, words_of
from klsa_search.search.query.evidence import Evidence, Question
from klsa_search.search.query.interpretation import QueryInterpretation, Relaxed
from klsa_search.search.query.matching import (
    Alternatives,
    containing_any,
    containing_phrase,
    containing_words,
    pattern_names,
)
from klsa_search.search.query.operators import (
    MAX_SIGNS,
    SHORT,
    OperatorReader,
    as_words,
    first_signs,
    stray_operators,
)
from klsa_search.search.query.spelling import SpellChecker
from klsa_search.search.query.stop_words import StopWords
from klsa_search.search.query.synonyms import NONE, SynonymExpansion, Synonyms, Terms
from klsa_search.search.query.syntax import Clause
from klsa_search.search.query.term_dictionary import SHORTEST, TermDictionary
from klsa_search.search.query.terms import NO_TERM, UNKNOWN, TermNumbers
from klsa_search.search.snapshot import Snapshot
from klsa_search.storage.columns.columns import Field

EXPANSIONS: Final = 20
"""Most frequent terms of a prefix that documents are ranked by, at most."""

MAX_TERMS: Final = 256
"""Distinct terms that a query is ranked by, at most; the lightest of more are left out."""

PAIRS: Final = 200
"""Most frequent pairs with a single character that documents are ranked by, at most."""

ALONE: Final = 8
"""Factor by which a single character counts more where it stands alone than in a pair."""

MAX_VARIANTS: Final = 32
"""Other writings of words of one query that are searched, at most."""

MAX_CORRECTIONS: Final = 10
"""Words of one query that are corrected, at most."""

LONGEST_COUNTED: Final = 1_000
"""Characters of a query up to which its words are looked up to estimate its cost."""


class ParsedQuery(NamedTuple):
    """A parsed query.

    terms       numbers of the terms to rank by, repetitions included, at most `MAX_TERMS` distinct;
                negative if unknown
    mask        documents that satisfy required and excluded clauses, and contain as many words as
                `match` requires; None for all
    interpretation  None for a query of plain words: see `QueryParser.interpretation`
    synonyms    what synonyms added
    stop_scores  (N,) scores of a query of stop words alone, which has no terms; else None
    """

    terms: Sequence[int]
    mask: Mask | None = None
    interpretation: QueryInterpretation | None = None
    synonyms: SynonymExpansion = NONE
    stop_scores: Scores | None = None


class QueryParser:
    """Parses queries to one snapshot; thread-safe.

    columns       keyword fields that can be searched by name, unless their words are searched
    documents_at  returns documents by doc id
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        columns: Mapping[str, Field],
        documents_at: Callable[[Iterable[int]], list[Document]],
    ) -> None:
        self._snapshot, self._analyzer = snapshot, analyzer
        self.term_dictionary = TermDictionary(snapshot, analyzer, documents_at)
        searched = snapshot.forward.fields.searched
        self._columns = {name: columns[name] for name in columns.keys() - set(searched)}
        self.fields = {*searched, *columns}
        self._numbers = TermNumbers(analyzer, snapshot.vocabulary)
        self._compounds = Compounds(snapshot, analyzer, self._numbers)
        self.spelling = SpellChecker(snapshot, analyzer, self.term_dictionary, self._compounds)
        self._operators = OperatorReader(snapshot, analyzer, self._numbers, self.fields)
        self._stop_words = StopWords(snapshot, analyzer)
        self._synonyms = Synonyms({}, analyzer)
        self._first_terms: frozenset[int] = frozenset()

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Return the synonyms, by word."""
        return self._synonyms.given

    def with_synonyms(self, synonyms: Synonyms) -> QueryParser:
        """Return a parser with these synonyms that shares the caches of this one."""
        other = copy(self)
        other._synonyms = synonyms
        numbers = self._snapshot.vocabulary.numbers
        # A query without any of these is parsed as fast as without synonyms.
        other._first_terms = frozenset(numbers.get(term, UNKNOWN) for term in synonyms.first_terms)
        return other

    def parse(
        self,
        query: str,
        settings: LanguageSettings,
        *,
        correct_alone: bool = False,
        complete_last: bool = False,
        evidence: Evidence | None = None,
    ) -> ParsedQuery:
        """Parse a query; QueryError if it is not a text.

        correct_alone  correct more words if documents contain no word of the query: `SpellChecker`
        complete_last  also search for completions of the last word
        evidence       of documents, by default of the snapshot
        Of a query of more than `MAX_TERMS` distinct terms the heaviest count, see `left_out` of
        the interpretation. Cost: 3 µs for plain words, else that of `matching` and `spelling`.
        """
        if not isinstance(query, str):
            raise QueryError(f"query = {query!r} is not a text; give a string", field="query")
        parsed = self._parse(
            query,
            settings,
            evidence or Evidence(),
            correct_alone=correct_alone,
            complete_last=complete_last,
        )
        return parsed if len(parsed.terms) <= MAX_TERMS else self._heaviest(query, parsed)

    def _heaviest(self, query: str, parsed: ParsedQuery) -> ParsedQuery:
        """Return a long query with its heaviest terms, each as often as it occurs.

        Terms weigh as in all partitions, so all of them leave out the same.
        """
        counts = Counter(number for number in parsed.terms if number >= 0)
        if len(counts) <= MAX_TERMS:
            return parsed
        weights = self._snapshot.query_kernel.weights
        ordered = sorted(counts, key=lambda term: -counts[term] * int(weights[term]))
        kept, names = set(ordered[:MAX_TERMS]), self._snapshot.vocabulary.terms
        said = self.interpretation(query, parsed)
        words = [(word, self._numbers.of_word(word)) for word in said.words]
        left_out = dict.fromkeys(word for word, number in words if number not in kept)
        others = set(ordered[MAX_TERMS:]).difference(number for _, number in words)
        left_out |= dict.fromkeys(names[term] for term in ordered if term in others)
        interpretation = replace(
            said,
            words=tuple(word for word, number in words if number in kept),
            left_out=tuple(left_out),
        )
        terms = [term for term in parsed.terms if term in kept]
        return parsed._replace(terms=terms, interpretation=interpretation)

    def _parse(
        self,
        query: str,
        settings: LanguageSettings,
        evidence: Evidence,
        *,
        correct_alone: bool,
        complete_last: bool,
    ) -> ParsedQuery:
        """Parse a query of any number of terms: see `parse`."""
        synonyms = self._synonyms if settings.synonyms and self._synonyms else None
        relaxed: dict[str, Relaxed] = {}
        boolean = None if settings.operators is False else parse_boolean(query, self.fields)
        why = None if boolean is None else self._operators.boolean_reason(query, boolean)
        if boolean is not None and why is not None and settings.operators is None:
            relaxed, boolean = dict.fromkeys(boolean.operators, why), None
        numbers, clauses, reason = self._operators.tokenize(query, settings.operators)
        last = self._last_word(query, evidence) if complete_last else None
        plain = numbers is not None and boolean is None
        reads_names = plain and settings.operators is None
        meant = self._stop_words.meant(query, SHORT) if reads_names else []
        has_terms = numbers is None or any(number != NO_TERM for number in numbers)
        if numbers is not None and has_terms and not (meant or last or boolean or relaxed):
            corrected = settings.spelling == "off" or self._is_spelled_right(
                query, numbers, evidence
            )
            corrected &= not self._characters(query)
            if corrected and (synonyms is None or self._first_terms.isdisjoint(numbers)):
                if settings.match == "any":
                    return ParsedQuery(numbers)
                known = dict.fromkeys(number for number in numbers if number >= 0)
                alternatives = [((number,),) for number in known]
                mask = self._mask(None, alternatives, settings.match, evidence)
                return ParsedQuery(numbers, mask)
        if settings.operators is not False:
            relaxed |= stray_operators(query, clauses)
        if boolean is None:
            if numbers is not None:
                clauses = meant or [as_words(query)]
            elif reason is not None:
                relaxed |= {clause.written: reason for clause in clauses if clause.has_sign}
                clauses = [as_words(query)]
            elif settings.operators is None:
                clauses = self._operators.with_suffixes(clauses, evidence, relaxed)
            clauses = first_signs(clauses)
        else:
            clauses = []
            relaxed |= dict.fromkeys(boolean.unbalanced, "not_an_operator")
        last = None if boolean is not None or (clauses and clauses[-1].has_sign) else last
        has_case = not (query.isupper() and len(query.split()) > 1)
        rules = ParsingRules(settings.spelling, synonyms, last, evidence, has_case)
        builder = self._read_clauses(clauses, rules, boolean)
        if correct_alone and builder.unknown and builder.corrected.issuperset(builder.terms):
            rules = rules._replace(alone=True)
            builder = self._read_clauses(clauses, rules, boolean)
        while settings.operators is None and (unmatched := self._unmatched(builder)):
            relaxed |= {clause.written: "no_match" for clause in unmatched}
            clauses = [as_words(each.text) if each in unmatched else each for each in clauses]
            builder = self._read_clauses(clauses, rules)
        expansion = NONE if synonyms is None else self._add_synonyms(synonyms, builder)
        if builder.completions:
            expansion = expansion.with_terms(*builder.completions)
        written = None if boolean is None else boolean.written
        stop_words = builder.stop_words
        scores = None
        if not (builder.terms or builder.unknown):
            texts = [query] if boolean is not None else self._ranking_texts(clauses)
            ranking = self._stop_words.of([word for text in texts for word in self.words(text)])
            if ranking:
                stop_words = [word.text for word in ranking]
                scores = self._stop_words.scores(query, ranking, evidence)
        interpretation = replace(
            builder.interpretation(query),
            stop_words=tuple(dict.fromkeys(stop_words)),
            relaxed=relaxed,
            boolean=written,
        )
        words = builder.alternatives.values()
        mask = self._mask(builder.allowed, words, settings.match, evidence)
        return ParsedQuery(builder.terms, mask, interpretation, expansion, scores)

    def _ranking_texts(self, clauses: Sequence[Clause]) -> list[str]:
        """Return the texts of a query that it neither excludes nor filters by."""
        return [
            each.text for each in clauses if each.sign != "-" and each.field not in self._columns
        ]

    def _read_boolean(self, boolean: BooleanQuery, builder: QueryBuilder) -> None:
        """Read a Boolean query: rank by what it does not exclude, restrict to what it matches."""
        masks: list[DocumentMask | None] = []  # None stands for words without a term
        for item in boolean.postfix:
            if isinstance(item, Operand):
                masks.append(self._matching(item, builder))
            elif item == "NOT":
                mask = masks.pop()
                masks.append(None if mask is None else ~mask)
            else:
                right, left = masks.pop(), masks.pop()
                if left is None or right is None:
                    masks.append(left if right is None else right)
                else:
                    masks.append(left & right if item == "AND" else left | right)
        (builder.allowed,) = masks
        # What ranks neither restricts further nor has synonyms.
        builder.alternatives, builder.plain_words, builder.plain_phrases = {}, [], []

    def _matching(self, operand: Operand, builder: QueryBuilder) -> DocumentMask | None:
        """Read an operand; return which documents match it, or None if it has no term."""
        clause, evidence = operand.clause, builder.rules.evidence
        builder.allowed, builder.alternatives, unknown = None, {}, len(builder.unknown)
        if operand.negated:
            self._read_clause(clause._replace(sign="-"), builder)
            return None if builder.allowed is None else ~builder.allowed
        self._read_clause(clause._replace(sign=""), builder)
        if len(builder.unknown) > unknown:
            return np.zeros(len(self._snapshot), np.bool_)
        words, allowed = builder.alternatives.values(), builder.allowed
        if not words:
            return allowed
        containing = containing_words(self._snapshot, words, "all", evidence)
        return containing if allowed is None else allowed & containing

    def _mask(
        self,
        allowed: DocumentMask | None,
        words: Collection[Alternatives],
        match: MatchName,
        evidence: Evidence,
    ) -> Mask | None:
        """Return the allowed documents that contain as many of these words as required."""
        if match != "any" and words:
            containing = containing_words(self._snapshot, words, match, evidence)
            allowed = containing if allowed is None else allowed & containing
        return None if allowed is None else Mask(allowed)

    def _last_word(self, query: str, evidence: Evidence) -> Word | None:
        """Return the last word of a query if it has completions."""
        words = self.words(last_word(query))
        if len(words) != 1 or words[0].number == NO_TERM:
            return None
        (word,) = words
        return word if self.term_dictionary.completions(word.text, evidence) else None

    def _read_clauses(
        self, clauses: Sequence[Clause], rules: ParsingRules, boolean: BooleanQuery | None = None
    ) -> QueryBuilder:
        """Read all clauses of a query, or a Boolean query."""
        builder = QueryBuilder(rules)
        for clause in clauses:
            self._read_clause(clause, builder)
        if boolean is not None:
            self._read_boolean(boolean, builder)
        if rules.last is not None:
            terms = self.term_dictionary.completions(rules.last.text, rules.evidence)
            self._complete(rules.last, terms, f"{rules.last.text}*", builder)
        for word, terms in builder.characters.items():
            self._complete(word, terms, word.text, builder)
        return builder

    def _complete(
        self, word: Word, terms: Sequence[int], shown: str, builder: QueryBuilder
    ) -> None:
        """Add the completions of a word, or the pairs with a single character."""
        evidence = builder.rules.evidence
        parts = {*builder.characters, word}
        keys = {one.number if one.number >= 0 else one.text for one in parts}
        others = [words for other, words in builder.alternatives.items() if other not in keys]
        key = word.number if word.number >= 0 else word.text
        for term in terms:
            builder.count(key, (term,))
        if word in builder.characters and not others:
            best = list(terms[:PAIRS])
            builder.terms += [word.number] * (ALONE - 1) * (word.number >= 0)
        else:
            best = best_completions(self._snapshot, word, terms, others, evidence)
        if not best:
            return
        names = self._snapshot.vocabulary.terms
        builder.prefixes[shown] = tuple(names[term] for term in best)
        added = [term for term in best if term not in builder.terms]
        builder.terms += added
        own = word.number if word.number >= 0 else best[0]
        if alternatives := [names[term] for term in added if term != own]:
            builder.completions = names[own], alternatives

    def _unmatched(self, builder: QueryBuilder) -> set[Clause]:
        """Return plain phrases that no live document contains, or all if no document is left."""
        live, evidence = self._snapshot.live_docs(), builder.rules.evidence

        def documents(question: Question, matching: DocumentMask) -> int:
            return evidence.of(question, lambda: int((matching & live).sum()))

        missing = {
            clause
            for clause, restriction, matching in builder.plain_phrases
            if not documents(("clause", *restriction), matching)
        }
        if missing or builder.allowed is None:
            return missing
        if documents(("clauses", *builder.restrictions), builder.allowed):
            return missing
        return {clause for clause, _, _ in builder.plain_phrases}

    def known_terms_of(self, query: str) -> Sequence[int] | None:
        """Return the term numbers of a query of known plain words, or None for other queries.

        Parsing such a query takes at most 20 µs. Cost: 1 µs.
        """
        if parse_boolean(query, self.fields) is not None:
            return None
        numbers, _, _ = self._operators.tokenize(query, None)
        if numbers is None or UNKNOWN in numbers:
            return None
        if len(numbers) and max(numbers) == NO_TERM:  # stop words only
            return None
        return None if self._stop_words.meant(query, SHORT) else numbers

    def counts(self, query: str, settings: LanguageSettings) -> QueryCounts:
        """Return counts of what makes a query expensive. Cost: 3 µs without operators, else 50.

        settings  how the query is parsed: operators read as words and disabled spelling cost
                  nothing
        Long queries, and those for a custom tokenizer, are counted by their length.
        """
        if not query.strip():  # with a filter, it matches every document
            return QueryCounts(matches=len(self._snapshot))
        if len(query) > LONGEST_COUNTED or self._analyzer.tokenizes:
            return QueryCounts(len(query) / CHARACTERS_PER_WORD, matches=len(self._snapshot))
        operators = phrase_documents = 0
        has_prefix = False
        if settings.operators is not False and (boolean := parse_boolean(query, self.fields)):
            clauses = [operand.clause for operand in boolean.operands[:MAX_SIGNS]]
            return QueryCounts(
                len(query) / CHARACTERS_PER_WORD,
                len(clauses),
                phrase_documents=self._documents_of_phrases(clauses),
                matches=len(self._snapshot),
            )
        numbers, clauses, reason = self._operators.tokenize(query, settings.operators)
        if numbers is None:
            if reason is None:
                signed = [clause for clause in clauses if clause.has_sign][:MAX_SIGNS]
                operators, phrase_documents = len(signed), self._documents_of_phrases(signed)
                has_prefix = any(clause.kind == "prefix" for clause in signed)
                query = " ".join(clause.text for clause in clauses if clause.kind != "prefix")
            numbers = self._numbers.of(query)
        misspelt = 0 if settings.spelling == "off" else min(MAX_CORRECTIONS, numbers.count(UNKNOWN))
        frequencies = self._snapshot.query_kernel.postings.frequencies
        matches = sum(int(frequencies[number]) for number in {*numbers} if number >= 0)
        if not numbers or max(numbers) == NO_TERM:  # stop words are searched in all documents
            matches = phrase_documents = len(self._snapshot)
        if has_prefix or self._characters(query):
            matches = len(self._snapshot)
        return QueryCounts(
            len(numbers),
            operators,
            misspelt,
            phrase_documents=phrase_documents,
            matches=min(matches, len(self._snapshot)),
        )

    def _documents_of_phrases(self, clauses: Iterable[Clause]) -> int:
        """Return the number of documents that contain the rarest word of each phrase, in total."""
        frequencies, count = self._snapshot.query_kernel.postings.frequencies, 0
        for clause in clauses:
            numbers = self._numbers.of(clause.text) if clause.kind == "phrase" else ()
            terms = [number for number in numbers if number >= 0]
            if len(numbers) > 1 and terms and UNKNOWN not in numbers:
                count += int(frequencies[terms].min())
        return count

    def _is_spelled_right(self, query: str, numbers: Sequence[int], evidence: Evidence) -> bool:
        """Return whether spelling correction changes nothing in a query of plain words."""
        if UNKNOWN in numbers:
            return False
        if may_vary(query) and self._compounds.joined(query, evidence):
            return False
        words = list(filter(self._compounds.may_divide, dict.fromkeys(self._numbers.words(query))))
        return len(words) < MAX_CORRECTIONS and not any(
            self._compounds.parts(word, evidence)
            for word in words
            if self._numbers.of_word(word) >= 0
        )

    def interpretation(self, query: str, parsed: ParsedQuery) -> QueryInterpretation:
        """Return how a query was interpreted."""
        if parsed.interpretation is not None:
            return parsed.interpretation
        words = list(zip(self._numbers.words(query), parsed.terms, strict=True))
        return QueryInterpretation(
            words=tuple(word for word, number in words if number >= 0),
            unknown=tuple(word for word, number in words if number == UNKNOWN),
        )

    def known_terms(self, parsed: ParsedQuery) -> set[str]:
        """Return the terms of a query that the index knows."""
        terms = self._snapshot.vocabulary.terms
        return {terms[number] for number in parsed.terms if number >= 0}

    def words(self, text: str) -> list[Word]:
        """Return the words of a text in order, with their term numbers."""
        return self._operators.words(text)

    def _read_clause(self, clause: Clause, builder: QueryBuilder) -> None:
        """Add the terms of a clause to the query, and restrict the documents."""
        if clause.has_sign:
            builder.plain_words.append(END)
        if clause.field in self._columns:
            builder.restrict(clause, (), self._columns[clause.field].equal(clause.text))
            return
        words, spelling = self.words(clause.text), builder.rules.spelling
        if clause.kind == "prefix" and len(words) == 1 and len(clause.text) >= SHORTEST:
            terms = self.term_dictionary.beginning_with(clause.text, builder.rules.evidence)
            self._read_terms(clause, terms, EXPANSIONS, builder)
            return
        alone = self._characters(clause.text)
        if clause.has_sign and len(words) == 1 and alone:
            self._read_terms(clause, alone[words[0].text], PAIRS, builder)
            return
        joined = (
            [] if spelling == "off" else self._compounds.joined(clause.text, builder.rules.evidence)
        )
        if clause.sign != "-" and spelling != "off":
            covered = {word for variant in joined for word in words_of(variant.written)}
            words = self._correct(words, builder, covered)
        variants = joined if spelling == "off" else [*joined, *self._divided(words, builder)]
        variants = variants[: MAX_VARIANTS - len(builder.variants)]
        builder.characters |= {word: alone[word.text] for word in words if word.text in alone}
        if clause.sign != "-":
            covered = {word for variant in variants for word in words_of(variant.written)}
            builder.rank([word for word in words if word.number >= 0 or word.text not in covered])
            for variant in variants:
                builder.vary(variant)
        if not clause.has_sign:
            builder.plain_words += words
        if clause.sign or clause.field or clause.kind == "phrase":
            numbers = _trim(self._stop_words.numbers(words))
            if numbers:
                matching = self._stop_words.containing(clause.text, numbers, clause.field)
                stops = [word.text for word in words if word.number == NO_TERM]
                builder.stop_words += stops if clause.sign != "-" else []
                for variant in variants:
                    if variant.written == clause.text:
                        terms = [word.number for word in variant.words]
                        matching |= containing_phrase(self._snapshot, terms, clause.field)
                builder.restrict(clause, pattern_names(self._snapshot, numbers), matching)

    def _divided(self, words: Sequence[Word], builder: QueryBuilder) -> Iterator[Variant]:
        """Yield words that documents also write in parts."""
        for word in dict.fromkeys(words):
            if word.number >= 0 and self._compounds.may_divide(word.text):
                if len(builder.checked) >= MAX_CORRECTIONS:
                    return
                builder.checked.add(word.text)
                if parts := self._compounds.parts(word.text, builder.rules.evidence):
                    yield Variant(word.text, (word.number,), parts)

    def _correct(
        self, words: Sequence[Word], builder: QueryBuilder, joined: Collection[str]
    ) -> list[Word]:
        """Replace words that no document contains by their corrections, or only record these.

        joined  words that documents write joined to their neighbours, which are correct
        """
        corrected: list[Word] = []
        spelling, synonyms, last, evidence, has_case, alone = builder.rules
        for word in words:
            matching = None
            meant = synonyms is not None and self._term(word) in synonyms
            if (
                word.number == UNKNOWN
                and not meant
                and word != last
                and word.text not in joined
                and (word.text in builder.checked or len(builder.checked) < MAX_CORRECTIONS)
            ):
                builder.checked.add(word.text)
                matching = self.spelling.correction(
                    word.text,
                    evidence,
                    abbreviation=has_case and any(map(str.isupper, word.text[1:])),
                    alone=alone,
                )
            if matching is not None:
                builder.corrections[word.text] = matching.words
            if matching is None or spelling == "suggest" or not matching.sure:
                corrected.append(word)
            else:
                corrected += map(Word, matching.words.split(), matching.terms)
                builder.corrected.update(matching.terms)
        return corrected

    def _term(self, word: Word) -> str:
        """Return the term of a word, known or not; "" if it has none."""
        if word.number >= 0:
            return self._snapshot.vocabulary.terms[word.number]
        return "".join(self._analyzer.terms(word.text)[:1]) if word.number == UNKNOWN else ""

    def _add_synonyms(self, synonyms: Synonyms, builder: QueryBuilder) -> SynonymExpansion:
        """Add the terms of synonyms of plain words that the query does not contain, once each.

        A synonym of several words counts only if documents contain all of them.
        """
        numbers = self._snapshot.vocabulary.numbers
        parsed, added = set(builder.terms), set()
        of: dict[str, dict[Terms, None]] = {}
        plain_words = [
            (self._term(word), word) for word in builder.plain_words if word.number != NO_TERM
        ]
        for first, after, others in synonyms.find([term for term, _ in plain_words]):
            words = " ".join(word.text for _, word in plain_words[first:after])
            if words in builder.synonyms_used:
                continue
            known = [other for other in others if all(term in numbers for term in other.terms)]
            if not known:
                continue
            builder.synonyms_used[words] = tuple(other.text for other in known)
            for term, word in plain_words[first:after]:
                key = term if term in numbers else word.text
                of.setdefault(key, {}).update(dict.fromkeys(other.terms for other in known))
                for other in known:
                    builder.count(
                        word.number if word.number >= 0 else word.text,
                        tuple(numbers[term] for term in other.terms),
                    )
            for term in (term for other in known for term in other.terms):
                if numbers[term] not in parsed:
                    parsed.add(numbers[term])
                    builder.terms.append(numbers[term])
                    added.add(term)
        return SynonymExpansion(
            frozenset(added), {key: tuple(others) for key, others in of.items()}
        )

    def _characters(self, text: str) -> dict[str, list[int]]:
        """Return the terms of single characters that documents have within pairs.

        Only of those that stand alone, not of 月 in *3月*: with pairs of all, queries lose.
        """
        if text.isascii() or self._analyzer.tokenizes:
            return {}
        return {
            word: terms
            for word in dict.fromkeys(map(nfkc, text.split()))
            if len(characters(word)) == 1 and (terms := self.term_dictionary.containing(word))
        }

    def _expand(self, written: str, terms: list[int], limit: int, builder: QueryBuilder) -> None:
        """Rank by the most frequent of the terms that match a part of the query."""
        names = self._snapshot.vocabulary.terms
        builder.terms += terms[:limit]
        builder.prefixes[written] = tuple(names[term] for term in terms[:limit])
        for term in terms:
            builder.count(written, (term,))

    def _read_terms(
        self, clause: Clause, terms: list[int], limit: int, builder: QueryBuilder
    ) -> None:
        """Read a prefix or a single character, which match these terms."""
        names = tuple(self._snapshot.vocabulary.terms[term] for term in terms[:limit])
        if clause.sign != "-":
            self._expand(clause.shown, terms, limit, builder)
        if clause.field:
            allowed = np.zeros(len(self._snapshot), np.bool_)
            for term in terms:
                allowed |= containing_phrase(self._snapshot, [term], clause.field)
            builder.restrict(clause, names[:1], allowed)
        elif clause.sign:
            builder.restrict(clause, names[:1], containing_any(self._snapshot, terms))


def _trim(numbers: list[int]) -> list[int]:
    """Return the words of a phrase from its first term to its last."""
    terms = [place for place, number in enumerate(numbers) if number != NO_TERM]
    return numbers[terms[0] : terms[-1] + 1] if terms else []
