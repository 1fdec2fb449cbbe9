"""Parts of words that some documents write apart: UTF-8 for UTF8, 10 mm for 10mm.

A word is divided where letters meet digits and where capitals begin, a number into groups of three
digits, any word into two, and one that no document contains into more, if the parts stand side by
side in documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.searched_text import BORDER, MAX_IDENTIFIER, MAX_PARTS
from klsa_search.analysis.segmentation import NON_JOINER
from klsa_search.core.lazy import lazy_property
from klsa_search.search.engine.evidence import LOCAL, DerivedValues, Evidence
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN, TermNumbers
from klsa_search.search.query.interpretation import Word, Words
from klsa_search.search.query.matching import documents_with
from klsa_search.search.query.stop_words import StopWords

JOINING_SIGNS: Final = f"-‐‑.,/&+_{NON_JOINER}"
"""Signs that join parts of a word."""

RARER: Final = 4
"""Factor by which a writing may be rarer than the one in the query, at most. Much rarer ones weigh
too much: with any of them, MAP of awsdocs (`S3 bucket`, *S3bucket*) falls by 7%. Parts of names
such as `InvokeEndpoint` must not be rarer at all.
"""

MAX_DIVISIONS: Final = 8
"""Divisions of an unknown word into three parts or more that are looked for, those into fewest."""

_SPELLED: Final = (("dot", "."), ("sharp", "#"), ("plus", "+"))

_GROUPS: Final = re.compile(r"(?<=\d)(?=(?:\d{3})+\Z)")
_VARIABLE: Final = re.compile(rf"\d|[a-z][A-Z]|[A-Z][A-Z][a-z]|[^\W_][{JOINING_SIGNS}][^\W_]")


def spelled_name(word: str, analyzer: Analyzer) -> str | None:
    """Return the name with signs that a word spells: C# of csharp, .NET of dotnet."""
    name = word.lower()
    for spelled, sign in _SPELLED:
        name = name.replace(spelled, sign)
    return name if len(name) < len(word) and analyzer.has_names(name) else None


class WordCounts:
    """Counts live documents by words; thread-safe."""

    def __init__(self, stop_words: StopWords, numbers: TermNumbers, derived: DerivedValues) -> None:
        self._stop_words, self.numbers, self.derived = stop_words, numbers, derived
        self.snapshot, self.analyzer = stop_words.snapshot, stop_words.analyzer
        self._common = self.analyzer.common()

    def of(self, word: str) -> int:
        """Return the number of documents that contain a word, 0 if it is unknown."""
        return self.of_term(self.numbers[word])

    def of_term(self, number: int) -> int:
        """Return the number of documents that contain a term, 0 if it is unknown."""
        return self._frequencies[number] if number >= 0 else 0

    def side_by_side(self, words: Sequence[str], evidence: Evidence) -> int:
        """Return the number of documents that contain words in sequence."""
        numbers = self._stop_words.numbers([Word(word, self.numbers[word]) for word in words])
        return documents_with(self.snapshot, numbers, evidence)

    def is_common(self, number: int) -> bool:
        """Return whether a term is on the long stop list."""
        return self.snapshot.vocabulary.terms[number] in self._common

    @lazy_property
    def _frequencies(self) -> memoryview:
        return self.snapshot.query_kernel.counts.frequencies.data


class Divider:
    """Divides words by the terms of one snapshot; thread-safe."""

    def __init__(self, counts: WordCounts) -> None:
        self._counts, self._analyzer = counts, counts.analyzer

    def may_divide(self, word: str) -> bool:
        """Return whether `parts` may return any for a word that documents contain."""

        def find() -> bool:
            is_variable = _VARIABLE.search(word) is not None
            return is_variable or bool(spelled_name(word, self._analyzer) or self.halves(word))

        return self._counts.derived.of(("divides", word), find)

    def parts(
        self, word: str, evidence: Evidence, *, anywhere: bool = True, visible_only: bool = False
    ) -> Words:
        """Return the parts of a word that documents write side by side; () if there are none.

        anywhere  divide a word of letters into two at any place, if it has no other parts
        visible_only  divide only where signs, digits or capitals of the word show it, or into
                      letters
        Cost: that of a phrase for each division whose parts are all terms, once a word unless
        partitions are in other processes.
        """
        if not 2 <= len(word) <= MAX_IDENTIFIER or not word.isalnum():
            return ()

        def find() -> Words:
            least = self._counts.of(word) / (1 if word.isalpha() else RARER)
            divisions = self._divisions(word, evidence, anywhere=anywhere, visible=visible_only)
            best = (self._best(division, evidence, least) for division in divisions)
            return next(filter(None, best), ())

        key = "parts", word, anywhere, visible_only
        return evidence.cached(self._counts.derived, key, find)

    def _divisions(
        self, word: str, evidence: Evidence, *, anywhere: bool, visible: bool
    ) -> Iterator[Iterable[Sequence[str]]]:
        """Yield divisions of a word, the best kind first: see `parts`."""
        frequency, name = self._counts.of(word), spelled_name(word, self._analyzer)
        if name is not None:
            yield [[name]]
        borders = _borders(word)
        if borders:
            yield (_cut(word, borders),)
        if len(borders) > 1:
            yield (_cut(word, [border]) for border in borders)
        if visible:
            if not frequency and word.isalpha() and len(word) > 2:  # U.S.A.
                yield (list(word),)
            return
        if anywhere:
            yield self._often_apart(word, evidence)
        if not frequency:
            yield self._segmentations(word)
            if len(borders) > 1:  # two parts: *user name* of getUserName
                yield pairwise(_cut(word, borders))

    def _best(self, divisions: Iterable[Sequence[str]], evidence: Evidence, least: float) -> Words:
        """Return the first division with parts adjacent in most documents, in `least` or more."""
        best = 0
        result: Words = ()
        for words in chain.from_iterable(map(_with_name, divisions)):
            terms = [self._counts.numbers[word] for word in words]
            rarest = min((self._counts.of_term(term) for term in terms if term >= 0), default=0)
            if UNKNOWN in terms or rarest <= best or rarest < least:
                continue
            documents = self._counts.side_by_side(words, evidence)
            if documents > best and documents >= least:
                best, result = documents, tuple(map(Word, words, terms))
        return result

    def _often_apart(self, word: str, evidence: Evidence) -> Iterator[Sequence[str]]:
        """Yield the halves of a word; if documents contain it, those seldom written apart.

        With *data* and *base*, which have meanings of their own, MAP of lisa falls by .6%.
        """
        engine, numbers = self._counts.snapshot.bm25_engine, self._counts.numbers
        frequency = self._counts.of(word)
        for halves in self.halves(word):
            terms, least = [numbers[half] for half in halves], self._least(halves)
            # Few pairs of words are in enough documents, and a phrase takes ten times as long.
            if frequency and evidence is LOCAL and (2 * len(engine.containing_all(terms)) < least):
                continue
            if not frequency or 2 * self._counts.side_by_side(halves, evidence) >= least:
                yield halves

    def halves(self, word: str, shared: int = 0) -> list[Sequence[str]]:
        """Return the divisions of a word into two terms that are not rarer than the word.

        shared  letters at the end of the first that the second begins with
        If documents contain the word, only those that may be written together often enough.
        """
        if not 2 <= len(word) <= MAX_IDENTIFIER or not word.isalpha():
            return []
        frequency = self._counts.of(word)
        folded = self._analyzer.folded(word)
        divisions: list[Sequence[str]] = []
        for border in range(1, len(folded)):
            rarer = self._counts.of(folded[:border])
            if not rarer or rarer < frequency:  # nor is the other half looked up
                continue
            halves = self._with_dot([folded[:border], folded[max(border - shared, 0) :]])
            rarer = min(rarer, self._counts.of(halves[1]))
            if not rarer or rarer < frequency:
                continue
            if not frequency or 2 * rarer >= self._least(halves):
                divisions.append(halves)
        return divisions

    def _with_dot(self, halves: Sequence[str]) -> Sequence[str]:
        """Return *asp* and *.net* of *aspnet* if documents have no *net*."""
        is_name = halves[-1] == "net" and self._counts.numbers["net"] < 0
        return [halves[0], ".net"] if is_name else halves

    def _least(self, halves: Sequence[str]) -> int:
        """Return the frequency of the rarer half, or of one that is on the long stop list.

        Two words of a phrase such as *some times* are no parts, *wi* and *fi* are. Single letters
        do not count, as in *e-mail*.
        """
        counts = self._counts
        numbers = [counts.numbers[half] for half in halves]
        common = [
            number
            for number, half in zip(numbers, halves, strict=True)
            if len(half) > 1 and counts.is_common(number)
        ]
        return max([min(map(counts.of_term, numbers)), *map(counts.of_term, common)])

    def _segmentations(self, word: str) -> list[Sequence[str]]:
        """Return divisions of an unknown word such as *ab123*, of AB-12/3, or *usa*, of U.S.A.

        Parts are terms or stop words; two characters on average, or one each.
        Cost: an analysis of each piece of the word, about 1 ms for 32 characters.
        """
        folded = self._analyzer.folded(word)
        borders: list[list[Sequence[str]]] = [[()]]
        for after in range(1, len(folded) + 1):
            divided: list[Sequence[str]] = [
                (*before, part)
                for first in range(after)
                if borders[first] and self._is_piece(part := folded[first:after])
                for before in borders[first]
                if len(before) <= MAX_PARTS
            ]
            borders.append(sorted(divided, key=len)[:MAX_DIVISIONS])
        return [
            parts
            for parts in borders[-1]
            if 3 * len(parts) <= 2 * len(folded) or (len(parts) == len(folded) and folded.isalpha())
        ]

    def _is_piece(self, part: str) -> bool:
        """Return whether documents contain a part of an unknown word, perhaps as a stop word."""
        number = self._counts.numbers[part]
        return self._counts.of_term(number) > 0 or (
            number == NO_TERM and self._analyzer.term_of.stop_code(part) > 0
        )


def _borders(word: str) -> list[int]:
    """Return the places where letters meet digits, capitals begin, or groups of digits."""
    pattern = _GROUPS if word.isdecimal() else BORDER
    borders = [border.start() for border in pattern.finditer(word)]
    return borders if len(borders) < MAX_PARTS else []


def _cut(word: str, borders: Sequence[int]) -> Sequence[str]:
    bounds = [0, *borders, len(word)]
    return [word[first:after] for first, after in pairwise(bounds)]


def _with_name(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield a division, and that of ASPNET into ASP and .NET."""
    yield words
    if words[-1].lower() == "net":
        yield [*words[:-1], f".{words[-1]}"]
