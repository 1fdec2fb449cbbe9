"""Words that some documents write joined: UTF8 for UTF-8, 10mm for 10 mm, wifi for wi-fi.

Words are joined across a hyphen or another sign between letters, and across a blank if letters meet
digits there, if these are groups of digits, if no document contains one of them, or if both are
words of letters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

from klsa_search.analysis.searched_text import MAX_PARTS
from klsa_search.analysis.segmentation import WITHOUT_SPACES_PATTERN
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN, TermNumbers
from klsa_search.search.query.division import JOINING_SIGNS, RARER, WordCounts, spelled_name
from klsa_search.search.query.interpretation import Variant, Word

SHORTEST_ENDING: Final = 3
"""Letters of an ending apart from its stem, at least: *copi ing*, but not *drucker e*."""

_RUN: Final = re.compile(r"[^\W_]++")

LETTER: Final = 1
DIGIT: Final = 2
UNKNOWN_RUN: Final = 4
"""Kinds of an end of a run: a letter or a digit, and whether no document contains the run."""

_SPELLED_ENDS: Final = ("sharp", "plus")

_WITHOUT_SPACES: Final = re.compile(WITHOUT_SPACES_PATTERN)
_DECIMAL: Final = re.compile(r"\d[.,](?!\d{3}(?!\d))\d")  # 12.5 is not 125, 1.250 is 1250
_APART: Final = re.compile(r"[^\W_]+(?:[ \-‐‑][^\W_]+)+")
_GROUP: Final = re.compile(r"\d{1,3} \d{3}")


class Run(NamedTuple):
    """A run of letters and digits in a text.

    first, last  kinds of its ends
    may_begin    whether it is a word that may begin another one, before a blank
    may_end      whether it may end another one, after a blank
    sign         what joins it to the next run; a blank if nothing follows, "" if nothing joins
    """

    text: str
    first: int
    last: int
    may_begin: bool
    may_end: bool
    sign: str


NO_RUN: Final = Run("", 0, 0, may_begin=False, may_end=False, sign="")


class Joiner:
    """Joins words by the terms of one snapshot; thread-safe."""

    def __init__(self, counts: WordCounts) -> None:
        self._counts, self._numbers = counts, counts.numbers

    def joined(self, text: str, evidence: Evidence) -> list[Variant]:
        """Return words of a text that documents write joined: wi-fi, wifi; 10 mm, 10mm.

        Words that no document contains are not joined by themselves as well if they are part of a
        longer such word with another one: documents need not contain both 135x200 and x200.
        """
        sequences = dict.fromkeys(self._sequences(runs_of(text, self._numbers)))
        variants = (self._variant(sequence, evidence) for sequence in sequences)
        joined = [variant for variant in variants if variant is not None]
        inner = {part for variant in joined for part in self._inner(words_of(variant.written))}
        return [one for one in joined if one.of or (*words_of(one.written),) not in inner]

    def _inner(self, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield sequences of some of these words, if no document contains one of the others."""
        for size in range(2, len(words)):
            for first in range(len(words) - size + 1):
                outside = (*words[:first], *words[first + size :])
                if any(self._numbers[word] == UNKNOWN for word in outside):
                    yield tuple(words[first : first + size])

    def _sequences(self, runs: Sequence[Run]) -> Iterator[str]:
        """Yield sequences of runs that may be a word of the index, as written."""
        for first, run in enumerate(runs):
            joined, written = [run.text], run.text
            for before, following in pairwise(runs[first : first + MAX_PARTS]):
                if not before.sign:
                    break
                if before.sign == " " and not self._may_be_one(before, following):
                    break
                joined.append(following.text)
                written += before.sign + following.text
                if self._numbers[self._word_of(joined)] >= 0:
                    yield written

    def read_together(self, left: Run, right: Run) -> bool:
        """Return whether `joined` looks across the blank between two runs."""
        return bool(left.last & right.first & DIGIT) or self._may_be_one(left, right)

    def _may_be_one(self, left: Run, right: Run) -> bool:
        """Return whether runs on both sides of a blank may be parts of one word.

        They may if letters meet digits, if no document contains one of them, if they are groups of
        digits, or if documents write these two words of letters as one.
        """
        if not (left.last and right.first):
            return False
        if (left.last | right.first) & UNKNOWN_RUN or left.last != right.first:
            return True
        if left.last == DIGIT:
            return _GROUP.fullmatch(f"{left.text} {right.text}") is not None
        are_words = left.may_begin and right.may_end
        return are_words and self._numbers[self._word_of([left.text, right.text])] >= 0

    def _word_of(self, words: Sequence[str]) -> str:
        """Return words as one, or the name that they spell: C# of *c sharp*, .NET of *dot net*."""
        joined = "".join(words)
        if joined.lower().endswith(_SPELLED_ENDS) or joined[:3].lower() == "dot":
            name = spelled_name(joined, self._counts.analyzer)
            if name is not None and self._counts.of(name) > self._counts.of(joined):
                return name
        return joined

    def _variant(self, sequence: str, evidence: Evidence) -> Variant | None:
        """Return the word that documents write for a sequence of words, if there is one."""

        def find() -> Variant | None:
            words = words_of(sequence)
            joined = self._word_of(words)
            number, numbers = self._numbers[joined], [self._numbers[word] for word in words]
            if number < 0 or len(list(self._counts.analyzer.map_words(joined, str, str))) != 1:
                return None
            if _DECIMAL.search(sequence):
                return None
            unknown = (len(one) for one, n in zip(words, numbers, strict=True) if n == UNKNOWN)
            if " " in sequence and number in numbers and min(unknown, default=0) < SHORTEST_ENDING:
                return None
            are_known = " " in sequence and UNKNOWN not in numbers
            if are_known and not self._is_meant(words, number, evidence):
                return None
            of = tuple(number for number in numbers if number >= 0)
            return Variant(sequence, of, (Word(joined, number),))

        return evidence.cached(self._counts.derived, ("variant", sequence), find)

    def _is_meant(self, words: Sequence[str], joined: int, evidence: Evidence) -> bool:
        """Return whether a word that documents write is meant by words that they contain.

        It must not be much rarer than the words side by side. One of letters alone must not weigh
        more than these, if any document has them: with *TIMEBASES*, MAP of npl falls by .35%.
        """
        counts, numbers = self._counts, [self._numbers[word] for word in words]
        are_common = all(number == NO_TERM or counts.is_common(number) for number in numbers)
        if are_common:  # as in *some times*
            return False
        apart, frequency = counts.side_by_side(words, evidence), counts.of_term(joined)
        if not all(map(str.isalpha, words)):
            return apart <= RARER * frequency
        counts.derived.note_all()  # weights depend on the number of documents
        weights = counts.snapshot.query_kernel.weights([joined, *(n for n in numbers if n >= 0)])
        is_heavier = int(weights[0]) > int(weights[1:].sum())
        return apart <= frequency and not (apart and is_heavier and NO_TERM not in numbers)

    def replace_split(
        self, words: list[Word], joined: list[Variant], evidence: Evidence
    ) -> tuple[list[Word], list[Variant]]:
        """Leave out words that documents write as one, but never side by side: *head phones*.

        Of several that share words, the one with the fewest words that documents contain, else the
        shortest: *insta nce* rather than *DB insta nce*, which would leave out *DB*.
        """
        split: set[str] = set()
        candidates = [one for one in joined if may_be_split(one) and self._is_split(one, evidence)]
        candidates.sort(key=lambda one: (len(one.of), len(words_of(one.written))))
        for variant in candidates:
            parts = words_of(variant.written)
            if split.isdisjoint(parts):
                joined[joined.index(variant)] = variant._replace(of=())
                split.update(parts)
            elif not variant.of:
                joined.remove(variant)
        return [word for word in words if word.text not in split] if split else words, joined

    def _is_split(self, variant: Variant, evidence: Evidence) -> bool:
        """Return whether a joined word is meant instead of its parts, as in *head phones*.

        No document contains one of these, or has them side by side, and the word is at least half
        as frequent as the rarest.
        """
        words = words_of(variant.written)
        numbers = [self._numbers[word] for word in words]
        if UNKNOWN in numbers:
            return True
        (joined,) = variant.words
        frequencies = [self._counts.of_term(number) for number in numbers if number >= 0]
        if 2 * self._counts.of_term(joined.number) < min(frequencies, default=0):
            return False
        return not self._counts.side_by_side(words, evidence)


def may_be_split(variant: Variant) -> bool:
    """Return whether it is one word for several that only blanks or hyphens divide: not C#."""
    is_word = all(word.text.isalpha() for word in variant.words)
    return is_word and _APART.fullmatch(variant.written) is not None


def covered_words(variants: Sequence[Variant]) -> Collection[str]:
    """Return the words that have other writings."""
    return {word for variant in variants for word in words_of(variant.written)}


def words_of(text: str) -> list[str]:
    """Return the words of a text, without any sign."""
    return _RUN.findall(text)


def runs_of(text: str, numbers: TermNumbers) -> list[Run]:
    """Return the runs of letters and digits of a text."""
    matches = list(_RUN.finditer(text))
    ends = chain((match.start() for match in matches[1:]), [len(text)])
    runs = []
    for match, end in zip(matches, ends, strict=False):
        word, number = match[0], numbers[match[0]]
        unknown = UNKNOWN_RUN * (number == UNKNOWN)
        first, last = (DIGIT if end.isdecimal() else LETTER for end in (word[0], word[-1]))
        is_word = word.isalpha() and (word.isascii() or not _WITHOUT_SPACES.search(word))
        after = text[match.end() : end] or " "
        after = " " if after.isspace() and len(after) == 1 else after  # also one without a break
        runs.append(
            Run(
                word,
                unknown | first,
                unknown | last,
                may_begin=is_word and number >= 0,
                # A stop word only ends one: log in, login.
                may_end=is_word and (number >= 0 or (number == NO_TERM and len(word) > 1)),
                sign=after if len(after) == 1 and after in JOINING_SIGNS + " " else "",
            )
        )
    return runs
