"""The text of a query → the terms it is ranked by, and the documents that may be answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis import Analyzer
from klsa_search.collection import Document
from klsa_search.config import LanguageSettings, SpellingName
from klsa_search.errors import QueryError
from klsa_search.search.language.lexicon import SHORTEST, Lexicon
from klsa_search.search.language.matching import PLACES, holding, with_phrase
from klsa_search.search.language.parsing import Clause, is_plain, parse
from klsa_search.search.language.spelling import Spelling
from klsa_search.search.language.understood import Understood
from klsa_search.search.query import NO_TERM, UNKNOWN, TermNumbers
from klsa_search.search.snapshot import Snapshot
from klsa_search.store.fields.columns import Field

EXPANSIONS: Final = 20
"""Terms of a prefix that documents are ranked by, the most frequent."""

SIGNS: Final = 64
"""Clauses with signs in one query; further ones are words, so that none takes minutes."""

PUT_RIGHT: Final = 10
"""Words of one query that are put right at most, the first."""

_HYPHENED: Final = re.compile(r"[^\W_]++(?:-[^\W_]++)+")


class Asked(NamedTuple):
    """A query as an index understands it.

    terms       numbers of the terms to rank by, repeated as they are asked for; below 0 for none
    allowed     (N,) which documents have what must be there, and nothing of what must not; None
                for all
    understood  None where all of it is plain words, which `Language.understood` tells
    """

    terms: Sequence[int]
    allowed: npt.NDArray[np.bool_] | None = None
    understood: Understood | None = None


class Language:
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
        self.lexicon = Lexicon(snapshot, analyzer, documents_at)
        self._columns = {name: columns[name] for name in columns.keys() - PLACES.keys()}
        self._fields = {*PLACES, *columns} - {""}
        self.spelling = Spelling(snapshot, analyzer, documents_at)
        self._numbers = TermNumbers(analyzer, snapshot.vocabulary)

    def read(self, query: str, settings: LanguageSettings) -> Asked:
        """Understand a query; QueryError for what is no text.

        Cost: 1 µs where all of it is plain words, else what `matching` and `spelling` take.
        """
        if not isinstance(query, str):
            raise QueryError(f"query = {query!r}: a text is needed", field="query")
        if not settings.operators or is_plain(query):
            numbers = self._numbers.of(query)
            if settings.spelling == "off" or (UNKNOWN not in numbers and "-" not in query):
                return Asked(numbers)
            clauses = [Clause("", "", "word", query, query)]
        else:
            clauses = parse(query, self._fields)
        reading, signs = _Reading(), 0
        for clause in clauses:
            signs += clause.has_sign
            read = clause if signs <= SIGNS else clause._replace(sign="", field="", kind="word")
            self._take(read, settings.spelling, reading)
        return Asked(reading.terms, reading.allowed, reading.understood(query))

    def understood(self, query: str, asked: Asked) -> Understood:
        """Tell what was understood of a query."""
        if asked.understood is not None:
            return asked.understood
        words = list(zip(self._numbers.words(query), asked.terms, strict=True))
        return Understood(
            words=tuple(word for word, number in words if number >= 0),
            unknown=tuple(word for word, number in words if number == UNKNOWN),
        )

    def shown(self, asked: Asked) -> set[str]:
        """Terms that a passage is to show."""
        terms = self._snapshot.vocabulary.terms
        return {terms[number] for number in asked.terms if number >= 0}

    def _words(self, text: str) -> list[_Word]:
        """Words of a text in their order."""
        words = self._analyzer.each(text, str, str)
        return [_Word(word, self._numbers.of_word(word)) for word in words]

    def _take(self, clause: Clause, spelling: SpellingName, reading: _Reading) -> None:
        """Rank by a clause, and leave out what it does not allow."""
        if clause.field in self._columns:
            reading.limit(clause, self._columns[clause.field].equal(clause.text))
            return
        words = self._words(clause.text)
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
        if clause.sign or clause.field or clause.kind == "phrase":
            numbers = _trimmed([word.number for word in words])
            if numbers:
                found = with_phrase(self._snapshot, numbers, clause.field)
                for whole, word in joined:
                    if whole == clause.text:
                        found |= with_phrase(self._snapshot, [word.number], clause.field)
                reading.limit(clause, found)

    def _put_right(
        self, words: Sequence[_Word], spelling: SpellingName, reading: _Reading
    ) -> list[_Word]:
        """Put words right that no document holds, or only note what would be right."""
        right: list[_Word] = []
        for word in words:
            found = None
            if word.number == UNKNOWN and (
                word.text in reading.looked_up or len(reading.looked_up) < PUT_RIGHT
            ):
                reading.looked_up.add(word.text)
                found = self.spelling.correction(word.text)
            if found is not None:
                reading.corrections[word.text] = found.words
            if found is None or spelling == "suggest":
                right.append(word)
            else:
                right += map(_Word, found.words.split(), found.terms)
        return right

    def _joined(self, text: str) -> list[tuple[str, _Word]]:
        """Words with hyphens inside that documents write without: wi-fi, wifi."""
        joined = []
        for whole in _HYPHENED.findall(text) if "-" in text else ():
            word = whole.replace("-", "")
            number = self._numbers.of_word(word)
            if number >= 0:
                joined.append((whole, _Word(word, number)))
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


class _Word(NamedTuple):
    """A word as it is written, and its number."""

    text: str
    number: int


@dataclass
class _Reading:
    """What was read of a query so far."""

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
    looked_up: set[str] = field(default_factory=set)

    def rank(self, words: Sequence[_Word]) -> None:
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
        if clause.field and not clause.sign:
            self.fields.append(clause.shown)
        self.allowed = found if self.allowed is None else self.allowed & found

    def understood(self, query: str) -> Understood:
        """Tell it of a query."""
        return Understood(
            words=tuple(self.words),
            unknown=tuple(self.unknown),
            phrases=tuple(self.phrases),
            required=tuple(self.required),
            excluded=tuple(self.excluded),
            fields=tuple(self.fields),
            prefixes=self.prefixes,
            joined=self.joined,
            corrections=self.corrections,
            did_you_mean=_with_words(query, self.corrections) if self.corrections else None,
        )


def _with_words(query: str, words: Mapping[str, str]) -> str:
    """Put other words into a query in the places of some."""
    either = "|".join(map(re.escape, words))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", lambda found: words[found[0]], query)


def _trimmed(numbers: list[int]) -> list[int]:
    """Words of a phrase from its first term to its last."""
    terms = [place for place, number in enumerate(numbers) if number != NO_TERM]
    return numbers[terms[0] : terms[-1] + 1] if terms else []
