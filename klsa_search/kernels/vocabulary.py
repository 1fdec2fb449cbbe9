"""The terms of a collection and their numbers.

Terms of the build are sorted; terms of later documents follow them.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import lt
from typing import cast


class Vocabulary:
    """V distinct terms, those of the build sorted by code point, and their numbers.

    A term that no live document contains stays in `terms` but has no number. Memory: the strings
    and one dict entry per term; lookup is O(1).
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self.terms: Sequence[str] = tuple(terms)
        # No Python loop over the terms: this is most of the time of opening an index.
        self.numbers: Mapping[str, int] = dict(zip(self.terms, range(len(self.terms)), strict=True))
        if not all(map(lt, self.terms, islice(self.terms, 1, None))):
            raise ValueError("the terms of a vocabulary must be sorted and distinct")

    def __len__(self) -> int:
        """Return V, the number of terms."""
        return len(self.terms)

    def extended(self, words: Sequence[str], dead: Collection[int] = ()) -> Vocabulary:
        """Return a vocabulary with further terms, some of them without a number.

        dead  numbers of terms that no live document contains
        Cost O(V) pointers, and a set of the dead terms.
        """
        extended = object.__new__(Vocabulary)
        extended.terms = (*self.terms, *words)
        later = dict(zip(words, range(len(self.terms), len(extended.terms)), strict=True))
        numbers: Mapping[str, int] = ChainMap(later, cast(dict[str, int], self.numbers))
        extended.numbers = (
            _Without(numbers, frozenset(extended.terms[place] for place in dead))
            if len(dead)
            else numbers
        )
        return extended


class _Without(Mapping[str, int]):
    """A mapping without some of its keys."""

    def __init__(self, whole: Mapping[str, int], dead: frozenset[str]) -> None:
        self._whole, self._dead = whole, dead

    def __getitem__(self, term: str) -> int:
        if term in self._dead:
            raise KeyError(term)
        return self._whole[term]

    def __iter__(self) -> Iterator[str]:
        return (term for term in self._whole if term not in self._dead)

    def __len__(self) -> int:
        return len(self._whole) - len(self._dead)
