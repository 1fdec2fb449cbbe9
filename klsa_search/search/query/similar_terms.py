"""Terms that are spelt like a word, and how likely one is typed instead of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.cached import lazy_property
from klsa_search.search.query.term_dictionary import ENDING, TermDictionary

Terms = npt.NDArray[np.int64]
Distances = npt.NDArray[np.float64]

_BITS: Final = 32
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS: Final = frozenset(
    frozenset(pair)
    for upper, lower in [*pairwise(_ROWS), *((row, row[1:]) for row in _ROWS)]
    for pair in [*zip(upper, lower, strict=False), *zip(upper[1:], lower, strict=False)]
) | frozenset(frozenset(pair) for pair in ("ae", "ai", "ei", "eo", "iy", "ou", "yz", "ck", "sz"))
"""Letters next to each other on a keyboard, or alike in sound."""

SLIP: Final = 3.0
MISSPELT: Final = 4.0
UNLIKELY: Final = 5.5
"""Costs of an edit, -ln of how often it happens: two letters change places or one is doubled; one
is missing, added or replaced by a similar one; another one is replaced."""


class SimilarTerms:
    """Finds the terms of a snapshot that are spelt like a word; thread-safe.

    The first look-up costs 0.1 s per million terms. Memory: 20 bytes a term.
    """

    def __init__(self, analyzer: Analyzer, term_dictionary: TermDictionary) -> None:
        self._analyzer, self._term_dictionary = analyzer, term_dictionary

    def near(self, word: str, edits: int) -> tuple[Terms, Distances]:
        """Return terms near the stem of a word, or near as much of the word as they are long.

        word  folded
        With the number of edits, and half a one for each letter by which the term is shorter.
        Cost: 20 ns for each term with the same first letter.
        """
        length, stem = len(word), self._analyzer.term(word)
        beginnings = {
            size: word[:size] for size in range(max(length - ENDING, 2), length + edits + 1)
        }
        stems = dict.fromkeys(range(len(stem) - edits, len(stem) + edits + 1), stem)
        found: dict[int, float] = {}
        for texts, missing in ((beginnings, 0.5), (stems, 0.0)):
            for place, size, distance in self._within(word, texts, edits):
                value = distance + missing * max(length - size, 0)
                found[place] = min(value, found.get(place, value))
        places = np.fromiter(found, np.int64, len(found))
        distances = np.fromiter(found.values(), np.float64, len(found))
        return self._term_dictionary.numbers[places], distances

    def begun(self, beginning: str, edits: int) -> tuple[Terms, Distances]:
        """Return terms with a beginning within some edits of a folded text: see `near`."""
        found: dict[int, float] = {}
        for first, after in self._ranges(beginning[:1]):
            missing = ~self._letters[first:after] & np.uint32(_letter_set(beginning))
            places = first + np.flatnonzero(np.bitwise_count(missing) <= edits)
            names = [self._term_dictionary.names[place] for place in places.tolist()]
            for length in range(max(len(beginning) - 1, 1), len(beginning) + 2):
                distances = _distances(beginning, [name[:length] for name in names], edits)
                for at in np.flatnonzero(distances <= edits).tolist():
                    place, distance = int(places[at]), float(distances[at])
                    found[place] = min(distance, found.get(place, distance))
        numbers = np.fromiter(found, np.int64, len(found))
        return self._term_dictionary.numbers[numbers], np.fromiter(found.values(), np.float64)

    def _within(
        self, word: str, texts: Mapping[int, str], edits: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield terms within some edits of the text of their length: place, length, distance."""
        sets = np.zeros(max(texts) + 1, np.uint32)
        for length, text in texts.items():
            sets[max(length, 0)] = _letter_set(text)
        for first, after in self._ranges(word[:1], word[1::-1]):
            lengths = self._lengths[first:after]
            places = np.flatnonzero((lengths >= min(texts)) & (lengths <= max(texts)))
            # An edit changes at most two letters of the set.
            differing = sets[lengths[places]] ^ self._letters[first:after][places]
            places = places[np.bitwise_count(differing) <= 2 * edits]
            for length in np.unique(lengths[places]).tolist():
                same = first + places[lengths[places] == length]
                names = [self._term_dictionary.names[place] for place in same.tolist()]
                distances = _distances(texts[length], names, edits)
                for at in np.flatnonzero(distances <= edits).tolist():
                    yield int(same[at]), length, int(distances[at])

    def _ranges(self, *beginnings: str) -> Iterator[tuple[int, int]]:
        """Yield ranges of terms that begin so: typing errors rarely change the first letter."""
        for beginning in dict.fromkeys(beginnings):
            if beginning:
                yield self._term_dictionary.range(beginning)

    @lazy_property
    def _lengths(self) -> npt.NDArray[np.int64]:
        names = self._term_dictionary.names
        return np.fromiter(map(len, names), np.int64, len(names))

    @lazy_property
    def _letters(self) -> npt.NDArray[np.uint32]:
        """Letters of each term as a set of 32 bits."""
        text = "".join(self._term_dictionary.names)
        points = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint32)
        bits = np.left_shift(np.uint32(1), points % np.uint32(_BITS))
        starts = np.cumsum(self._lengths) - self._lengths
        return np.bitwise_or.reduceat(bits, starts) if len(starts) else bits


def _distances(word: str, names: list[str], edits: int) -> npt.NDArray[np.uint8]:
    (distances,) = process.cdist(
        [word], names, scorer=OSA.distance, score_cutoff=edits, dtype=np.uint8
    )
    return np.asarray(distances, np.uint8)


def _letter_set(word: str) -> int:
    letters = 0
    for letter in word:
        letters |= 1 << ord(letter) % _BITS
    return letters


def cost(word: str, meant: str, edits: int) -> float:
    """Return how unlikely a word is typed instead of another: infinite above some edits.

    Words that begin differently are infinitely unlike, unless their first letters changed places.

    >>> cost("pritner", "printer", 1), cost("printre", "printing", 1)
    (3.0, inf)
    """
    if word[0] != meant[0] and word[:2] != meant[1::-1]:
        return np.inf
    distance = OSA.distance(word, meant, score_cutoff=edits)
    if distance == 0 or distance > edits:
        return np.inf if distance else 0.0
    if distance > 1:
        is_ending = word.startswith(meant) or meant.startswith(word)  # perhaps another form
        return MISSPELT + distance if is_ending else MISSPELT * distance + 1
    at = next((at for at, pair in enumerate(zip(word, meant, strict=False)) if len({*pair}) > 1),
              min(len(word), len(meant)))  # fmt: skip
    if len(word) != len(meant):
        longer = max(word, meant, key=len)
        return SLIP if longer[at] in longer[max(at - 1, 0) : at] else MISSPELT
    if word[at + 1 :] != meant[at + 1 :]:
        return SLIP
    return MISSPELT if frozenset((word[at], meant[at])) in _NEIGHBOURS else UNLIKELY
