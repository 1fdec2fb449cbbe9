"""The terms of a collection and their numbers.

Terms of the build are sorted; terms of later documents follow them.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from operator import lt
from typing import Final, cast, overload

import numpy as np
import numpy.typing as npt

from klsa_search.core.cached import cached_method, lazy_property

_CACHE_SIZE: Final = 2**16


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

    @classmethod
    def _of(cls, terms: Sequence[str], numbers: Mapping[str, int]) -> Vocabulary:
        """Return a vocabulary of terms that are known to be distinct."""
        vocabulary = object.__new__(cls)
        vocabulary.terms, vocabulary.numbers = terms, numbers
        return vocabulary

    def extended(self, words: Sequence[str]) -> Vocabulary:
        """Return a vocabulary with further terms. Cost O(V) pointers."""
        terms = (*self.terms, *words)
        later = dict(zip(words, range(len(self), len(terms)), strict=True))
        return self._of(terms, ChainMap(later, cast(dict[str, int], self.numbers)))

    def without(self, unused: npt.NDArray[np.bool_]) -> Vocabulary:
        """Return a vocabulary in which some terms have no number.

        unused  (V,) whether no live document contains a term
        Cost and memory: a byte a term.
        """
        return self._of(self.terms, _Without(self.numbers, unused)) if unused.any() else self


class SortedTerms:
    """T terms, distinct and sorted by code point, in arrays that may be mapped from files.

    text    uint8, the terms in UTF-8, each with a line end
    starts  (T + 1,) int64, offsets of the terms
    """

    def __init__(self, text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        self._text, self._starts = text, starts
        self._find = cached_method(self._place_of, _CACHE_SIZE)

    def __len__(self) -> int:
        """Return T."""
        return len(self._starts) - 1

    def term(self, place: int) -> str:
        """Return the term at a place."""
        return self._bytes(place).decode()

    def find(self, term: str) -> int | None:
        """Return the place of a term; None if it is not among them.

        Cost: some 20 µs; the places of 65,536 terms are cached.
        """
        return self._find(term)

    def _place_of(self, term: str) -> int | None:
        wanted = term.encode(errors="surrogatepass")
        # UTF-8 has the order of code points.
        place = bisect_left(range(len(self)), wanted, key=self._bytes)
        return place if place < len(self) and self._bytes(place) == wanted else None

    @lazy_property
    def terms(self) -> Sequence[str]:
        """All terms as strings, made at the first use."""
        return self._text.tobytes().decode().split("\n")[:-1]

    def _bytes(self, place: int) -> bytes:
        return self._text[self._starts[place] : self._starts[place + 1] - 1].tobytes()


_Places = npt.NDArray[np.int32]


class JoinedVocabulary(Vocabulary):
    """A vocabulary of which many terms stay in arrays.

    Terms are numbered in this order: `first`, those of `stored` at the places `own`, `words`, those
    of `stored` at the places `others`.

    stored       sorted terms, none of which is in `first`
    own, others  int32, ascending
    words        terms that are not at these places
    Memory and cost: those of `words`.
    """

    def __init__(
        self,
        first: Vocabulary,
        stored: SortedTerms,
        places: _Places,
        words: Sequence[str] = (),
        others: _Places | None = None,
    ) -> None:
        self._first, self._stored, self._own, self._words = first, stored, places, words
        own_terms = _PlacedTerms(stored, places)
        after = len(first) + len(places)
        later = dict(zip(words, range(after, after + len(words)), strict=True))
        parts: list[Sequence[str]] = [first.terms, own_terms, words]
        placed = [(places, len(first))]
        if others is not None:
            parts.append(_PlacedTerms(stored, others))
            placed.append((others, after + len(words)))
        self.terms = _JoinedTerms(parts)
        self.numbers = _JoinedNumbers(self.terms, first.numbers, later, stored, placed)

    def extended(self, words: Sequence[str]) -> Vocabulary:
        """Return a vocabulary with further words, and without `others`. Cost: that of all words."""
        return JoinedVocabulary(self._first, self._stored, self._own, [*self._words, *words])


class _Terms(Sequence[str]):
    """Terms by number."""

    @abstractmethod
    def _at(self, number: int) -> str: ...

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[str]: ...
    def __getitem__(self, number: int | slice) -> str | Sequence[str]:
        return tuple(self)[number] if isinstance(number, slice) else self._at(number)


class _PlacedTerms(_Terms):
    """Stored terms at some places."""

    def __init__(self, stored: SortedTerms, places: _Places) -> None:
        self._stored, self._places = stored, places

    def _at(self, number: int) -> str:
        return self._stored.term(self._places[number])

    def __iter__(self) -> Iterator[str]:
        return map(self._stored.terms.__getitem__, self._places.tolist())

    def __len__(self) -> int:
        return len(self._places)


class _JoinedTerms(_Terms):
    """Terms of several sequences, one after the other."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self._parts = parts
        self._ends = [*accumulate(map(len, parts))]

    def _at(self, number: int) -> str:
        part = bisect_right(self._ends, number)
        if part == len(self._parts):
            raise IndexError(number)
        return self._parts[part][number - (self._ends[part - 1] if part else 0)]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._ends[-1]


class _JoinedNumbers(Mapping[str, int]):
    """Numbers of the terms of a `JoinedVocabulary`."""

    def __init__(
        self,
        terms: Sequence[str],
        first: Mapping[str, int],
        words: Mapping[str, int],
        stored: SortedTerms,
        placed: Sequence[tuple[_Places, int]],
    ) -> None:
        self._terms, self._first, self._words = terms, first, words
        self._stored, self._placed = stored, placed

    def __getitem__(self, term: str) -> int:
        for numbers in (self._first, self._words):
            if term in numbers:
                return numbers[term]
        place = self._stored.find(term)
        if place is not None:
            for places, first in self._placed:
                # A value of the same type: for another, NumPy would convert all places.
                at = int(places.searchsorted(places.dtype.type(place)))
                if at < len(places) and places[at] == place:
                    return first + at
        raise KeyError(term)

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)


class _Without(Mapping[str, int]):
    """Numbers of terms, without some of the numbers."""

    def __init__(self, numbers: Mapping[str, int], unused: npt.NDArray[np.bool_]) -> None:
        self._whole, self._unused = numbers, unused.tobytes()  # looked up three times as fast

    def __getitem__(self, term: str) -> int:
        number = self._whole[term]
        if self._unused[number]:
            raise KeyError(term)
        return number

    def __iter__(self) -> Iterator[str]:
        return (term for term, number in self._whole.items() if not self._unused[number])

    def __len__(self) -> int:
        return len(self._whole) - sum(self._unused)
