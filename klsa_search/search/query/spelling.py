"""What a word that no document holds may have been meant to be, by the words that documents hold.

A word is put right where one of the documents' own is at most one or two edits away: a letter too
many, too few, another, or two that changed places [Damerau 1964], each stretch of letters edited
once. What the vocabulary holds are stems, so they are compared with as much of the word as they are
long, and what comes near is compared once more as documents write it: that alone decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.cached import lazy_property
from klsa_search.search.query.matching import with_phrase
from klsa_search.search.query.term_dictionary import ENDING, TermDictionary
from klsa_search.search.query.word_forms import written_as
from klsa_search.search.snapshot import Snapshot

SHORTEST: Final = 4
"""Letters of a word that is put right, at least: shorter ones have too many neighbours."""

SURE: Final = 6
"""Letters from which on a word that is near another is most often that: of the short words of
judged queries that no document holds, five of six are words of their own.
"""

MANY: Final = 1000
"""Documents from which on an unknown word is more often misspelt than a word of its own: of the
corrections of judged queries' words over fewer documents, most replace a word that is right
(`python -m studies.effectiveness spelling`).
"""

LONG: Final = 8
"""Letters from which on two edits are allowed."""

LONGEST: Final = 40
"""Letters of a word that is put right, at most."""

_LOOKED_AT: Final = 8
"""Terms of which the written forms are read."""

_REMEMBERED: Final = 4096
_BITS: Final = 32


class Correction(NamedTuple):
    """What a word is put right as.

    terms  numbers of the terms
    words  as documents write them
    sure   whether it replaces the word, or is only suggested
    """

    terms: tuple[int, ...]
    words: str
    sure: bool = True


class SpellChecker:
    """Puts words right by what one snapshot holds; safe to share between threads.

    The first one costs 0.1 s for each million of terms, each word some 10 ms, for the documents
    that are read; up to 4,096 words are remembered. Memory: 60 bytes a term.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        lexicon: TermDictionary,
    ) -> None:
        self._snapshot, self._analyzer, self._lexicon = snapshot, analyzer, lexicon
        self._found: dict[str, Correction | None] = {}

    def correction(self, word: str) -> Correction | None:
        """Put a word right that no document holds; None where nothing is near."""
        folded = self._analyzer.folded(word)
        if not SHORTEST <= len(folded) <= LONGEST or not folded.isalpha():
            return None
        if self._analyzer.term(folded) in self._common:
            return None
        with suppress(KeyError):  # one look, as another thread may clear them after it
            return self._found[folded]
        found = self._parted(folded) or self._nearest(folded)
        if len(self._found) >= _REMEMBERED:
            self._found.clear()
        self._found[folded] = found
        return found

    def _parted(self, word: str) -> Correction | None:
        """Two words that stand side by side in most documents, and the word written as one."""
        numbers, best = self._snapshot.vocabulary.numbers, 0
        found: Correction | None = None
        for place in range(1, len(word)):
            parts = word[:place], word[place:]
            terms = [numbers.get(self._analyzer.term(part), -1) for part in parts]
            if min(terms) < 0:
                continue
            documents = int(np.count_nonzero(with_phrase(self._snapshot, terms) & self._counting))
            if documents > best:
                best, found = documents, Correction(tuple(terms), " ".join(parts))
        return found

    def _nearest(self, word: str) -> Correction | None:
        """The nearest word that documents hold, the one in most of them among equals."""
        edits = 2 if len(word) >= LONG else 1
        terms = self._near(word, edits)
        frequencies = self._snapshot.bm25.frequencies
        best: tuple[tuple[int, int, str], int, str, str] | None = None
        for term, writings in zip(terms, self._lexicon.forms(terms), strict=True):
            if not writings:
                continue
            stem = self._snapshot.vocabulary.terms[term]
            known = {form.casefold() for form in writings}
            apart = {form: _edits(word, self._analyzer.folded(form), edits) for form in known}
            key = (min(apart.values()), -int(frequencies[term]), stem)
            if key[0] <= edits and (best is None or key < best[0]):
                form = min(known, key=lambda each: (apart[each], each))
                best = key, term, written_as(writings, form), form
        if best is None:
            return None
        _, term, written, form = best
        swapped = sorted(self._analyzer.folded(form)) == sorted(word)
        enough = self._snapshot.bm25.documents >= MANY
        return Correction((term,), written, swapped or (enough and len(word) >= SURE))

    def _near(self, word: str, edits: int) -> list[int]:
        """Terms that are near the stem of a word, or as much of it as they are long."""
        whole, stem = len(word), self._analyzer.term(word)
        longest = whole + edits
        beginnings = {
            length: word[:length] for length in range(max(whole - ENDING, 2), longest + 1)
        }
        stems = dict.fromkeys(range(len(stem) - edits, len(stem) + edits + 1), stem)
        ranks: dict[int, float] = {}
        for length, number, distance in self._within(word, beginnings, edits):
            ranks[number] = distance + max(whole - length, 0) / 2
        for _, number, distance in self._within(word, stems, edits):
            ranks[number] = min(distance, ranks.get(number, distance))
        frequencies = self._snapshot.bm25.frequencies
        nearest = sorted(ranks, key=lambda each: (ranks[each], -int(frequencies[each]), each))
        return nearest[:_LOOKED_AT]

    def _within(
        self, word: str, texts: Mapping[int, str], edits: int
    ) -> Iterator[tuple[int, int, int]]:
        """Terms that are some edits from the text for their length: length, number, distance."""
        lengths, letters = self._lengths, self._letters
        sets = np.zeros(max(texts) + 1, np.uint32)
        for length, text in texts.items():
            sets[length] = _set_of(text)
        begun = self._points[self._starts]  # see `_edits`
        alike = np.isin(begun, [ord(letter) for letter in word[:2]])
        fitting = np.flatnonzero(alike & (lengths >= min(texts)) & (lengths <= max(texts)))
        # An edit changes at most two of the letters that a word has.
        apart = np.bitwise_count(sets[lengths[fitting]] ^ letters[fitting])
        fitting = fitting[apart <= 2 * edits]
        fitting = fitting[self._snapshot.bm25.frequencies[fitting] > 0]
        terms = self._snapshot.vocabulary.terms
        for length in np.unique(lengths[fitting]).tolist():
            numbers = fitting[lengths[fitting] == length]
            (distances,) = process.cdist(
                [texts[length]],
                [terms[number] for number in numbers.tolist()],
                scorer=OSA.distance,
                score_cutoff=edits,
                dtype=np.uint8,
            )
            for place in np.flatnonzero(distances <= edits).tolist():
                yield length, int(numbers[place]), int(distances[place])

    @lazy_property
    def _common(self) -> frozenset[str]:
        """Terms of the language's function words, which are right whatever documents hold."""
        return self._analyzer.common()

    @lazy_property
    def _counting(self) -> npt.NDArray[np.bool_]:
        return self._snapshot.counting()

    @lazy_property
    def _lengths(self) -> npt.NDArray[np.int64]:
        terms = self._snapshot.vocabulary.terms
        return np.fromiter(map(len, terms), np.int64, len(terms))

    @lazy_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self._lengths) - self._lengths

    @lazy_property
    def _points(self) -> npt.NDArray[np.uint32]:
        """Code points of all terms, one after the other."""
        text = "".join(self._snapshot.vocabulary.terms)
        return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint32)

    @lazy_property
    def _letters(self) -> npt.NDArray[np.uint32]:
        """Of each term the set of its letters, one bit of 32 for each."""
        bits = np.left_shift(np.uint32(1), self._points % np.uint32(_BITS))
        return np.bitwise_or.reduceat(bits, self._starts) if len(self._starts) else bits


def _edits(word: str, other: str, most: int) -> int:
    """Edits between two words, more than `most` where they begin differently: who types looks."""
    if word[0] != other[0] and word[:2] != other[1::-1]:
        return most + 1
    return OSA.distance(word, other, score_cutoff=most)


def _set_of(word: str) -> int:
    found = 0
    for letter in word:
        found |= 1 << ord(letter) % _BITS
    return found
