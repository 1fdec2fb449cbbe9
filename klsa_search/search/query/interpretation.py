"""How a query is interpreted: collected while it is parsed, and as answers report it."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pydantic import ConfigDict

from klsa_search.core.array_types import DocumentMask
from klsa_search.core.lazy import LazyFields
from klsa_search.core.parameters import SpellingName
from klsa_search.core.wording import counted
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.query.syntax import Clause

Relaxed = Literal[
    "plain_text",
    "nothing_to_exclude_from",
    "no_match",
    "capitals",
    "suffix",
    "number",
    "not_an_operator",
    "short_prefix",
    "lower_case",
    "other_language",
]
"""Why an operator was read as plain words: the query is mostly text, it only excludes, no document
contains the phrase, the whole query is in capitals, a hyphen belongs to a suffix or an option, the
query begins with a negative number, the sign or word has no meaning where it is, a prefix has one
character, *not* is in lower case, or it is an operator in another language than English.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryInterpretation(LazyFields):
    """How the text of a query was interpreted; each part as it is written in the query.

    words     words that documents are ranked by, including those of phrases and required ones
    unknown   words that no document contains
    stop_words  stop words that documents have to contain: those of phrases, in capitals among other
              words, or of a query of nothing else; others do not count
    left_out  words of a query of more than 256 distinct ones that do not count: the lightest
    phrases   phrases, whose words must be adjacent
    required  words and phrases after +
    excluded  words and phrases after - and NOT that no hit contains: under OR, some hits may
    fields    words and phrases restricted to one field
    boolean   a query with AND, OR or NOT, with the operators that it was read with; else None
    relaxed   operators that were read as plain words, and why: plain_text, the query has more plain
              words than operators, or several lines; nothing_to_exclude_from; no_match, no document
              contains the phrase; capitals, AND, OR or NOT in a query in capitals; suffix, a hyphen
              before the end of a Finnish compound or an option of one letter; number, that of a
              negative number; not_an_operator, a sign, AND, OR or NOT without meaning where it
              is; short_prefix; lower_case, *not* before a word that it seems to exclude, which
              -word or NOT would; other_language, AND, OR or NOT in German or French
    prefixes  prefixes, and the terms that match them, most frequent first; with `prefix="last"`
              the last word, and its completions; single characters of scripts without spaces, and
              the pairs that contain them; words of compounds, and the compounds; unknown words, and
              those that differ in accents
    variants  words, and how documents also write them: `on-line`, `online`; `utf8`, `utf 8`
    synonyms  words or sequences of words, and the synonyms that were searched as well
    corrections  words that no document contains, and the corrections that were searched instead
              or, for words still in `unknown`, only suggested; `spelling="suggest"` searches all
              words as typed
    did_you_mean  the query with all corrections applied, if some were only suggested, else None;
              None if no document contains any of the words that it would keep
    suggested_filters  conditions of the filter that no document satisfies, words that are values
              of a keyword or date field of more documents than contain them, and conditions that
              are typed as words; with the conditions to filter by, for values that differ in case,
              accents and blanks alone, and their numbers of documents
    id        ID of a document that is the whole query: the first hit, unless a filter excludes it

    >>> results = index.search('"bald tyres" coolants pum* -red')
    >>> said: klsa.QueryInterpretation = results.interpretation
    >>> said.words, said.unknown, said.phrases, said.excluded, said.prefixes
    (('bald', 'tyres', 'coolants'), (), ('"bald tyres"',), ('red',), {'pum*': ('pump',)})
    >>> index.search('"coolant leaks in the rain"').interpretation.relaxed
    {'"coolant leaks in the rain"': 'no_match'}
    >>> said = index.search("coolnat leeks").interpretation
    >>> said.corrections, said.unknown, said.did_you_mean
    ({'coolnat': 'coolant', 'leeks': 'leaks'}, ('leeks',), 'coolant leaks')
    >>> index.search("coolant", filter="about = Pumps").interpretation.suggested_filters
    {'about = Pumps': {'about = pumps': 2}}
    """

    __pydantic_config__ = ConfigDict(json_schema_serialization_defaults_required=True)

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    stop_words: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    boolean: str | None = None
    relaxed: Mapping[str, Relaxed] = field(default_factory=dict)
    prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    corrections: Mapping[str, str] = field(default_factory=dict)
    did_you_mean: str | None = None
    suggested_filters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    id: str | None = None


_SHOWN: Final = 3
"""Conditions that a note names, at most."""

_COMPARES: Final = re.compile(r"[=<>≤≥≠:]|\.\.|…")


def filter_notes(interpretation: QueryInterpretation, query: str) -> list[str]:
    """Return what `suggested_filters` of a query says, for people.

    >>> from klsa_search.search.query.interpretation import filter_notes
    >>> filter_notes(QueryInterpretation(suggested_filters={"red": {"colour = Red": 2}}), "red hat")
    ['`red` is a value of a field; filter by `colour = Red` (2 documents)']
    """
    notes, typed = [], " ".join(query.split())
    for written, filters in interpretation.suggested_filters.items():
        fact = "is true of no document"
        if " ".join(written.split()) in typed:
            is_condition = _COMPARES.search(written) is not None
            fact = f"is a {'condition on' if is_condition else 'value of'} a field"
        choices = (
            f"`{condition}` ({counted(count, 'document')})"
            for condition, count in [*filters.items()][:_SHOWN]
        )
        notes.append(f"`{written}` {fact}; filter by {' or '.join(choices)}")
    return notes


_WORD: Final = re.compile(r"[^\W_]+")


def replace_words(query: str, words: Mapping[str, str]) -> str:
    """Replace words of a query."""
    if all(map(_WORD.fullmatch, words)):
        return _WORD.sub(lambda matching: words.get(matching[0], matching[0]), query)
    either = "|".join(map(re.escape, words))
    return re.sub(rf"(?<![^\W_])(?:{either})(?![^\W_])", lambda matching: words[matching[0]], query)


class Word(NamedTuple):
    """A word as written, and its term number, UNKNOWN or NO_TERM."""

    text: str
    number: int

    @property
    def key(self) -> int | str:
        """Return its term number, or its text if it has none: see `QueryBuilder.alternatives`."""
        return self.number if self.number >= 0 else self.text


Words = tuple[Word, ...]


class Variant(NamedTuple):
    """Another way in which documents write a part of a query: joined, or in parts.

    written  as in the query
    of       terms of the query that it stands for; none if all of them are unknown
    words    as documents write it
    """

    written: str
    of: tuple[int, ...]
    words: tuple[Word, ...]

    @property
    def shown(self) -> str:
        """Return how documents write it."""
        return " ".join(word.text for word in self.words)


Restriction = tuple[str, ...]
"""A clause and the names of what it matches."""

END: Final = Word("", UNKNOWN)
"""Ends a sequence of plain words."""


class ParsingRules(NamedTuple):
    """How the words of a query are read.

    synonyms  terms that have synonyms, which are meant as they are typed
    is_typing  whether the last word is still typed
    last      word to complete
    unfinished  last word that no document contains: to complete, unless it is rather misspelt
    evidence  of documents
    has_case  whether capitals inside a word say that it is an abbreviation, a name or a code
    context   known terms of the query, by which its other words are corrected; None to correct each
              by itself
    """

    spelling: SpellingName = "off"
    synonyms: Container[str] | None = None
    is_typing: bool = False
    last: Word | None = None
    unfinished: Word | None = None
    evidence: Evidence = LOCAL
    has_case: bool = True
    context: tuple[int, ...] | None = None


@dataclass
class QueryBuilder:
    """The parts of a query while it is parsed.

    last           word to complete
    beside_compounds
                   only word of the query, of which compounds are searched as well
    plain_words    plain words in sequence
    stop_words     stop words of phrases, and of what is required
    words, unknown, left_out, boolean, ...  as in `QueryInterpretation`
    restrictions   what restricts the documents: clauses, with what they match by name
    plain_phrases  phrases without operator or field, with their restriction, and which documents
                   contain them
    corrected      terms that are searched instead of words that no document contains
    contained      single characters and parts of compounds, with the terms that contain them
    completions    term of the last word, and terms that are completions of it
    alternatives   what counts as each word, by term number or by the word as it is written
    writings       keys of `alternatives`, and words as documents also write these or complete them
    """

    rules: ParsingRules
    last: Word | None = None
    beside_compounds: Word | None = None
    plain_words: list[Word] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    allowed: DocumentMask | None = None
    words: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    stop_words: list[str] = field(default_factory=list)
    left_out: tuple[str, ...] = ()
    boolean: str | None = None
    relaxed: Mapping[str, Relaxed] = field(default_factory=dict)
    phrases: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    prefixes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)
    excluded_variants: dict[str, str] = field(default_factory=dict)
    corrections: dict[str, str] = field(default_factory=dict)
    synonyms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    restrictions: list[Restriction] = field(default_factory=list)
    plain_phrases: list[tuple[Clause, Restriction, DocumentMask]] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)
    corrected: set[int] = field(default_factory=set)
    contained: dict[Word, list[int]] = field(default_factory=dict)
    completions: tuple[str, list[str]] | None = None
    alternatives: dict[int | str, dict[tuple[int, ...], None]] = field(default_factory=dict)
    writings: list[tuple[tuple[int | str, ...], tuple[Word, ...]]] = field(default_factory=list)

    def count(self, word: int | str, terms: tuple[int, ...]) -> None:
        """Let documents that contain all of these terms count as containing a word."""
        self.alternatives.setdefault(word, {})[terms] = None

    def context(self, *words: Word) -> list[dict[tuple[int, ...], None]]:
        """Return what counts as the words of the query, without these and `contained`."""
        keys = {word.key for word in (*self.contained, *words)}
        return [terms for key, terms in self.alternatives.items() if key not in keys]

    def rank(self, words: Sequence[Word]) -> None:
        """Add the known ones of these words to the terms."""
        for word in words:
            number = word.number
            if number >= 0:
                self.terms.append(number)
                self.words.append(word.text)
                if number not in self.alternatives:
                    self.alternatives[number] = {(number,): None}
            elif number == UNKNOWN and word != self.last and word not in self.contained:
                self.unknown.append(word.text)

    def vary(self, variant: Variant) -> None:
        """Search another writing as well: rank by its terms, and let them count as the word."""
        terms = tuple(word.number for word in variant.words if word.number >= 0)  # no stop words
        self.show(variant, self.variants)
        self.terms += [term for term in terms if term not in self.terms]
        keys = variant.of or (variant.written,)
        self.writings.append((keys, variant.words))
        for word in keys:
            self.count(word, terms)

    def show(self, variant: Variant, variants: dict[str, str]) -> None:
        """Add how documents also write words to these variants."""
        terms = {word.number for word in variant.words}
        # Else it is the same word in another language, or has the stem of one of its parts.
        if variant.shown != variant.written and not terms <= {*variant.of}:
            variants.setdefault(variant.written, variant.shown)  # the most frequent

    def restrict(self, clause: Clause, names: tuple[str, ...], matching: DocumentMask) -> None:
        """Restrict the documents to those found, or to all others, as the clause requires.

        names  of what it matches, by which `matching` is the same in any index
        """
        restriction = (clause.sign, clause.field, clause.text, *names)
        self.restrictions.append(restriction)
        if clause.sign == "-":
            self.excluded.append(clause.shown)
            matching = ~matching
        elif clause.sign == "+":
            self.required.append(clause.shown)
        if clause.kind == "phrase" and not clause.field and not clause.sign:
            self.phrases.append(clause.shown)
            self.plain_phrases.append((clause, restriction, matching))
        if clause.field and not clause.sign:
            self.fields.append(clause.shown)
        self.allowed = matching if self.allowed is None else self.allowed & matching

    def interpretation(self, query: str) -> QueryInterpretation:
        """Return the interpretation of the query."""
        unknown = {*self.unknown}
        is_suggested = not self.corrections.keys().isdisjoint(unknown)
        # Else no document contains any word that the suggestion keeps.
        is_suggested &= bool(self.words) or unknown <= self.corrections.keys()
        meant = replace_words(query, self.corrections) if is_suggested else query
        return QueryInterpretation(
            words=tuple(self.words),
            unknown=tuple(self.unknown),
            stop_words=tuple(dict.fromkeys(self.stop_words)),
            left_out=self.left_out,
            phrases=tuple(self.phrases),
            required=tuple(self.required),
            excluded=tuple(self.excluded),
            fields=tuple(self.fields),
            boolean=self.boolean,
            relaxed=self.relaxed,
            prefixes=self.prefixes,
            variants=self.excluded_variants | self.variants,
            synonyms=self.synonyms,
            corrections=self.corrections,
            did_you_mean=meant if meant != query else None,  # written with other letters inside
        )
