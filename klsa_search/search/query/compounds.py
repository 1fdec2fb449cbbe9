"""Words that some documents write joined and others apart: UTF8 and UTF-8, 10mm and 10 mm.

A word is divided where letters meet digits and where capitals begin, a number into groups of three
digits, any word into two, and one that no document contains into more, if the parts stand side by
side in documents. Adjacent words are joined if documents contain the joined word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Final, NamedTuple

from klsa_search.analysis.segmentation import NON_JOINER
from klsa_search.collection.searched_text import BORDER, MAX_IDENTIFIER, MAX_PARTS
from klsa_search.core.lazy import cached_method, lazy_property
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN, TermNumbers
from klsa_search.search.query.interpretation import Variant, Word, Words
from klsa_search.search.query.matching import documents_with
from klsa_search.search.query.stop_words import StopWords

RARER: Final = 4
"""Factor by which a writing may be rarer than the one in the query, at most. Much rarer ones weigh
too much: with any of them, MAP of awsdocs (`S3 bucket`, *S3bucket*) falls by 7%. Parts of names
such as `InvokeEndpoint` must not be rarer at all.
"""

MAX_DIVISIONS: Final = 8
"""Divisions of an unknown word into three parts or more that are looked for, those into fewest."""

CACHED: Final = 2**13
"""Words whose parts are remembered."""

_SPELLED: Final = (("dot", "."), ("sharp", "#"), ("plus", "+"))
_SPELLED_ENDS: Final = ("sharp", "plus")

_WORD: Final = re.compile(r"[^\W_]++")
_GROUPS: Final = re.compile(r"(?<=\d)(?=(?:\d{3})+\Z)")
_SIGNS: Final = f"-‐‑.,/&+_{NON_JOINER}"
_DECIMAL: Final = re.compile(r"\d[.,](?!\d{3}(?!\d))\d")  # 12.5 is not 125, 1.250 is 1250
_GROUP: Final = re.compile(r"\d{1,3} \d{3}")
_VARIABLE: Final = re.compile(rf"\d|[a-z][A-Z]|[A-Z][A-Z][a-z]|[^\W_][{_SIGNS}][^\W_]")


def words_of(text: str) -> list[str]:
    """Return the words of a text, without any sign."""
    return _WORD.findall(text)


LETTER: Final = 1
DIGIT: Final = 2
UNKNOWN_RUN: Final = 4
"""Kinds of an end of a run: a letter or a digit, and whether no document contains the run."""


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


class Compounds:
    """Divides and joins words by the terms of one snapshot; thread-safe."""

    def __init__(self, stop_words: StopWords, numbers: TermNumbers) -> None:
        self._stop_words, self._numbers = stop_words, numbers
        self._snapshot, self._analyzer = stop_words.snapshot, stop_words.analyzer
        self._common = self._analyzer.common()
        self.may_divide = cached_method(self._may_divide, CACHED)
        self._parts: dict[Hashable, Words] = {}
        self._joins: dict[Hashable, Variant | None] = {}

    def _may_divide(self, word: str) -> bool:
        """Return whether `parts` may return any for a word that documents contain."""
        return _VARIABLE.search(word) is not None or bool(
            self._with_signs(word) or self.halves(word)
        )

    def parts(
        self, word: str, evidence: Evidence, *, anywhere: bool = True, typed: bool = False
    ) -> Words:
        """Return the parts of a word that documents write side by side; () if there are none.

        anywhere  divide a word of letters into two at any place, if it has no other parts
        typed     divide only where signs, digits or capitals of the word show it
        Cost: that of a phrase for each division whose parts are all terms, once a word unless
        partitions are in other processes.
        """
        find = partial(self._find_parts, evidence, word, anywhere, typed)
        return evidence.kept(self._parts, (word, anywhere, typed), find)

    def _find_parts(self, evidence: Evidence, word: str, anywhere: bool, typed: bool) -> Words:
        if not 2 <= len(word) <= MAX_IDENTIFIER or not word.isalnum():
            return ()
        frequency = self._frequency(self._numbers[word])
        least = frequency / (1 if word.isalpha() else RARER)
        divisions = self._divisions(word, frequency, evidence, anywhere=anywhere, typed=typed)
        best = (self._best(division, evidence, least) for division in divisions)
        return next(filter(None, best), ())

    def _divisions(
        self, word: str, frequency: int, evidence: Evidence, *, anywhere: bool, typed: bool
    ) -> Iterator[Iterable[Sequence[str]]]:
        """Yield divisions of a word, the best kind first: see `parts`."""
        yield self._with_signs(word)
        borders = _borders(word)
        if borders:
            yield (_cut(word, borders),)
        if len(borders) > 1:
            yield (_cut(word, [border]) for border in borders)
        if typed:
            return
        if anywhere:
            yield self._beside(word, frequency, evidence)
        if not frequency:
            yield self._segmentations(word)
            if len(borders) > 1:  # two parts: *user name* of getUserName
                yield pairwise(_cut(word, borders))

    def _with_signs(self, word: str) -> list[Sequence[str]]:
        """Return a name with signs that a word spells: C# of csharp, .NET of dotnet."""
        name = word.lower()
        for spelled, sign in _SPELLED:
            name = name.replace(spelled, sign)
        return [[name]] if len(name) < len(word) and self._analyzer.has_names(name) else []

    def _joined(self, words: Sequence[str]) -> str:
        """Return words as one, or the name that they spell: C# of *c sharp*, .NET of *dot net*."""
        joined = "".join(words)
        if joined.lower().endswith(_SPELLED_ENDS) or joined[:3].lower() == "dot":
            for (name,) in self._with_signs(joined):
                if self._frequency(self._numbers[name]) > self._frequency(self._numbers[joined]):
                    return name
        return joined

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
        number = self._numbers[part]
        return self._frequency(number) > 0 or (
            number == NO_TERM and self._analyzer.stop_code(part) > 0
        )

    def _beside(self, word: str, frequency: int, evidence: Evidence) -> Iterator[Sequence[str]]:
        """Yield the halves of a word; if documents contain it, those seldom written apart.

        With *data* and *base*, which have meanings of their own, MAP of lisa falls by .6%.
        """
        for halves in self.halves(word):
            terms, least = [self._numbers[half] for half in halves], self._least(halves)
            # Few pairs of words are in enough documents, and a phrase takes ten times as long.
            if (
                frequency
                and evidence is LOCAL
                and (2 * len(self._snapshot.bm25_engine.containing_all(terms)) < least)
            ):
                continue
            if not frequency or 2 * self._side_by_side(halves, evidence) >= least:
                yield halves

    def _least(self, halves: Sequence[str]) -> int:
        """Return the frequency of the rarer half, or of one that is on the long stop list.

        Two words of a phrase such as *some times* are no parts, *wi* and *fi* are. Single letters
        do not count, as in *e-mail*.
        """
        terms = self._snapshot.vocabulary.terms
        numbers = [self._numbers[half] for half in halves]
        common = [
            number
            for number, half in zip(numbers, halves, strict=True)
            if len(half) > 1 and terms[number] in self._common
        ]
        return max([min(map(self._frequency, numbers)), *map(self._frequency, common)])

    def halves(self, word: str, shared: int = 0) -> list[Sequence[str]]:
        """Return the divisions of a word into two terms that are not rarer than the word.

        shared  letters at the end of the first that the second begins with
        If documents contain the word, only those that may be written together often enough.
        """
        if not 2 <= len(word) <= MAX_IDENTIFIER or not word.isalpha():
            return []
        frequency = self._frequency(self._numbers[word])
        folded = self._analyzer.folded(word)
        divisions: list[Sequence[str]] = []
        for border in range(1, len(folded)):
            rarer = self._frequency(self._numbers[folded[:border]])
            if not rarer or rarer < frequency:  # nor is the other half looked up
                continue
            halves = self._with_dot([folded[:border], folded[max(border - shared, 0) :]])
            rarer = min(rarer, self._frequency(self._numbers[halves[1]]))
            if not rarer or rarer < frequency:
                continue
            if not frequency or 2 * rarer >= self._least(halves):
                divisions.append(halves)
        return divisions

    def _with_dot(self, halves: Sequence[str]) -> Sequence[str]:
        """Return *asp* and *.net* of *aspnet* if documents have no *net*."""
        is_name = halves[-1] == "net" and self._numbers["net"] < 0
        return [halves[0], ".net"] if is_name else halves

    def runs(self, text: str) -> list[Run]:
        """Return the runs of letters and digits of a text."""
        matches = list(_WORD.finditer(text))
        ends = chain((match.start() for match in matches[1:]), [len(text)])
        runs = []
        for match, end in zip(matches, ends, strict=False):
            word, number = match[0], self._numbers[match[0]]
            unknown = UNKNOWN_RUN * (number == UNKNOWN)
            first, last = (DIGIT if end.isdecimal() else LETTER for end in (word[0], word[-1]))
            is_word = word.isalpha() and word.isascii()
            after = text[match.end() : end] or " "
            runs.append(
                Run(
                    word,
                    unknown | first,
                    unknown | last,
                    may_begin=is_word and number >= 0,
                    # A stop word only ends one: log in, login.
                    may_end=is_word and (number >= 0 or (number == NO_TERM and len(word) > 1)),
                    sign=after if len(after) == 1 and after in _SIGNS + " " else "",
                )
            )
        return runs

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
        return are_words and self._numbers[self._joined([left.text, right.text])] >= 0

    def joined(self, text: str, evidence: Evidence) -> list[Variant]:
        """Return words of a text that documents write joined: wi-fi, wifi; 10 mm, 10mm.

        Words are joined across a hyphen or another sign between letters, and across a blank if
        letters meet digits there, if these are groups of digits, if no document contains one of
        them, or if both are words of letters.
        """
        sequences = dict.fromkeys(self._sequences(self.runs(text)))
        variants = (
            evidence.kept(self._joins, sequence, partial(self._variant, sequence, evidence))
            for sequence in sequences
        )
        return [variant for variant in variants if variant is not None]

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
                if self._numbers[self._joined(joined)] >= 0:
                    yield written

    def _variant(self, sequence: str, evidence: Evidence) -> Variant | None:
        """Return the word that documents write for a sequence of words, if there is one."""
        words = words_of(sequence)
        joined = self._joined(words)
        number = self._numbers[joined]
        if number < 0 or len(list(self._analyzer.map_words(joined, str, str))) != 1:
            return None
        if _DECIMAL.search(sequence):
            return None
        numbers = [self._numbers[word] for word in words]
        of = tuple(number for number in numbers if number >= 0)
        if (
            " " in sequence
            and UNKNOWN not in numbers
            and not self._is_meant(words, number, evidence)
        ):
            return None
        return Variant(sequence, of, (Word(joined, number),))

    def _is_meant(self, words: Sequence[str], joined: int, evidence: Evidence) -> bool:
        """Return whether a word that documents write is meant by words that they contain.

        It must not be much rarer than the words side by side. One of letters alone must not weigh
        more than these, if any document has them: with *TIMEBASES*, MAP of npl falls by .35%.
        """
        numbers = [self._numbers[word] for word in words]
        if joined in numbers or self._are_common(numbers):
            return False
        apart = self._side_by_side(words, evidence)
        frequency = self._frequency(joined)
        if not all(map(str.isalpha, words)):
            return apart <= RARER * frequency
        weights = self._snapshot.query_kernel.weights([joined, *(n for n in numbers if n >= 0)])
        is_heavier = int(weights[0]) > int(weights[1:].sum())
        return apart <= frequency and not (apart and is_heavier and NO_TERM not in numbers)

    def replace_split(
        self, words: list[Word], joined: list[Variant], evidence: Evidence
    ) -> tuple[list[Word], list[Variant]]:
        """Leave out words that no document has side by side, but some as one: *head phones*."""
        split: set[str] = set()
        for position, variant in enumerate(joined):
            is_word = all(word.text.isalpha() for word in variant.words)  # not C# for *c sharp*
            is_apart = not is_word or " " not in variant.written
            if not is_apart and self._is_split(variant, evidence):
                joined[position] = variant._replace(of=())
                split.update(words_of(variant.written))
        return [word for word in words if word.text not in split] if split else words, joined

    def _is_split(self, variant: Variant, evidence: Evidence) -> bool:
        """Return whether a joined word is meant instead of its parts, as in *head phones*.

        No document has these side by side, and the word is at least half as frequent as the rarest
        known part.
        """
        words = words_of(variant.written)
        numbers = [self._numbers[word] for word in words]
        (joined,) = variant.words
        frequencies = [self._frequency(number) for number in numbers if number >= 0]
        if 2 * self._frequency(joined.number) < min(frequencies, default=0):
            return False
        if UNKNOWN in numbers:
            return True
        return not self._side_by_side(words, evidence)

    def _are_common(self, numbers: Sequence[int]) -> bool:
        """Return whether words are stop words or on the long list, as in *some times*."""
        terms = self._snapshot.vocabulary.terms
        return all(number == NO_TERM or terms[number] in self._common for number in numbers)

    def _side_by_side(self, words: Sequence[str], evidence: Evidence) -> int:
        """Return the number of live documents that contain words in sequence."""
        numbers = self._stop_words.numbers([Word(word, self._numbers[word]) for word in words])
        return documents_with(self._snapshot, numbers, evidence)

    def _frequency(self, number: int) -> int:
        """Return the number of documents that contain a term, 0 if it is unknown."""
        return self._frequencies[number] if number >= 0 else 0

    @lazy_property
    def _frequencies(self) -> memoryview:
        """Number of live documents that contain each term: (V,)."""
        return self._snapshot.query_kernel.frequencies.data

    def _best(self, divisions: Iterable[Sequence[str]], evidence: Evidence, least: float) -> Words:
        """Return the division whose parts are adjacent in most documents, the first of equals.

        least  number of documents, at least
        """
        best = 0
        result: Words = ()
        for words in chain.from_iterable(map(_with_name, divisions)):
            terms = [self._numbers[word] for word in words]
            rarest = min((self._frequency(term) for term in terms if term >= 0), default=0)
            if UNKNOWN in terms or rarest <= best or rarest < least:
                continue
            documents = self._side_by_side(words, evidence)
            if documents > best and documents >= least:
                best, result = documents, tuple(map(Word, words, terms))
        return result


def _borders(word: str) -> list[int]:
    """Return the places where letters meet digits, capitals begin, or groups of digits."""
    pattern = _GROUPS if word.isdecimal() else BORDER
    borders = [border.start() for border in pattern.finditer(word)]
    return borders if len(borders) < MAX_PARTS else []


def _with_name(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield a division, and that of ASPNET into ASP and .NET."""
    yield words
    if words[-1].lower() == "net":
        yield [*words[:-1], f".{words[-1]}"]


def _cut(word: str, borders: Sequence[int]) -> Sequence[str]:
    bounds = [0, *borders, len(word)]
    return [word[first:after] for first, after in pairwise(bounds)]


def covered_words(variants: Sequence[Variant]) -> Collection[str]:
    """Return the words that have other writings."""
    return {word for variant in variants for word in words_of(variant.written)}
