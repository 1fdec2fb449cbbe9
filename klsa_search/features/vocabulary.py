"""The terms of a collection; a term's place is its number.

What an index is built of is in sorted order; terms of documents that came later stand behind.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import lt
from typing import cast


class Vocabulary:
    """V distinct terms, sorted by code point at first, and the way back from term to number.

    Memory is the strings plus one dict entry a term; look-up is O(1).
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self.terms: Sequence[str] = tuple(terms)
        # Both without a step of Python for each term: this is most of what opening an index takes.
        self.numbers: Mapping[str, int] = dict(zip(self.terms, range(len(self.terms)), strict=True))
        if not all(map(lt, self.terms, islice(self.terms, 1, None))):
            raise ValueError("a vocabulary is sorted and holds each term once")

    def __len__(self) -> int:
        """V, the number of terms."""
        return len(self.terms)

    def extended(self, words: Sequence[str]) -> Vocabulary:
        """Return a vocabulary of these terms and further ones behind. Cost O(V) pointers."""
        extended = object.__new__(Vocabulary)
        extended.terms = (*self.terms, *words)
        later = dict(zip(words, range(len(self.terms), len(extended.terms)), strict=True))
        extended.numbers = ChainMap(later, cast(dict[str, int], self.numbers))
        return extended
