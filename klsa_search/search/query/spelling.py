"""Spelling correction of words that no document contains.

A correction is a term at one or two edits: insertion, deletion, substitution or transposition
(optimal string alignment [Damerau 1964]). Terms are stems, so they are compared with as much of the
word as they are long; the candidates are then compared as documents write them, which decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.cached import cached_method, lazy_property
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.compounds import Compounds
from klsa_search.search.query.evidence import LOCAL, Evidence
from klsa_search.search.query.term_dictionary import ENDING, TermDictionary
from klsa_search.search.query.word_forms import written_as

SHORTEST: Final = 4
"""Letters of a word that is corrected, at least: shorter words have too many neighbours."""

SHORT: Final = 3
"""Letters of a word that is corrected if documents contain no word of the query, at least."""

SURE: Final = 6
"""Letters from which a similar word replaces an unknown one: of shorter unknown words in judged
queries, five of six are correct.
"""

MANY: Final = 1000
"""Documents from which an unknown word is more often misspelt than correct: with fewer, most
corrections in judged queries replace correct words (`python -m studies.effectiveness spelling`).
"""

LONG: Final = 8
"""Letters from which two edits are allowed."""

LONGEST: Final = 40
"""Letters of a word that is corrected, at most."""

_MAX_CANDIDATES: Final = 8
"""Terms whose written forms are read."""

_CACHE_SIZE: Final = 4096
_BITS: Final = 32


class Correction(NamedTuple):
    """A correction of a word.

    terms  term numbers
    words  as documents write them
    sure   whether it replaces the word, or is only suggested
    """

    terms: tuple[int, ...]
    words: str
    sure: bool = True


class SpellChecker:
    """Corrects words by the terms of one snapshot; thread-safe.

    The first correction costs 0.1 s per million terms, each word some 10 ms for reading documents;
    the candidates of 4,096 words are cached, and their corrections by the documents of the snapshot
    alone. Memory: 60 bytes a term.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        term_dictionary: TermDictionary,
        compounds: Compounds,
    ) -> None:
        self._snapshot, self._analyzer, self._term_dictionary = snapshot, analyzer, term_dictionary
        self._compounds = compounds
        self._candidates = cached_method(self._find_candidates, _CACHE_SIZE)
        self._local_correction = cached_method(self._find_local_correction, _CACHE_SIZE)

    def correction(
        self, word: str, evidence: Evidence, *, abbreviation: bool = False, alone: bool = False
    ) -> Correction | None:
        """Return the correction of a word that no document contains, or None.

        abbreviation  whether it is written like one: only split, unless `alone`
        alone  whether documents contain no word of the query: correct words of `SHORT` letters too,
               and replace words from `SURE` letters in an index of any size, and shorter ones, but
               for abbreviations, in an index of `MANY` documents
        """
        if evidence is LOCAL:
            return self._local_correction(word, abbreviation, alone)
        return self._find_correction(evidence, word, abbreviation, alone)

    def _find_local_correction(
        self, word: str, abbreviation: bool, alone: bool
    ) -> Correction | None:
        return self._find_correction(LOCAL, word, abbreviation, alone)

    def _find_correction(
        self, evidence: Evidence, word: str, abbreviation: bool, alone: bool
    ) -> Correction | None:
        folded = self._analyzer.folded(word)
        if self._analyzer.term(folded) in self._common:
            return None
        shortest = SHORT if alone else SHORTEST
        is_word = shortest <= len(folded) <= LONGEST and folded.isalpha()
        parts = self._compounds.parts(word, evidence, anywhere=is_word)
        if parts:
            terms = tuple(part.number for part in parts)
            return Correction(terms, " ".join(part.text for part in parts))
        found = self._nearest(folded, evidence) if is_word and (alone or not abbreviation) else None
        if found is None or found.sure:
            return found
        large = self._snapshot.query_kernel.documents >= MANY
        if len(folded) >= SURE:
            return found._replace(sure=large or alone)
        return found._replace(sure=large and alone and not abbreviation)

    def _nearest(self, word: str, evidence: Evidence) -> Correction | None:
        """Return the nearest word that documents contain, the most frequent of equals.

        It is sure if only letters changed their order.
        """
        edits = 2 if len(word) >= LONG else 1
        terms = self._candidates(word, edits)
        frequencies = self._snapshot.query_kernel.frequencies
        best: tuple[tuple[int, int, str], int, str, str] | None = None
        for term, forms in zip(terms, self._term_dictionary.forms(terms, evidence), strict=True):
            if not forms:
                continue
            stem = self._snapshot.vocabulary.terms[term]
            known = {form.casefold() for form in forms}
            differing = {
                form: _distance(word, self._analyzer.folded(form), edits) for form in known
            }
            key = (min(differing.values()), -int(frequencies[term]), stem)
            if key[0] <= edits and (best is None or key < best[0]):
                form = min(known, key=lambda each: (differing[each], each))
                best = key, term, written_as(forms, form), form
        if best is None:
            return None
        _, term, written, form = best
        transposed = sorted(self._analyzer.folded(form)) == sorted(word)
        return Correction((term,), written, transposed)

    def _find_candidates(self, word: str, edits: int) -> list[int]:
        """Return terms near the stem of a word, or near as much of the word as they are long."""
        length_, stem = len(word), self._analyzer.term(word)
        longest = length_ + edits
        beginnings = {
            length: word[:length] for length in range(max(length_ - ENDING, 2), longest + 1)
        }
        stems = dict.fromkeys(range(len(stem) - edits, len(stem) + edits + 1), stem)
        ranks: dict[int, float] = {}
        for length, number, distance in self._near_terms(word, beginnings, edits):
            ranks[number] = distance + max(length_ - length, 0) / 2
        for _, number, distance in self._near_terms(word, stems, edits):
            ranks[number] = min(distance, ranks.get(number, distance))
        frequencies = self._snapshot.query_kernel.frequencies
        names = self._snapshot.vocabulary.terms
        nearest = sorted(
            ranks, key=lambda each: (ranks[each], -int(frequencies[each]), names[each])
        )
        return nearest[:_MAX_CANDIDATES]

    def _near_terms(
        self, word: str, texts: Mapping[int, str], edits: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield terms within some edits of the text of their length: length, number, distance."""
        lengths, letters = self._lengths, self._letters
        sets = np.zeros(max(texts) + 1, np.uint32)
        for length, text in texts.items():
            sets[length] = _letter_set(text)
        first_letters = self._points[self._starts]  # see `_distance`
        same_start = np.isin(first_letters, [ord(letter) for letter in word[:2]])
        terms_ = np.flatnonzero(same_start & (lengths >= min(texts)) & (lengths <= max(texts)))
        # An edit changes at most two letters of the set.
        differing = np.bitwise_count(sets[lengths[terms_]] ^ letters[terms_])
        terms_ = terms_[differing <= 2 * edits]
        terms_ = terms_[self._snapshot.query_kernel.frequencies[terms_] > 0]
        terms = self._snapshot.vocabulary.terms
        for length in np.unique(lengths[terms_]).tolist():
            numbers = terms_[lengths[terms_] == length]
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
        """Terms of the language's function words, which are never corrected."""
        return self._analyzer.common()

    @lazy_property
    def _lengths(self) -> npt.NDArray[np.int64]:
        terms = self._snapshot.vocabulary.terms
        return np.fromiter(map(len, terms), np.int64, len(terms))

    @lazy_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self._lengths) - self._lengths

    @lazy_property
    def _points(self) -> npt.NDArray[np.uint32]:
        """Code points of all terms, concatenated."""
        text = "".join(self._snapshot.vocabulary.terms)
        return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint32)

    @lazy_property
    def _letters(self) -> npt.NDArray[np.uint32]:
        """Letters of each term as a set of 32 bits."""
        bits = np.left_shift(np.uint32(1), self._points % np.uint32(_BITS))
        return np.bitwise_or.reduceat(bits, self._starts) if len(self._starts) else bits


def _distance(word: str, other: str, limit: int) -> int:
    """Return the edit distance, above `limit` if the words begin differently: typos rarely do."""
    if word[0] != other[0] and word[:2] != other[1::-1]:
        return limit + 1
    return OSA.distance(word, other, score_cutoff=limit)


def _letter_set(word: str) -> int:
    found = 0
    for letter in word:
        found |= 1 << ord(letter) % _BITS
    return found
