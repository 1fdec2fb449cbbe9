"""Adjacent pairs of terms as an epoch knows them, and the numbers of all its features.

    epoch_pairs.npy  uint8  codes of `store.forward`: for each term how many pairs it is the lesser
                            term of, then for each of them the distance of the greater term to that
                            of the one before, and how many documents hold the pair, less two

Some three bytes a pair. Features are numbered as `expansion.cut` numbers them: the most frequent
first, among equals terms before pairs, terms in order and pairs by their keys; so numbers and
weights follow from how often each is held, and are not kept.

    encode_pairs(keys, frequencies, V) -> codes;  Pairs.of(codes, term frequencies) -> Pairs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import compiled
from klsa_search.lazily import lazily
from klsa_search.store.forward import LONGEST, read_code, write_code

LEAST: Final = 2
"""Documents that hold a pair, at least."""

_Codes = npt.NDArray[np.uint8]
_Ints = npt.NDArray[np.int32]
_Keys = npt.NDArray[np.int64]


def encode_pairs(
    keys: _Keys,
    frequencies: npt.NDArray[np.integer[Any]],
    terms: int,
    first: int = 0,
    after: int | None = None,
) -> _Codes:
    """Encode pairs, keys ascending, of V = `terms` terms. Cost O(V + P); memory 10 bytes a pair.

    first, after  the lesser terms that all of them have, if not of all; codes go end to end
    """
    after = terms if after is None else after
    codes = np.empty(LONGEST * (after - first + 2 * len(keys)), np.uint8)
    end = _encode(keys, frequencies.astype(np.int64), terms, first, after, codes)
    return codes[:end].copy()


@dataclass(frozen=True)
class Pairs:
    """The features of an epoch.

    terms        (V,) the number of each term among the features
    starts       (V + 1,) where the pairs of each lesser term begin
    greater      (P,) their greater terms, ascending
    numbers      (P,) their numbers among the features
    levels       (n,) ascending, the first feature of each number of documents that there is
    frequencies  (n,) and that number, descending
    """

    terms: _Ints
    starts: _Keys
    greater: _Ints
    numbers: _Ints
    levels: _Keys
    frequencies: _Keys

    @classmethod
    def of(cls, codes: _Codes, frequencies: npt.NDArray[np.integer[Any]]) -> Pairs:
        """Number the features of V terms, held by so many documents, and of pairs.

        Cost O(V + P): 20 ns a pair; memory 8 bytes a pair, 16 while it works.
        """
        terms = len(frequencies)
        pairs = (int(np.count_nonzero(codes < 0x80)) - terms) // 2
        starts, greater = np.zeros(terms + 1, np.int64), np.empty(pairs, np.int32)
        held = np.empty(terms + pairs, np.int32)
        held[:terms] = frequencies
        _decode(codes, starts, greater, held)
        sizes = np.bincount(held)
        found = np.flatnonzero(sizes)[::-1]
        levels = np.cumsum(sizes[found]) - sizes[found]
        places = np.zeros(len(sizes), np.int64)
        places[found] = levels
        _number(held, places)
        return cls(held[:terms], starts, greater, held[terms:], levels, found)

    def __len__(self) -> int:
        """P, the number of pairs."""
        return len(self.greater)

    @lazily
    def places(self) -> _Ints:
        """Where each feature stands: (V + P,) its place among terms, or V and that among pairs.

        Cost: 5 ns and 4 bytes a feature, once.
        """
        terms = len(self.terms)
        places = np.empty(terms + len(self), np.int32)
        places[self.terms] = np.arange(terms, dtype=np.int32)
        places[self.numbers] = np.arange(terms, len(places), dtype=np.int32)
        return places

    def held_by(self, features: npt.NDArray[np.integer[Any]]) -> _Keys:
        """How many documents of the epoch hold features: (n,) of their numbers."""
        return self.frequencies[np.searchsorted(self.levels, features, side="right") - 1]

    def find(self, keys: _Keys, terms: int) -> _Ints:
        """Numbers of pairs, -1 for what is no feature: (n,) of keys lesser · terms + greater."""
        numbers = np.empty(len(keys), np.int32)
        _find(keys, terms, self.starts, self.greater, self.numbers, numbers)
        return numbers


@compiled
def _encode(
    keys: Any, frequencies: Any, terms: int, first_term: int, after_term: int, codes: Any
) -> int:
    at, pair = 0, 0
    for lesser in range(first_term, after_term):
        first = np.int64(lesser) * terms
        after = pair
        while after < len(keys) and keys[after] < first + terms:
            after += 1
        at = write_code(codes, at, after - pair)
        before = first
        while pair < after:
            at = write_code(codes, at, keys[pair] - before)
            at = write_code(codes, at, frequencies[pair] - LEAST)
            before = keys[pair]
            pair += 1
    return at


@compiled
def _decode(codes: Any, starts: Any, greater: Any, held: Any) -> None:
    """Write where each term's pairs begin, the greater terms, how many documents hold each pair."""
    at, end, pair = 0, len(codes), 0
    terms = len(starts) - 1
    for lesser in range(terms):
        size, at = read_code(codes, at, end)
        starts[lesser + 1] = starts[lesser] + size
        other = 0
        for _ in range(size):
            gap, at = read_code(codes, at, end)
            other += gap
            greater[pair] = other
            times, at = read_code(codes, at, end)
            held[terms + pair] = times + LEAST
            pair += 1


@compiled
def _number(held: Any, places: Any) -> None:
    """Replace how many documents hold a feature by its number."""
    for feature in range(len(held)):
        frequency = held[feature]
        held[feature] = places[frequency]
        places[frequency] += 1


@compiled
def _find(keys: Any, terms: int, starts: Any, greater: Any, numbers: Any, found: Any) -> None:
    known = len(starts) - 1
    for i in range(len(keys)):
        lesser = keys[i] // terms
        other = keys[i] - lesser * terms
        found[i] = -1
        if other >= known:  # the greater of the two
            continue
        low, stop = starts[lesser], starts[lesser + 1]
        high = stop
        while low < high:
            middle = (low + high) >> 1
            if greater[middle] < other:
                low = middle + 1
            else:
                high = middle
        if low < stop and greater[low] == other:
            found[i] = numbers[low]
