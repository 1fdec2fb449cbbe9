"""The terms of a collection; a term's place is its number.

What an index is built of is in sorted order; terms of documents that came later stand behind.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import lt
from typing import cast


class Vocabulary:
    """V distinct terms, sorted by code point at first, and the way back from term to number.

    A term that no live document contains any more keeps its place in `terms`, and has no number.
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

    def extended(self, words: Sequence[str], dead: Collection[int] = ()) -> Vocabulary:
        """Return a vocabulary of these terms and further ones behind, less those at some places.

        dead  places of terms that no live document contains
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
    """A mapping less some of its keys."""

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
