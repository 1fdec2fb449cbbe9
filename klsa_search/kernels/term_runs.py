"""The terms of a vocabulary in order of code points, in sorted runs.

Writes add terms at the end of a vocabulary. Sorting all terms after each write would take as long
as the first search, so the terms of the build are a run, which later vocabularies share, and later
terms are runs of their own, merged so that they remain few.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.segmentation import characters
from klsa_search.core.cached import lazy_property

_LAST: Final = "\U0010ffff"
_BITS: Final = 32

_Numbers = npt.NDArray[np.int64]
_Sets = npt.NDArray[np.uint32]


def letter_set(word: str) -> int:
    """Return the letters of a word as a set of 32 bits.

    >>> letter_set("ab") == letter_set("abba")
    True
    """
    letters = 0
    for letter in word:
        letters |= 1 << ord(letter) % _BITS
    return letters


class TermRun:
    """Consecutive terms, n of them, in order of code points; immutable and thread-safe.

    first  number of the first term
    terms  in order of their numbers
    Sorted at the first use: 0.3 µs a term, 60 bytes of memory.
    """

    def __init__(self, first: int, terms: Sequence[str]) -> None:
        self.first, self.terms = first, terms

    def __len__(self) -> int:
        """Return n."""
        return len(self.terms)

    def merged(self, later: TermRun) -> TermRun:
        """Return the run of these terms and of those that follow them."""
        return TermRun(self.first, (*self.terms, *later.terms))

    def beginning_with(self, prefix: str) -> slice:
        """Return where terms with a prefix are in `names` and `numbers`."""
        return slice(bisect_left(self.names, prefix), bisect_left(self.names, prefix + _LAST))

    def ending_with(self, ending: str) -> Iterator[str]:
        """Yield the terms that end with a text. Cost: 1 ms per million characters of terms."""
        text, marked = self._text, f"{ending}\n"
        at = text.find(marked)
        while at >= 0:
            yield text[text.rfind("\n", 0, at) + 1 : at + len(ending)]
            at = text.find(marked, at + 1)

    @lazy_property
    def names(self) -> list[str]:
        """The terms in order."""
        return sorted(self.terms)

    @lazy_property
    def numbers(self) -> _Numbers:
        """The numbers of the terms in order: (n,)."""
        terms = list(self.terms)  # from arrays, single terms cost more
        return self.first + np.array(sorted(range(len(terms)), key=terms.__getitem__), np.int64)

    @lazy_property
    def with_character(self) -> Mapping[str, Sequence[int]]:
        """The numbers of terms by the characters of pairs, in order of the terms."""
        numbers_of: dict[str, list[int]] = {}
        for number, name in zip(self.numbers.tolist(), self.names, strict=True):
            for character in {*characters(name)}:
                numbers_of.setdefault(character, []).append(number)
        return numbers_of

    @lazy_property
    def lengths(self) -> _Numbers:
        """The characters of each term, in order of the terms: (n,)."""
        return np.fromiter(map(len, self.names), np.int64, len(self.names))

    @lazy_property
    def letters(self) -> _Sets:
        """The letters of each term, in order of the terms: (n,), see `letter_set`."""
        text = "".join(self.names)
        points = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint32)
        bits = np.left_shift(np.uint32(1), points % np.uint32(_BITS))
        starts = np.cumsum(self.lengths) - self.lengths
        return np.bitwise_or.reduceat(bits, starts) if len(starts) else bits

    @lazy_property
    def _text(self) -> str:
        """All terms, each between line ends."""
        return "\n".join(["", *self.names, ""])


class TermRuns:
    """All terms of a vocabulary, in runs; immutable and thread-safe."""

    def __init__(self, runs: Sequence[TermRun]) -> None:
        self.runs = tuple(runs)

    def extended(self, terms: Sequence[str]) -> TermRuns:
        """Return the runs with further terms, which share those of this one."""
        runs = [*self.runs, TermRun(sum(map(len, self.runs)), tuple(terms))]
        while len(runs) > 2 and len(runs[-1]) >= len(runs[-2]):
            last = runs.pop()
            runs.append(runs.pop().merged(last))
        return TermRuns(runs)

    def numbers(self, prefix: str) -> _Numbers:
        """Return the numbers of the terms with a prefix, in order of the terms: (n,)."""
        ranges = [(run, run.beginning_with(prefix)) for run in self.runs]
        numbers = np.concatenate([run.numbers[range_] for run, range_ in ranges])
        if np.count_nonzero([range_.start < range_.stop for _, range_ in ranges]) > 1:
            names = [name for run, range_ in ranges for name in run.names[range_]]
            numbers = numbers[sorted(range(len(names)), key=names.__getitem__)]
        return numbers

    def names(self, prefix: str) -> list[str]:
        """Return the terms with a prefix, in order."""
        names_by_run = [run.names[run.beginning_with(prefix)] for run in self.runs]
        return sorted(name for names in names_by_run for name in names)

    def ending_with(self, ending: str) -> Iterator[str]:
        """Yield the terms that end with a text. Cost: 1 ms per million characters of terms."""
        for run in self.runs:
            yield from run.ending_with(ending)

    def with_character(self, character: str) -> _Numbers:
        """Return the numbers of the pairs with a character, run by run: (n,)."""
        numbers_by_run = [run.with_character.get(character, ()) for run in self.runs]
        return np.array([number for numbers in numbers_by_run for number in numbers], np.int64)
