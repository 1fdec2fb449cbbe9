"""The terms of a collection, their numbers, and their order.

Terms of the build are sorted; terms of later documents follow them. Sorting all terms after each
write would take as long as the first search, so the terms of the build are a run in order of code
points, which later vocabularies share, and later terms are runs of their own, merged so that they
remain few.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from operator import lt
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.analysis.segmentation import characters
from klsa_search.analysis.unicode import fold_accents, may_have_accents
from klsa_search.core.array_types import Numbers, SortedTexts
from klsa_search.core.lazy import lazy_property

_LAST: Final = "\U0010ffff"


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text.

    >>> code_points("ab").tolist()
    [97, 98]
    """
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


class TermRun:
    """Distinct terms of vocabularies, n of them, in order of code points; thread-safe.

    terms  in any order
    first  number of the first of them; the others follow
    Sorted at the first use: 0.3 µs a term, 60 bytes of memory.
    """

    def __init__(self, terms: Sequence[str], first: int) -> None:
        self.terms, self.first = terms, first

    def __len__(self) -> int:
        """Return n."""
        return len(self.terms)

    def beginning_with(self, prefix: str) -> slice:
        """Return where terms with a prefix are in `names`."""
        return slice(bisect_left(self.names, prefix), bisect_left(self.names, prefix + _LAST))

    def ending_with(self, ending: str) -> list[str]:
        """Return the terms that end with a text. Cost: 10 µs and theirs, once they are sorted."""
        names, positions = self.names, self._by_ending
        bounds = (
            bisect_left(positions, text, key=lambda at: names[at][::-1])
            for text in (ending[::-1], ending[::-1] + _LAST)
        )
        return [names[at] for at in positions[slice(*bounds)].tolist()]

    @lazy_property
    def names(self) -> list[str]:
        """The terms in order."""
        return sorted(self.terms)

    @lazy_property
    def numbers(self) -> Numbers:
        """The numbers of the terms in order: (n,)."""
        terms = list(self.terms)  # from arrays, single terms cost more
        return self.first + np.array(sorted(range(len(terms)), key=terms.__getitem__), np.int64)

    @lazy_property
    def with_character(self) -> Mapping[str, Sequence[int]]:
        """Where pairs with a character are in `names`, by character."""
        positions_of: dict[str, list[int]] = {}
        for position, name in enumerate(self.names):
            for character in {*characters(name)}:
                positions_of.setdefault(character, []).append(position)
        return positions_of

    @lazy_property
    def without_accents(self) -> Mapping[str, Sequence[int]]:
        """Where terms with accents are in `names`, by what they are without."""
        positions_of: dict[str, list[int]] = {}
        accented = [(at, name) for at, name in enumerate(self.names) if may_have_accents(name)]
        plain = fold_accents("\n".join(name for _, name in accented)).split("\n")  # all at once
        for (position, name), without in zip(accented, plain, strict=bool(accented)):
            if without != name:
                positions_of.setdefault(without, []).append(position)
        return positions_of

    @lazy_property
    def lengths(self) -> Numbers:
        """The characters of each term, in order of the terms: (n,)."""
        return np.fromiter(map(len, self.names), np.int64, len(self.names))

    @lazy_property
    def letters(self) -> _native.TermLetters:
        """The letters of the terms in order."""
        starts = np.append(0, np.cumsum(self.lengths))
        return _native.TermLetters(code_points("".join(self.names)), starts)

    @lazy_property
    def _by_ending(self) -> Numbers:
        """Where the terms are in `names`, in order of the terms from their ends: (n,)."""
        reversed_names = [name[::-1] for name in self.names]
        return np.array(sorted(range(len(self)), key=reversed_names.__getitem__), np.int64)


class TermRuns:
    """All terms of a vocabulary, in runs; immutable and thread-safe."""

    def __init__(self, runs: Sequence[TermRun]) -> None:
        self.runs = tuple(runs)

    def extended(self, terms: Sequence[str]) -> TermRuns:
        """Return the runs with further terms, which share those of this one."""
        runs = [*self.runs, TermRun(tuple(terms), sum(map(len, self.runs)))]
        while len(runs) > 2 and len(runs[-1]) >= len(runs[-2]):
            last, before = runs.pop(), runs.pop()
            runs.append(TermRun((*before.terms, *last.terms), before.first))
        return TermRuns(runs)

    def numbers(self, prefix: str) -> Numbers:
        """Return the numbers of the terms with a prefix, in order of the terms: (n,)."""
        ranges = [run.beginning_with(prefix) for run in self.runs]
        return self._in_order([np.arange(range_.start, range_.stop) for range_ in ranges])

    def names(self, prefix: str) -> list[str]:
        """Return the terms with a prefix, in order."""
        return sorted(name for run in self.runs for name in run.names[run.beginning_with(prefix)])

    def ending_with(self, ending: str) -> list[str]:
        """Return the terms that end with a text: see `TermRun.ending_with`."""
        return [name for run in self.runs for name in run.ending_with(ending)]

    def with_character(self, character: str) -> Numbers:
        """Return the numbers of the pairs with a character, in order of the terms: (n,)."""
        return self._in_order([run.with_character.get(character, ()) for run in self.runs])

    def accented(self, plain: str) -> Numbers:
        """Return the numbers of the terms whose plain letters are these, in order: (n,)."""
        return self._in_order([run.without_accents.get(plain, ()) for run in self.runs])

    def _in_order(self, positions: Sequence[Sequence[int] | Numbers]) -> Numbers:
        """Return the numbers of terms at positions of each run, in order of the terms: (n,)."""
        of_runs = [
            (run, np.asarray(at, np.int64))
            for run, at in zip(self.runs, positions, strict=True)
            if len(at)
        ]
        if not of_runs:
            return np.zeros(0, np.int64)
        numbers = np.concatenate([run.numbers[at] for run, at in of_runs])
        if len(of_runs) > 1:
            names = [run.names[position] for run, at in of_runs for position in at.tolist()]
            numbers = numbers[sorted(range(len(names)), key=names.__getitem__)]
        return numbers


class Vocabulary:
    """V distinct terms, those of the build sorted by code point, and their numbers.

    A term that no live document contains stays in `terms` but has no number. `runs` has the terms
    in order; vocabularies that extend this one share it. Memory: the strings and one dict entry per
    term; lookup is O(1).
    """

    _extends: tuple[Vocabulary, Mapping[str, int]] | None = None  # with further terms

    def __init__(self, terms: Iterable[str]) -> None:
        self.terms: Sequence[str] = tuple(terms)
        # No Python loop over the terms: this is most of the time of opening an index.
        self.numbers: Mapping[str, int] = dict(zip(self.terms, range(len(self.terms)), strict=True))
        if not all(map(lt, self.terms, islice(self.terms, 1, None))):
            raise ValueError("the terms of a vocabulary must be sorted and distinct")
        self.runs = TermRuns([TermRun(self.terms, 0)])

    def __len__(self) -> int:
        """Return V, the number of terms."""
        return len(self.terms)

    @classmethod
    def _of(cls, terms: Sequence[str], numbers: Mapping[str, int], runs: TermRuns) -> Vocabulary:
        """Return a vocabulary of terms that are known to be distinct."""
        vocabulary = object.__new__(Vocabulary)
        vocabulary.terms, vocabulary.numbers, vocabulary.runs = terms, numbers, runs
        return vocabulary

    @property
    def later(self) -> Mapping[str, int]:
        """Return the numbers of the terms by which it extends the vocabulary of the build."""
        return {} if self._extends is None else self._extends[1]

    def extended(self, words: Sequence[str]) -> Vocabulary:
        """Return a vocabulary with further terms. Cost: the terms since the build."""
        if not words:
            return self
        built, before = self._extends or (self, {})
        later = {
            **before,
            **dict(zip(words, range(len(self), len(self) + len(words)), strict=True)),
        }
        terms = _JoinedTerms([built.terms, list(later)])
        numbers = _JoinedNumbers(terms, [built.numbers.get, later.get])
        vocabulary = self._of(terms, numbers, self.runs.extended(words))
        vocabulary._extends = built, later
        return vocabulary

    def without(self, unused: npt.NDArray[np.bool_]) -> Vocabulary:
        """Return a vocabulary in which some terms have no number.

        unused  (V,) whether no live document contains a term
        Cost and memory: a byte a term.
        """
        return (
            self._of(self.terms, _LiveNumbers(self.numbers, unused), self.runs)
            if unused.any()
            else self
        )


class StoredVocabulary(Vocabulary):
    """A vocabulary of which many terms stay in arrays.

    leading  terms with the first numbers
    stored   terms that follow, sorted, none of which is among these
    Memory and cost: those of `leading`.
    """

    def __init__(self, leading: Vocabulary, stored: SortedTexts) -> None:
        def number_in_stored(term: str) -> int | None:
            position = stored.find(term)
            return None if position is None else len(leading) + position

        self.terms = _JoinedTerms([leading.terms, stored])
        self.numbers = _JoinedNumbers(self.terms, (leading.numbers.get, number_in_stored))
        self.runs = TermRuns([*leading.runs.runs, TermRun(stored, len(leading))])


class _JoinedTerms(Sequence[str]):
    """Terms by number: those of several sequences, one after the other."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self._parts = parts
        self._ends = [*accumulate(map(len, parts))]

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[str]: ...
    def __getitem__(self, number: int | slice) -> str | Sequence[str]:
        if isinstance(number, slice):
            return [self[index] for index in range(*number.indices(len(self)))]
        part = bisect_right(self._ends, number)
        if part == len(self._parts):
            raise IndexError(number)
        return self._parts[part][number - (self._ends[part - 1] if part else 0)]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._ends[-1]


class _JoinedNumbers(Mapping[str, int]):
    """Numbers of terms, each found by the first of some functions that returns one."""

    def __init__(
        self, terms: Sequence[str], lookups: Sequence[Callable[[str], int | None]]
    ) -> None:
        self._terms, self._lookups = terms, lookups

    def __getitem__(self, term: str) -> int:
        for lookup in self._lookups:
            number = lookup(term)
            if number is not None:
                return number
        raise KeyError(term)

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)


class _LiveNumbers(Mapping[str, int]):
    """Numbers of terms, without some of the numbers."""

    def __init__(self, numbers: Mapping[str, int], unused: npt.NDArray[np.bool_]) -> None:
        self._numbers, self._unused = numbers, unused.tobytes()  # looked up three times as fast

    def __getitem__(self, term: str) -> int:
        number = self._numbers[term]
        if self._unused[number]:
            raise KeyError(term)
        return number

    def __iter__(self) -> Iterator[str]:
        return (term for term, number in self._numbers.items() if not self._unused[number])

    def __len__(self) -> int:
        return len(self._numbers) - sum(self._unused)
