"""Texts → numbers of their terms: what travels between processes, 4 bytes a token."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from klsa_search.analysis.analyzer import Analyzer


class NumberedTexts(NamedTuple):
    """The terms of a batch of texts, as numbers in a dictionary that grows.

    numbering  which dictionary the numbers are of
    numbers    array of int32, one for each token, text after text
    lengths    array of int32, the tokens of each text
    terms      those the dictionary did not hold before; they take the next numbers
    """

    numbering: int
    numbers: array[int]
    lengths: array[int]
    terms: list[str]


class Numbering:
    """A dictionary of terms that numbers them from 0 in the order they are met.

    Memory: the terms, some 100 bytes each. `name` tells it from others of the same collection.
    """

    def __init__(self, analyzer: Analyzer, name: int = 0) -> None:
        self._analyzer = analyzer
        self._name = name
        self._numbers = _Numbers()

    def numbered(self, texts: Sequence[str]) -> NumberedTexts:
        """Analyse texts; equal to the terms of `Analyzer.terms`, each replaced by its number."""
        number, terms_of = self._numbers.__getitem__, self._analyzer.terms
        numbers, lengths = array("i"), array("i")
        self._numbers.met = []
        for text in texts:
            before = len(numbers)
            numbers.extend(map(number, terms_of(text)))
            lengths.append(len(numbers) - before)
        return NumberedTexts(self._name, numbers, lengths, self._numbers.met)


class _Numbers(dict[str, int]):
    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []

    def __missing__(self, term: str) -> int:
        self[term] = number = len(self)
        self.met.append(term)
        return number
