"""Texts → numbers of their terms: what travels between processes, 4 bytes a word."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

from klsa_search.analysis.analyzer import CACHED_WORDS, LONGEST_WORD, Analyzer

LEFT_OUT: Final = -1
"""Number of a word that makes no term, such as a stop word."""


class NumberedTexts(NamedTuple):
    """The words of a batch of texts, as numbers of their terms in a dictionary that grows.

    numbering  which dictionary the numbers are of
    numbers    array of int32, one for each word, text after text; LEFT_OUT has its place too
    lengths    array of int32, the words of each text
    terms      those the dictionary did not hold before; they take the next numbers
    """

    numbering: int
    numbers: array[int]
    lengths: array[int]
    terms: list[str]


class Numbering:
    """A dictionary of terms that numbers them from 0 in the order they are met.

    Memory: the terms, some 100 bytes each, and `CACHED_WORDS` words. `name` identifies it
    of the same collection.
    """

    def __init__(self, analyzer: Analyzer, name: int = 0) -> None:
        self._analyzer = analyzer
        self._name = name
        self._words = _Words(analyzer)

    def numbered(self, texts: Sequence[str]) -> NumberedTexts:
        """Analyse texts; equal to the terms of `Analyzer.terms`, LEFT_OUT apart."""
        each, word, pair = self._analyzer.each, self._words.__getitem__, self._words.pair
        numbers, lengths = array("i"), array("i")
        met = self._words.met = []
        for text in texts:
            before = len(numbers)
            numbers.extend(each(text, word, pair))
            lengths.append(len(numbers) - before)
        return NumberedTexts(self._name, numbers, lengths, met)


class _Words(dict[str, int]):
    """From a word as written to the number of its term: one look-up a word."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._numbers: dict[str, int] = {}
        self.met: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self._number(self._analyzer.term(word))
        if len(word) <= LONGEST_WORD:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[word] = number
        return number

    def pair(self, pair: str) -> int:
        """Number of a pair of characters."""
        return self._number(self._analyzer.pair(pair))

    def _number(self, term: str) -> int:
        if not term:
            return LEFT_OUT
        number = self._numbers.get(term)
        if number is None:
            self._numbers[term] = number = len(self._numbers)
            self.met.append(term)
        return number
