"""Suggest completions of typed text: terms, following words and titles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.cached import lazy_property
from klsa_search.core.compiling import compiled, wait_until_compiled
from klsa_search.search.query.matching import borders_of, pattern_of, with_all, with_phrase
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.spelling import LONG, LONGEST, SHORTEST
from klsa_search.search.query.terms import NO_TERM, UNKNOWN
from klsa_search.search.query.word_forms import commonest
from klsa_search.search.snapshot import Snapshot
from klsa_search.search.suggest.titles import Titles
from klsa_search.storage.documents import DocumentReader
from klsa_search.storage.forward_index import GAPS, Codes, read_code

Kind = Literal["word", "phrase", "title", "correction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One completion of what was typed.

    kind       a word as documents write it; a phrase that goes on with the words typed; the title
               of a document; or the correction of a word that nothing begins with
    text       what it is
    query      what was typed, completed by it: what to search for
    documents  how many hold the word, in any form, or the phrase, or have the title; None for a
               phrase whose first words so many hold that only some of them were read

    >>> index.suggest("wet r")[0]
    Suggestion(kind='phrase', text='wet roads', query='wet roads', documents=2)
    """

    kind: Kind
    text: str
    query: str
    documents: int | None


SAMPLE: Final = 4_000
"""Documents that are read for one answer: of more, so many evenly spaced."""


class FollowingTerms(NamedTuple):
    """What follows some words.

    terms      numbers of the terms that follow, those in most documents first
    documents  in how many they do
    exact      whether all documents were read
    """

    terms: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    exact: bool


def following(snapshot: Snapshot, words: Sequence[int]) -> FollowingTerms:
    """Count what follows some words, of which the first and last have terms, in documents.

    Cost: the postings of the words, and 3 ns a word of the documents that hold them all.
    """
    documents = with_all(snapshot, {word for word in words if word >= 0}).astype(np.int64)
    documents = documents[snapshot.counting()[documents]]
    exact = len(documents) <= SAMPLE
    if not exact:
        documents = documents[np.linspace(0, len(documents) - 1, SAMPLE).astype(np.int64)]
    forward, pattern = snapshot.forward, pattern_of(snapshot, words)
    counts = np.zeros(len(forward.ranks), np.int32)
    given = (
        forward.codes, forward.starts, documents, pattern, borders_of(pattern), counts,
        np.zeros_like(counts),
    )  # fmt: skip
    wait_until_compiled(count_following)
    count_following(*given)
    ranks = np.flatnonzero(counts)
    terms, held = forward.terms[ranks].astype(np.int64), counts[ranks].astype(np.int64)
    best = np.lexsort((terms, -held))
    return FollowingTerms(terms[best], held[best], exact)


@compiled
def count_following(
    codes: Codes,
    starts: npt.NDArray[np.int64],
    documents: npt.NDArray[np.int64],
    pattern: npt.NDArray[np.int64],
    borders: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
    last: npt.NDArray[np.int32],
) -> None:
    """Count the documents in which each term follows a phrase, in the title or in the text.

    pattern  its words as the forward index has them: a term first and last
    counts   by the rank of the term: the documents are added here
    last     which document counted for it last, from 1; 0 for none
    Whatever the codes are, nothing outside of them is read. Cost: 3 ns a word.
    """
    for i in range(len(documents)):
        at = max(starts[documents[i]], 0)
        end = min(starts[documents[i] + 1], len(codes))
        title, at = read_code(codes, at, end)
        word: Any = 0
        matched = 0
        while at < end:
            code, at = read_code(codes, at, end)
            times = code + 1 if code < GAPS else 1
            rank = code - GAPS
            if code < GAPS:
                code = NO_TERM
            for _ in range(times):
                if word == title:
                    matched = 0
                if matched == len(pattern):
                    if 0 <= rank < len(counts) and last[rank] != i + 1:
                        last[rank] = i + 1
                        counts[rank] += 1
                    matched = borders[matched - 1]
                while matched > 0 and pattern[matched] != code:
                    matched = borders[matched - 1]
                if pattern[matched] == code:
                    matched += 1
                word += 1


CONTEXT: Final = 4
"""Words before the last one that a phrase may go on with, at most."""

FEWEST: Final = 2
"""Documents that hold a phrase, at least."""

WHOLE: Final = 3
"""Letters of a word that phrases go on with although no blank is behind it."""

CORRECTIONS: Final = 3
"""Words that begin nearly so, at most."""

_READ: Final = 500  # characters at the end of a text in which words are looked for
_REMEMBERED: Final = 64
_LAST_WORD: Final = re.compile(r"[^\W_]+\Z")


class Suggester:
    """Suggests by what one snapshot holds; safe to share between threads.

    The first suggestion reads all titles and puts the terms in order: 5 µs a document. Each word
    that is shown for the first time costs some 0.8 ms, for the documents that are read to see how
    it is written; what follows some words 3 ns a word of the documents that hold them, 20,000 at
    most, and is remembered for the last 64; titles 1 ns a byte of all of them.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        language: QueryParser,
        documents: DocumentReader,
        titles: Titles,
    ) -> None:
        self._snapshot, self._analyzer, self._documents = snapshot, analyzer, documents
        self._language = language
        self._lexicon, self._spelling = language.lexicon, language.spelling
        self.titles = titles
        self._following: dict[tuple[int, ...], FollowingTerms] = {}

    def suggestions(self, typed: str, k: int) -> list[Suggestion]:
        """At most k ways to go on: phrases that go on with several words first, then words, phrases
        and titles, of each kind as many, the most frequent first.
        """
        found = _LAST_WORD.search(typed, max(len(typed) - _READ, 0))
        last = found[0] if found else ""
        before = typed[: len(typed) - len(last)]
        phrases = list(islice(self._phrases(before, last), k))
        known = {each.query for each in phrases}
        words = (each for each in self._words(before, last, k) if each.query not in known)
        longer: Iterator[Suggestion] = iter(())
        if len(last) >= WHOLE and not phrases:
            longer = self._phrases(f"{typed} ", "")
        return _shared(k, [iter(phrases), words, longer, self._titles(typed, k)])

    def _words(self, before: str, last: str, k: int) -> Iterator[Suggestion]:
        """Words that begin so, or, where there are none, what may have been meant."""
        terms = self._lexicon.beginning_with(last, k) if last else []
        begun = False
        for term in terms:
            word = self._shown(term, last)
            if word:
                begun = True
                yield self._word("word", before, term, word)
        if last and not begun:
            yield from self._corrections(before, last)

    def _word(self, kind: Kind, before: str, term: int, word: str) -> Suggestion:
        count = int(self._lexicon.frequencies[term])
        return Suggestion(kind=kind, text=word, query=before + word, documents=count)

    def _shown(self, term: int, beginning: str = "") -> str:
        """A term as documents write it where it begins so; "" where none does."""
        folded = self._analyzer.folded(beginning)
        (forms,) = self._lexicon.forms([term])
        fitting = {
            form: count
            for form, count in forms.items()
            if self._analyzer.folded(form).startswith(folded)
        }
        if fitting:
            word = commonest(Counter(fitting))
            # In headlines all is in capitals: small letters, where any document has them.
            return word.casefold() if word.casefold() in fitting else word
        # It may be in other documents than were read.
        return beginning if self._numbers(beginning) == [term] else ""

    def _corrections(self, before: str, last: str) -> Iterator[Suggestion]:
        """What a word that nothing begins with may have been meant to be."""
        folded = self._analyzer.folded(last)
        if not SHORTEST <= len(folded) <= LONGEST or not folded.isalpha():
            return
        right = self._spelling.correction(last)
        if right is not None:
            count = int(np.count_nonzero(self._having(right.terms)))
            query = before + right.words
            yield Suggestion(kind="correction", text=right.words, query=query, documents=count)
        known = () if right is None else right.terms
        for term in self._beginning_nearly(folded)[:CORRECTIONS]:
            word = self._shown(term)
            if word and term not in known:
                yield self._word("correction", before, term, word)

    def _beginning_nearly(self, beginning: str) -> list[int]:
        """Terms that begin so but for an edit or two, the nearest and most frequent first."""
        edits = 2 if len(beginning) >= LONG else 1
        names = self._lexicon.names_beginning_with(beginning[0])
        distances = np.full(len(names), edits + 1, np.uint8)
        for length in range(len(beginning) - 1, len(beginning) + 2):
            (found,) = process.cdist(
                [beginning],
                [name[:length] for name in names],
                scorer=OSA.distance,
                score_cutoff=edits,
                dtype=np.uint8,
            )
            distances = np.minimum(distances, found)
        numbers, frequencies = self._snapshot.vocabulary.numbers, self._lexicon.frequencies
        near = [
            (int(distances[at]), numbers[names[at]])
            for at in np.flatnonzero(distances <= edits).tolist()
            if names[at] in numbers
        ]
        near.sort(key=lambda each: (each[0], -int(frequencies[each[1]]), each[1]))
        return [term for _, term in near]

    def _phrases(self, before: str, last: str) -> Iterator[Suggestion]:
        """Terms that begin so and follow the words before in documents, and the words."""
        context_words = self._language.words(before[-_READ:])[-CONTEXT:]
        words, numbers = (
            [word.text for word in context_words],
            [word.number for word in context_words],
        )
        if not self._ends_with_a_term(before):
            return
        own, beginning = self._numbers(last), self._analyzer.folded(last)
        names, found = self._snapshot.vocabulary.terms, False
        for first in range(len(numbers)):
            context = tuple(numbers[first:])
            if context[0] < 0 or UNKNOWN in context:
                continue
            follow = self._what_follows(context)
            shown = _end_of(before, words[first:])
            for term, count in zip(follow.terms.tolist(), follow.documents.tolist(), strict=True):
                if count < FEWEST:
                    break
                fits = names[term].startswith(beginning) or own == [term]
                word = fits and (last or term not in self._common) and self._shown(term, last)
                if word:
                    found = True
                    yield Suggestion(
                        kind="phrase",
                        text=shown + word,
                        query=before + word,
                        documents=count if follow.exact else None,
                    )
            if found:
                return

    def _ends_with_a_term(self, text: str) -> bool:
        """Whether what stands last has a term: all words without one are alike in the index."""
        parts = text[-_READ:].split()
        return bool(parts) and max(self._numbers(parts[-1]), default=NO_TERM) >= 0

    def _titles(self, typed: str, k: int) -> Iterator[Suggestion]:
        found = self.titles.find(typed, self._documents, self._living)[:k]
        titles = self._documents.titles(each.position for each in found)
        for each, title in zip(found, titles, strict=True):
            count = self.titles.count(each.key, self._living)
            yield Suggestion(kind="title", text=title, query=title, documents=count)

    def _what_follows(self, words: tuple[int, ...]) -> FollowingTerms:
        found = self._following.get(words)
        if found is None:
            found = following(self._snapshot, words)
            if len(self._following) >= _REMEMBERED:
                self._following = {}
            self._following[words] = found
        return found

    def _having(self, words: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Which documents hold some words as a phrase: (N,)."""
        return with_phrase(self._snapshot, words) & self._living

    def _numbers(self, text: str) -> list[int]:
        return [word.number for word in self._language.words(text)]

    @lazy_property
    def _common(self) -> frozenset[int]:
        return frozenset(self._snapshot.common.tolist())

    @lazy_property
    def _living(self) -> npt.NDArray[np.bool_]:
        return self._snapshot.counting()


def _end_of(text: str, words: Sequence[str]) -> str:
    """Return the end of a text from the first of its last words on."""
    at = len(text)
    for word in reversed(words):
        at = text.rfind(word, 0, at)
        if at < 0:  # it is not written as it is read
            return " ".join((*words, ""))
    return text[at:]


def _shared(k: int, kinds: Sequence[Iterator[Suggestion]]) -> list[Suggestion]:
    """The first of each kind, as many of each as there are and k allows, kind by kind."""
    taken: list[list[Suggestion]] = [[] for _ in kinds]
    going = list(range(len(kinds)))
    while going:
        for kind in going[:]:
            if sum(map(len, taken)) == k:
                return list(chain.from_iterable(taken))
            following_one = next(kinds[kind], None)
            if following_one is None:
                going.remove(kind)
            else:
                taken[kind].append(following_one)
    return list(chain.from_iterable(taken))
