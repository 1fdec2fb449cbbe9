"""Query parser: from the text of a query to its terms and required words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.config import LanguageSettings, SpellingName
from klsa_search.errors import QueryError
from klsa_search.search.costs import CHARACTERS_PER_WORD, QueryCounts
from klsa_search.search.query.matching import PLACES, holding, with_phrase
from klsa_search.search.query.spelling import SpellChecker
from klsa_search.search.query.synonyms import NONE, SynonymExpansion, Synonyms, Terms
from klsa_search.search.query.syntax import Clause, is_plain, parse
from klsa_search.search.query.term_dictionary import SHORTEST, TermDictionary
from klsa_search.search.query.terms import NO_TERM, UNKNOWN, TermNumbers
from klsa_search.search.snapshot import Snapshot
from klsa_search.storage.columns.columns import Field

Relaxed = Literal["plain_text", "nothing_to_exclude_from", "no_match"]
"""Why an operator was read as plain words: the query is mostly text, it only excludes, or no
document contains the phrase.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryInterpretation:
    """How the text of a query was interpreted; each part as it is written in the query.

    words     words that documents are ranked by, including those of phrases and required ones
    unknown   words that no document contains
    phrases   phrases, whose words must be adjacent
    required  words and phrases after +
    excluded  words and phrases after -
    fields    words and phrases restricted to one field
    relaxed   operators that were read as plain words, and why; empty with `operators=True`
    prefixes  prefixes, and the terms that match them, most frequent first
    joined    hyphenated words, and how documents write them without hyphen
    synonyms  words or sequences of words, and the synonyms that were searched as well
    corrections  words that no document contains, and the corrections that were searched instead
              or, for words still in `unknown`, only suggested
    did_you_mean  the query with the corrections applied, None if there are none

    >>> results = index.search('"bald tyres" coolants pum* -red')
    >>> said: klsa.QueryInterpretation = results.interpretation
    >>> said.words, said.unknown, said.phrases, said.excluded, said.prefixes
    (('bald', 'tyres', 'coolants'), (), ('"bald tyres"',), ('red',), {'pum*': ('pump',)})
    >>> index.search('"coolant leaks in the rain"').interpretation.relaxed
    {'"coolant leaks in the rain"': 'no_match'}
    >>> index.search("coolnat leeks").interpretation.did_you_mean
    'coolant leaks'
    """

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    relaxed: Mapping[str, Relaxed] = field(default_factory=dict)
    prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joined: Mapping[str, str] = field(default_factory=dict)
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    corrections: Mapping[str, str] = field(default_factory=dict)
    did_you_mean: str | None = None


SHORT: Final = 3
"""Words of a query in which an operator always counts. Judged queries, with operators added to
them, lose where it is more: `python -m studies.effectiveness operators`.
"""

EXPANSIONS: Final = 20
"""Terms of a prefix that documents are ranked by, the most frequent."""

SIGNS: Final = 64
"""Clauses with signs in one query; further ones are words, so that none takes minutes."""

PUT_RIGHT: Final = 10
"""Words of one query that are put right at most, the first."""

LONGEST_COUNTED: Final = 1_000
"""Characters of a query whose words are looked up to estimate its cost."""

_HYPHENED: Final = re.compile(r"[^\W_]++(?:-[^\W_]++)+")


class ParsedQuery(NamedTuple):
    """A query as an index understands it.

    terms       numbers of the terms to rank by, repeated as they are asked for; below 0 for none
    allowed     (N,) which documents have what must be there, and nothing of what must not; None
                for all
    interpretation  None if all of it is plain words, which `Language.interpretation` reports
    stand_ins   what synonyms brought in
    """

    terms: Sequence[int]
    allowed: npt.NDArray[np.bool_] | None = None
    interpretation: QueryInterpretation | None = None
    stand_ins: SynonymExpansion = NONE


class QueryParser:
    """Reads queries to one snapshot; safe to share between threads.

    columns       keyword fields that can be asked for by name
    documents_at  gives the documents at some positions
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        columns: Mapping[str, Field],
        documents_at: Callable[[Iterable[int]], list[Document]],
    ) -> None:
        self._snapshot, self._analyzer = snapshot, analyzer
        self.lexicon = TermDictionary(snapshot, analyzer, documents_at)
        self._columns = {name: columns[name] for name in columns.keys() - PLACES.keys()}
        self._fields = {*PLACES, *columns} - {""}
        self.spelling = SpellChecker(snapshot, analyzer, self.lexicon)
        self._numbers = TermNumbers(analyzer, snapshot.vocabulary)
        self._synonyms = Synonyms({}, analyzer)
        self._beginnings: frozenset[int] = frozenset()

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """What stands for other words."""
        return self._synonyms.given

    def with_synonyms(self, synonyms: Synonyms) -> QueryParser:
        """The same, but with these synonyms; it shares what both remember."""
        other = copy(self)
        other._synonyms = synonyms
        numbers = self._snapshot.vocabulary.numbers
        # Of all that have synonyms, so that a query without such a word is read as fast as ever.
        other._beginnings = frozenset(numbers.get(term, UNKNOWN) for term in synonyms.beginnings)
        return other

    def read(self, query: str, settings: LanguageSettings) -> ParsedQuery:
        """Understand a query; QueryError for what is no text.

        Cost: 3 µs where all of it is plain words, else what `matching` and `spelling` take.
        """
        if not isinstance(query, str):
            raise QueryError(f"query = {query!r} is not a text; give a string", field="query")
        synonyms = self._synonyms if settings.synonyms and self._synonyms else None
        numbers, clauses, reason = self._parsed(query, settings.operators)
        if numbers is not None:
            right = settings.spelling == "off" or self._is_right(query, numbers)
            if right and (synonyms is None or self._beginnings.isdisjoint(numbers)):
                return ParsedQuery(numbers)
            clauses = [_words_of(query)]
        relaxed: dict[str, Relaxed] = {}
        if reason is not None:
            relaxed = {clause.written: reason for clause in clauses if clause.has_sign}
            clauses = [_words_of(query)]
        clauses = _first_signs(clauses)
        reading = self._taken(clauses, settings.spelling, synonyms)
        while settings.operators is None and (unmatched := self._unmatched(reading)):
            relaxed |= {clause.written: "no_match" for clause in unmatched}
            clauses = [_words_of(each.text) if each in unmatched else each for each in clauses]
            reading = self._taken(clauses, settings.spelling, synonyms)
        stand_ins = NONE if synonyms is None else self._take_synonyms(synonyms, reading)
        interpretation = replace(reading.interpretation(query), relaxed=relaxed)
        return ParsedQuery(reading.terms, reading.allowed, interpretation, stand_ins)

    def _parsed(
        self, query: str, operators: bool | None
    ) -> tuple[Sequence[int] | None, list[Clause], Relaxed | None]:
        """Parse a query: the term numbers of plain words, or clauses, and why these are words."""
        numbers = self._numbers.of_bare(query)
        if numbers is None and (operators is False or is_plain(query)):
            numbers = self._numbers.of(query)
        if numbers is not None:
            return numbers, [], None
        clauses = parse(query, self._fields)
        return None, clauses, self._reason(query, clauses) if operators is None else None

    def _reason(self, query: str, clauses: Sequence[Clause]) -> Relaxed | None:
        """Say why a query is text, whose operators are plain words; None where they count.

        They count in short queries, and in those that have more operators than plain words; not
        in text of several lines, nor where there is nothing to exclude from.
        """
        signed = [clause for clause in clauses if clause.has_sign]
        if not signed:
            return None
        if all(clause.sign == "-" for clause in clauses):
            return "nothing_to_exclude_from"
        plain = sum(map(self._size, (each for each in clauses if not each.has_sign)))
        short = plain + sum(map(self._size, signed)) <= SHORT
        one_line = len(query.strip().splitlines()) == 1
        return None if one_line and (short or len(signed) > plain) else "plain_text"

    def _size(self, clause: Clause) -> int:
        """Count the words of a clause, one with hyphens as one."""
        return len(self.words(clause.text.replace("-", "")))

    def _taken(
        self, clauses: Sequence[Clause], spelling: SpellingName, synonyms: Synonyms | None
    ) -> _Reading:
        """Read all clauses of a query."""
        reading = _Reading(synonyms)
        for clause in clauses:
            self._take(clause, spelling, reading)
        return reading

    def _unmatched(self, reading: _Reading) -> set[Clause]:
        """Phrases without a sign that no document contains, or all where no document is left."""
        live = self._snapshot.counting()
        missing = {clause for clause, found in reading.bare if not (found & live).any()}
        if missing or reading.allowed is None or (reading.allowed & live).any():
            return missing
        return {clause for clause, _ in reading.bare}

    def plain(self, query: str) -> Sequence[int] | None:
        """Numbers of the terms of a query that is plain words that documents hold; None of others.

        Such a query takes some 20 µs to read at most. Cost: 1 µs.
        """
        numbers, _, _ = self._parsed(query, None)
        return None if numbers is None or UNKNOWN in numbers else numbers

    def counts(self, query: str, settings: LanguageSettings) -> QueryCounts:
        """Count what makes a query expensive. Cost: 3 µs where it has no operators, else 50.

        settings  how the query is read: operators that are plain words cost nothing, nor does
                  spelling that is off
        A long query, and one for a tokenizer of the user's, is counted by its length alone.
        """
        if len(query) > LONGEST_COUNTED or self._analyzer.tokenizes:
            return QueryCounts(len(query) / CHARACTERS_PER_WORD)
        operators = phrase_documents = 0
        numbers, clauses, reason = self._parsed(query, settings.operators)
        if numbers is None:
            if reason is None:
                signed = [clause for clause in clauses if clause.has_sign][:SIGNS]
                operators, phrase_documents = len(signed), self._documents_of_phrases(signed)
                query = " ".join(clause.text for clause in clauses if clause.kind != "prefix")
            numbers = self._numbers.of(query)
        misspelt = 0 if settings.spelling == "off" else min(PUT_RIGHT, numbers.count(UNKNOWN))
        return QueryCounts(len(numbers), operators, misspelt, phrase_documents=phrase_documents)

    def _documents_of_phrases(self, clauses: Iterable[Clause]) -> int:
        """Count the documents that contain the rarest word of each phrase."""
        frequencies, count = self._snapshot.bm25.frequencies, 0
        for clause in clauses:
            numbers = self._numbers.of(clause.text) if clause.kind == "phrase" else ()
            terms = [number for number in numbers if number >= 0]
            if len(numbers) > 1 and terms and UNKNOWN not in numbers:
                count += int(frequencies[terms].min())
        return count

    def _is_right(self, query: str, numbers: Sequence[int]) -> bool:
        """Whether spelling adds nothing to a query of plain words."""
        return UNKNOWN not in numbers and not ("-" in query and self._joined(query))

    def interpretation(self, query: str, asked: ParsedQuery) -> QueryInterpretation:
        """Tell what was understood of a query."""
        if asked.interpretation is not None:
            return asked.interpretation
        words = list(zip(self._numbers.words(query), asked.terms, strict=True))
        return QueryInterpretation(
            words=tuple(word for word, number in words if number >= 0),
            unknown=tuple(word for word, number in words if number == UNKNOWN),
        )

    def known_terms(self, asked: ParsedQuery) -> set[str]:
        """Return the terms of a query that the index knows, such as for its snippets."""
        terms = self._snapshot.vocabulary.terms
        return {terms[number] for number in asked.terms if number >= 0}

    def words(self, text: str) -> list[Word]:
        """Return the words of a text in order, with their term numbers."""
        words = self._analyzer.each(text, str, str)
        return [Word(word, self._numbers.of_word(word)) for word in words]

    def _take(self, clause: Clause, spelling: SpellingName, reading: _Reading) -> None:
        """Rank by a clause, and leave out what it does not allow."""
        if clause.has_sign:
            reading.row.append(_END)
        if clause.field in self._columns:
            reading.limit(clause, self._columns[clause.field].equal(clause.text))
            return
        words = self.words(clause.text)
        if clause.kind == "prefix" and len(words) == 1 and len(clause.text) >= SHORTEST:
            self._take_prefix(clause, reading)
            return
        if clause.sign != "-" and spelling != "off":
            words = self._put_right(words, spelling, reading)
        joined = [] if spelling == "off" else self._joined(clause.text)
        if clause.sign != "-":
            reading.rank(words)
            reading.terms += [word.number for _, word in joined]
            reading.joined.update((whole, word.text) for whole, word in joined)
        if not clause.has_sign:
            reading.row += words
        if clause.sign or clause.field or clause.kind == "phrase":
            numbers = _trimmed([word.number for word in words])
            if numbers:
                found = with_phrase(self._snapshot, numbers, clause.field)
                for whole, word in joined:
                    if whole == clause.text:
                        found |= with_phrase(self._snapshot, [word.number], clause.field)
                reading.limit(clause, found)

    def _put_right(
        self, words: Sequence[Word], spelling: SpellingName, reading: _Reading
    ) -> list[Word]:
        """Put words right that no document holds, or only note what would be right."""
        right: list[Word] = []
        for word in words:
            found = None
            meant = reading.synonyms is not None and self._term(word) in reading.synonyms
            if (
                word.number == UNKNOWN
                and not meant
                and (word.text in reading.looked_up or len(reading.looked_up) < PUT_RIGHT)
            ):
                reading.looked_up.add(word.text)
                found = self.spelling.correction(word.text)
            if found is not None:
                reading.corrections[word.text] = found.words
            if found is None or spelling == "suggest" or not found.sure:
                right.append(word)
            else:
                right += map(Word, found.words.split(), found.terms)
        return right

    def _term(self, word: Word) -> str:
        """The term of a word, "" for none, held by a document or not."""
        if word.number >= 0:
            return self._snapshot.vocabulary.terms[word.number]
        return "".join(self._analyzer.terms(word.text)[:1]) if word.number == UNKNOWN else ""

    def _take_synonyms(self, synonyms: Synonyms, reading: _Reading) -> SynonymExpansion:
        """Rank by synonyms of plain words, too: by each of their terms that is not asked for, once.

        One of several words counts only where documents hold all of them.
        """
        numbers = self._snapshot.vocabulary.numbers
        asked, added = set(reading.terms), set()
        of: dict[str, dict[Terms, None]] = {}
        row = [(self._term(word), word.text) for word in reading.row if word.number != NO_TERM]
        for first, after, others in synonyms.found([term for term, _ in row]):
            words = " ".join(text for _, text in row[first:after])
            if words in reading.stood_for:
                continue
            known = [other for other in others if all(term in numbers for term in other.terms)]
            if not known:
                continue
            reading.stood_for[words] = tuple(other.text for other in known)
            for term, text in row[first:after]:
                key = term if term in numbers else text
                of.setdefault(key, {}).update(dict.fromkeys(other.terms for other in known))
            for term in (term for other in known for term in other.terms):
                if numbers[term] not in asked:
                    asked.add(numbers[term])
                    reading.terms.append(numbers[term])
                    added.add(term)
        return SynonymExpansion(
            frozenset(added), {key: tuple(others) for key, others in of.items()}
        )

    def _joined(self, text: str) -> list[tuple[str, Word]]:
        """Words with hyphens inside that documents write without: wi-fi, wifi."""
        joined = []
        for whole in _HYPHENED.findall(text) if "-" in text else ():
            word = whole.replace("-", "")
            number = self._numbers.of_word(word)
            if number >= 0:
                joined.append((whole, Word(word, number)))
        return joined

    def _take_prefix(self, clause: Clause, reading: _Reading) -> None:
        terms = self.lexicon.beginning_with(clause.text)
        if clause.sign != "-":
            best = terms[:EXPANSIONS]
            reading.terms += best
            names = self._snapshot.vocabulary.terms
            reading.prefixes[clause.shown] = tuple(names[term] for term in best)
        if clause.field:
            allowed = np.zeros(len(self._snapshot), np.bool_)
            for term in terms:
                allowed |= with_phrase(self._snapshot, [term], clause.field)
            reading.limit(clause, allowed)
        elif clause.sign:
            reading.limit(clause, holding(self._snapshot, terms))


class Word(NamedTuple):
    """A word as it is written, and its term number; UNKNOWN or NO_TERM without one."""

    text: str
    number: int


_END: Final = Word("", UNKNOWN)
"""Where a row of plain words ends."""


@dataclass
class _Reading:
    """What was read of a query so far.

    synonyms  that count in it
    row       its plain words, with their neighbours
    bare      phrases without a sign or field, and which documents contain them
    """

    synonyms: Synonyms | None
    row: list[Word] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    allowed: npt.NDArray[np.bool_] | None = None
    words: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    prefixes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    joined: dict[str, str] = field(default_factory=dict)
    corrections: dict[str, str] = field(default_factory=dict)
    stood_for: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bare: list[tuple[Clause, npt.NDArray[np.bool_]]] = field(default_factory=list)
    looked_up: set[str] = field(default_factory=set)

    def rank(self, words: Sequence[Word]) -> None:
        """Rank by words, as far as they are known."""
        self.terms += [word.number for word in words if word.number >= 0]
        self.words += [word.text for word in words if word.number >= 0]
        self.unknown += [word.text for word in words if word.number == UNKNOWN]

    def limit(self, clause: Clause, found: npt.NDArray[np.bool_]) -> None:
        """Answer what was found, or anything else, as the clause says."""
        if clause.sign == "-":
            self.excluded.append(clause.shown)
            found = ~found
        elif clause.sign == "+":
            self.required.append(clause.shown)
        if clause.kind == "phrase" and not clause.field and not clause.sign:
            self.phrases.append(clause.shown)
            self.bare.append((clause, found))
        if clause.field and not clause.sign:
            self.fields.append(clause.shown)
        self.allowed = found if self.allowed is None else self.allowed & found

    def interpretation(self, query: str) -> QueryInterpretation:
        """Tell it of a query."""
        return QueryInterpretation(
            words=tuple(self.words),
            unknown=tuple(self.unknown),
            phrases=tuple(self.phrases),
            required=tuple(self.required),
            excluded=tuple(self.excluded),
            fields=tuple(self.fields),
            prefixes=self.prefixes,
            joined=self.joined,
            synonyms=self.stood_for,
            corrections=self.corrections,
            did_you_mean=_with_words(query, self.corrections) if self.corrections else None,
        )


def _words_of(text: str) -> Clause:
    """Take a text as plain words."""
    return Clause("", "", "word", text, text)


def _first_signs(clauses: Sequence[Clause]) -> list[Clause]:
    """Take the first `SIGNS` clauses with signs as they are, and further ones as words."""
    signs = accumulate(clause.has_sign for clause in clauses)
    return [
        clause if count <= SIGNS else _words_of(clause.text)
        for clause, count in zip(clauses, signs, strict=True)
    ]


def _with_words(query: str, words: Mapping[str, str]) -> str:
    """Put other words into a query in the places of some."""
    either = "|".join(map(re.escape, words))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", lambda found: words[found[0]], query)


def _trimmed(numbers: list[int]) -> list[int]:
    """Words of a phrase from its first term to its last."""
    terms = [place for place, number in enumerate(numbers) if number != NO_TERM]
    return numbers[terms[0] : terms[-1] + 1] if terms else []
