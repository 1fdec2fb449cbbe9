"""Reads the pieces of a query, and keeps what each of them says by itself.

Neither the analyser nor the syntax looks across a blank outside of quotes, and queries repeat
words, so what a piece says is found once and then looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import attrgetter, or_
from typing import Final

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import characters
from klsa_search.analysis.terms import LONGEST_WORD
from klsa_search.analysis.unicode import nfkc
from klsa_search.core.lazy import lazy_property
from klsa_search.search.engine.evidence import DerivedValues
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN, TermNumbers
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.division import Divider, WordCounts
from klsa_search.search.query.interpretation import Word
from klsa_search.search.query.joining import NO_RUN, Joiner, Run, runs_of
from klsa_search.search.query.similar_terms import ConfiguredWords
from klsa_search.search.query.stop_words import StopWords
from klsa_search.search.query.syntax import TRANSLATED, is_plain, may_be_boolean
from klsa_search.search.query.term_dictionary import DocumentsAt, TermDictionary

_CACHE_SIZE: Final = 2**15
_LONGEST: Final = 64  # characters of a piece that is cached

SIGNS: Final = 1
"""It may have operators."""
BOOLEAN: Final = 2
"""It has AND, OR, NOT or *not*, or one of these in another language."""
HAS_UNKNOWN: Final = 4
"""It has a word that no document contains."""
CHARACTERS: Final = 8
"""It has a single character of which documents may have pairs."""

DOUBTFUL: Final = 32
"""It has a rare word that may be misspelt, or words that documents write as one."""
MAY_BE_CODE: Final = 64
"""It has a digit or fraction, or a word after a slash, as codes have."""
ALL_FLAGS: Final = 127
_FLAGS: Final = attrgetter("flags")
_IN_CODES: Final = re.compile(r"[\d\u00bc-\u00be\u2150-\u215e]|[/\\]\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a query between blanks.

    numbers     term numbers of its words
    words       its words; none if a custom tokenizer finds them, which may look across blanks
    flags       what it may do besides adding its terms, as bits
    first, last  its runs of letters and digits next to the blanks; `NO_RUN` where a sign is
    characters  single characters that stand alone, with the terms of pairs that contain them
    """

    numbers: tuple[int, ...]
    words: tuple[Word, ...]
    flags: int
    first: Run
    last: Run
    characters: dict[str, list[int]]


class PieceCache(dict[str, Piece]):
    """Caches the pieces of queries to one snapshot; thread-safe.

    Its attributes are what all readers of a query share: the snapshot with its analyser and its
    documents, words of synonyms and rules, term numbers, stop words, what divides and joins words,
    the term dictionary, and what is derived from words.
    It caches 32,768 pieces of at most 64 characters, at most 20 MB, and the last longer one, which
    the readers of a query ask for one after another. Threads that read a new piece at once find the
    same.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        documents_at: DocumentsAt,
        synonyms: Mapping[str, Sequence[str]],
        rules: Iterable[str],
    ) -> None:
        super().__init__()
        self._synonyms, self._rules = synonyms, rules
        self.snapshot, self.analyzer, self.documents_at = snapshot, analyzer, documents_at
        self.derived = DerivedValues(snapshot.answers)
        self.numbers = TermNumbers(analyzer, snapshot.vocabulary, self.derived)
        self.stop_words = StopWords(snapshot, analyzer)
        self.counts = WordCounts(self.stop_words, self.numbers, self.derived)
        self.divider, self.joiner = Divider(self.counts), Joiner(self.counts)
        self.term_dictionary = TermDictionary(snapshot, analyzer, documents_at, self.derived)
        self._last_long = dict[str, Piece]()

    @lazy_property
    def configured_words(self) -> ConfiguredWords:
        """Words of synonyms and rules, which are analysed when a word is first corrected."""
        return ConfiguredWords(self._synonyms, self._rules, self.analyzer)

    def of(self, text: str) -> list[Piece]:
        """Return the pieces of a text. Cost: 0.1 µs for each that was read before."""
        return [*map(self.__getitem__, text.split(" "))]

    def words(self, text: str) -> list[Word]:
        """Return the words of a text in order, with their term numbers."""
        if self.analyzer.tokenizes:  # which may look across blanks
            return list(self._words(text))
        return [word for piece in self.of(text) for word in piece.words]

    def __missing__(self, text: str) -> Piece:
        """Read a piece, and cache it."""
        if text in (last := self._last_long):
            return last[text]
        piece = self.read(text)
        if len(text) > _LONGEST:
            self._last_long = {text: piece}
        else:
            if len(self) >= _CACHE_SIZE:
                self.clear()
            self[text] = piece
        return piece

    def read(self, text: str) -> Piece:
        """Return a piece, and note the terms that it depends on: see `DerivedValues`."""
        find = partial(self._read, text)
        return self.derived.of(("piece", text), find) if len(text) <= _LONGEST else find()

    def _read(self, text: str) -> Piece:
        words = () if self.analyzer.tokenizes else self._words(text)
        numbers = tuple(word.number for word in words)
        runs = runs_of(text, self.numbers)
        # Only characters that stand alone, not 月 in *3月*: with pairs of all, queries lose.
        alone = {
            word: terms
            for word in (
                () if text.isascii() or self.analyzer.tokenizes else map(nfkc, text.split())
            )
            if len(characters(word)) == 1 and (terms := self.term_dictionary.containing(word))
        }
        is_stop_letter = len(text) == 1 and NO_TERM in numbers
        flags = (
            SIGNS * (not is_plain(text) or text in ("#", "++"))
            | BOOLEAN * (text.lower() == "not" or text in TRANSLATED or may_be_boolean(text))
            | HAS_UNKNOWN * (UNKNOWN in numbers)
            | CHARACTERS * bool(alone)
            | MAY_BE_CODE * (_IN_CODES.search(text) is not None or is_stop_letter)
        )
        return Piece(
            numbers=numbers,
            words=words,
            flags=ALL_FLAGS if self.analyzer.tokenizes else flags,
            first=runs[0] if runs and text.startswith(runs[0].text) else NO_RUN,
            last=runs[-1] if runs and runs[-1].sign == " " else NO_RUN,
            characters=alone,
        )

    def _words(self, text: str) -> tuple[Word, ...]:
        words = self.analyzer.map_words(text, str, str)
        # No index has longer words, which therefore are unknown rather than without a term.
        return tuple(
            Word(word, self.numbers[word] if len(word) <= LONGEST_WORD else UNKNOWN)
            for word in words
        )


def flags_of(pieces: Sequence[Piece]) -> int:
    """Return what pieces may do besides adding their terms, as bits."""
    return reduce(or_, map(_FLAGS, pieces), 0)


def numbers_of(pieces: Sequence[Piece]) -> list[int]:
    """Return the term numbers of pieces, in order."""
    return [number for piece in pieces for number in piece.numbers]
