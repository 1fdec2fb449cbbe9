"""The pieces of a query between its blanks, and what each of them says by itself.

Neither the analyser nor the syntax looks across a blank outside of quotes, and queries repeat
words, so what a piece says is found once and then looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import characters
from klsa_search.analysis.unicode import nfkc
from klsa_search.search.query.boolean import may_be_boolean
from klsa_search.search.query.builder import Variant, Word
from klsa_search.search.query.compounds import Compounds, Part
from klsa_search.search.query.syntax import is_plain
from klsa_search.search.query.term_dictionary import TermDictionary
from klsa_search.search.query.terms import UNKNOWN, TermNumbers

_CACHE_SIZE: Final = 2**15
_LONGEST: Final = 64  # characters of a piece that is cached


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a query between blanks.

    numbers     term numbers of its words
    words       its words
    has_signs   whether it may have an operator
    is_boolean  whether it may have AND, OR or NOT
    parts       its runs of letters and digits
    first, last  those next to the blanks; None where a sign is
    runs, inner  words joined by signs that documents write as one, and shorter sequences
    dividing    words of the index that documents may also write in parts
    characters  single characters that stand alone, with the terms of pairs that contain them
    is_inert    whether it adds its terms to a query and nothing else, whatever the others are
    """

    numbers: tuple[int, ...]
    words: tuple[Word, ...]
    has_signs: bool
    is_boolean: bool
    parts: tuple[Part, ...]
    first: Part | None
    last: Part | None
    runs: tuple[Variant, ...]
    inner: tuple[Variant, ...]
    dividing: tuple[Word, ...]
    characters: dict[str, list[int]]
    is_inert: bool


class Pieces(dict[str, Piece]):
    """Reads the pieces of queries to one snapshot; thread-safe.

    It caches 32,768 pieces of at most 64 characters, at most 20 MB. Threads that read a new piece
    at once find the same.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        numbers: TermNumbers,
        compounds: Compounds,
        term_dictionary: TermDictionary,
    ) -> None:
        super().__init__()
        self._analyzer, self._numbers, self._compounds = analyzer, numbers, compounds
        self._term_dictionary = term_dictionary

    def of(self, text: str) -> list[Piece]:
        """Return the pieces of a text. Cost: 0.1 µs for each that was read before."""
        return [*map(self.__getitem__, text.split(" "))]

    def words(self, text: str) -> list[Word]:
        """Return the words of a text in order, with their term numbers."""
        if self._analyzer.tokenizes:  # which may look across blanks
            return list(self._words(text))
        return [word for piece in self.of(text) for word in piece.words]

    def characters(self, text: str) -> dict[str, list[int]]:
        """Return the terms of single characters that documents have within pairs.

        Only of those that stand alone, not of 月 in *3月*: with pairs of all, queries lose.
        """
        if text.isascii() or self._analyzer.tokenizes:
            return {}
        return {
            word: terms
            for word in dict.fromkeys(map(nfkc, text.split()))
            if len(characters(word)) == 1 and (terms := self._term_dictionary.containing(word))
        }

    def __missing__(self, text: str) -> Piece:
        """Read a piece, and cache it unless it is very long."""
        words = () if self._analyzer.tokenizes else self._words(text)
        numbers = tuple(word.number for word in words)
        has_signs, is_boolean = not is_plain(text), may_be_boolean(text)
        parts = self._compounds.text_parts(text)
        first = parts[0] if parts and text.startswith(parts[0].text) else None
        last = parts[-1] if parts and not parts[-1].after else None
        runs, inner = self._compounds.runs(text), self._compounds.inner(parts)
        alone = self.characters(text)
        dividing = tuple(
            word for word in words if word.number >= 0 and self._compounds.may_divide(word.text)
        )
        may_join = any(part.is_unknown for part in parts) or bool(
            (first and first.begins_with_digit) or (last and last.ends_with_digit)
        )
        is_inert = not (
            has_signs
            or is_boolean
            or runs
            or inner
            or dividing
            or alone
            or may_join
            or UNKNOWN in numbers
            or self._analyzer.tokenizes
        )
        piece = Piece(
            numbers=numbers,
            words=words,
            has_signs=has_signs,
            is_boolean=is_boolean,
            parts=parts,
            first=first,
            last=last,
            runs=runs,
            inner=inner,
            dividing=dividing,
            characters=alone,
            is_inert=is_inert,
        )
        if len(text) <= _LONGEST:
            if len(self) >= _CACHE_SIZE:
                self.clear()
            self[text] = piece
        return piece

    def _words(self, text: str) -> tuple[Word, ...]:
        return tuple(
            Word(word, self._numbers[word]) for word in self._analyzer.each(text, str, str)
        )


def numbers_of(pieces: Sequence[Piece]) -> list[int]:
    """Return the term numbers of pieces, in order."""
    return [number for piece in pieces for number in piece.numbers]
