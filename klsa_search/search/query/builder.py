"""Query builder: collects the parts of a query while it is parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from klsa_search.core.array_types import DocumentMask
from klsa_search.core.parameters import SpellingName
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.query.interpretation import QueryInterpretation, Relaxed, replace_words
from klsa_search.search.query.synonyms import Synonyms
from klsa_search.search.query.syntax import Clause


class Word(NamedTuple):
    """A word as written, and its term number, UNKNOWN or NO_TERM."""

    text: str
    number: int


class Variant(NamedTuple):
    """Another way in which documents write a part of a query: joined, or in parts.

    written  as in the query
    of       terms of the query that it stands for; none if all of them are unknown
    words    as documents write it
    """

    written: str
    of: tuple[int, ...]
    words: tuple[Word, ...]


Restriction = tuple[str, ...]
"""A clause and the names of what it matches."""

END: Final = Word("", UNKNOWN)
"""Ends a sequence of plain words."""


class ParsingRules(NamedTuple):
    """How the words of a query are read.

    synonyms  synonyms that apply
    is_typing  whether the last word is still typed
    last      word to complete
    unfinished  last word that no document contains: to complete, unless it is rather misspelt
    evidence  of documents
    has_case  whether capitals inside a word say that it is an abbreviation, a name or a code
    context   known terms of the query, by which its other words are corrected; None to correct each
              by itself
    """

    spelling: SpellingName = "off"
    synonyms: Synonyms | None = None
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
    plain_words    plain words in sequence
    stop_words     stop words of phrases, and of what is required
    left_out, boolean, relaxed  as in `QueryInterpretation`
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
    corrections: dict[str, str] = field(default_factory=dict)
    synonyms_used: dict[str, tuple[str, ...]] = field(default_factory=dict)
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
        terms = tuple(word.number for word in variant.words)
        written = " ".join(word.text for word in variant.words)
        if written != variant.written:  # else it is the same word in another language
            self.variants[variant.written] = written
        self.terms += [term for term in terms if term not in self.terms]
        keys = variant.of or (variant.written,)
        self.writings.append((keys, variant.words))
        for word in keys:
            self.count(word, terms)

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
            variants=self.variants,
            synonyms=self.synonyms_used,
            corrections=self.corrections,
            did_you_mean=(
                None
                if self.corrections.keys().isdisjoint(self.unknown)
                else replace_words(query, self.corrections)
            ),
        )
