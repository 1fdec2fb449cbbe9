"""Term dictionary of a snapshot: terms by prefix, and their written forms."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import characters
from klsa_search.collection.model import Document
from klsa_search.core.cached import lazy_property
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.evidence import Evidence
from klsa_search.search.query.word_forms import Source, sources_of, written_forms

SHORTEST: Final = 2
"""Characters of a prefix, at least."""

ENDING: Final = 5
"""Letters by which a stem may be shorter than its word, at most."""

SHORTEST_PART: Final = 3
"""Letters of a part of a compound, at least."""

_LAST: Final = "\U0010ffff"
CACHE_SIZE: Final = 4096


class TermDictionary:
    """Finds terms of a snapshot by prefix; thread-safe.

    The first look-up sorts all terms. The sources of the written forms of 4,096 terms are
    cached.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        documents_at: Callable[[Iterable[int]], list[Document]],
    ) -> None:
        self._snapshot, self._analyzer, self._documents_at = snapshot, analyzer, documents_at
        self._sources: Mapping[int, tuple[Source, ...]] = {}

    def completions(self, text: str, evidence: Evidence) -> list[int]:
        """Return terms with words that begin with a text, except that of the text itself.

        Unlike `beginning_with`, also a stem that is shorter than the text, if there are longer
        terms: `valida` is completed by `valid`, of *validation*, and by `validatepayload`.
        """
        terms, numbers = self.beginning_with(text, evidence), self._snapshot.vocabulary.numbers
        stem = self._stem_beginning(self._analyzer.folded(text), evidence)
        names = self._snapshot.vocabulary.terms
        own = {numbers.get(term) for term in self._analyzer.terms(text)}
        found = {*terms, numbers[stem]} if stem else {*terms}
        return sorted(found - own, key=lambda term: (-int(self.frequencies[term]), names[term]))

    def beginning_with(self, text: str, evidence: Evidence, limit: int | None = None) -> list[int]:
        """Return terms with a prefix, and the term of the text as a word, most frequent first.

        limit  number of terms, at most
        A stem may be shorter than the prefix of its words: `computer*` finds `comput`. Without such
        a term, the longest stem with a word of that prefix is returned: `universit*`.
        """
        beginning = self._analyzer.folded(text)
        first, after = self.range(beginning)
        own = [place for term in self._analyzer.terms(text) for place in self._places(term)]
        places = np.union1d(np.arange(first, after), np.array(own, np.int64))
        if not len(places):
            stem = self._stem_beginning(beginning, evidence)
            places = np.array(self._places(stem) if stem else [], np.int64)
        terms = self.numbers[places]
        frequencies = self.frequencies[terms]
        # Stable, so that terms of equal frequency are in alphabetical order.
        order = np.argsort(-frequencies, kind="stable")[: np.count_nonzero(frequencies)]
        found: list[int] = terms[order[:limit]].tolist()
        return found

    def containing(self, character: str) -> list[int]:
        """Return the pairs that contain a character of a script without spaces, and itself.

        character  with its marks, in NFKC
        The most frequent first. Cost: 0.5 µs per term of the index, the first time.
        """
        terms = np.array(self._with_character.get(self._analyzer.pair(character), []), np.int64)
        frequencies = self.frequencies[terms]
        order = np.argsort(-frequencies, kind="stable")[: np.count_nonzero(frequencies)]
        found: list[int] = terms[order].tolist()
        return found

    def compounds(self, word: str) -> list[int]:
        """Return the terms of longer words that begin or end with a word, most frequent first.

        At least `SHORTEST_PART` letters long, as is the rest of each of them.
        Cost: 1 ms per million characters of terms; the first time also that of joining these.
        """
        beginning, ending = self._analyzer.folded(word), self._analyzer.term(word)
        if not beginning.isalpha() or min(len(beginning), len(ending)) < SHORTEST_PART:
            return []
        first, after = self.range(beginning)
        rest = len(beginning) + SHORTEST_PART
        numbers = self._snapshot.vocabulary.numbers
        found = {numbers[name] for name in self.names[first:after] if len(name) >= rest}
        text, marked = self._text, f"{ending}\n"
        at = text.find(marked)
        while at >= 0:
            name = text[text.rfind("\n", 0, at) + 1 : at + len(ending)]
            if len(name) >= len(ending) + SHORTEST_PART:
                found.add(numbers[name])
            at = text.find(marked, at + 1)
        names = self._snapshot.vocabulary.terms
        return sorted(
            (term for term in found if self.frequencies[term]),
            key=lambda term: (-int(self.frequencies[term]), names[term]),
        )

    def names_beginning_with(self, beginning: str) -> Sequence[str]:
        """Return terms with a prefix by code points, including those without live documents."""
        return self.names[slice(*self.range(beginning))]

    def forms(self, terms: Sequence[int], evidence: Evidence) -> list[Counter[str]]:
        """Return the written forms of terms with their counts: see `written_forms`."""
        names = self._snapshot.vocabulary.terms
        questions = [("forms", names[term]) for term in terms]
        new = [
            term for term, each in zip(terms, questions, strict=True) if each not in evidence.known
        ]
        own = dict(zip(new, self._sources_of(new), strict=True))
        return [
            written_forms(evidence.of(question, partial(own.__getitem__, term)))
            for question, term in zip(questions, terms, strict=True)
        ]

    def _sources_of(self, terms: Sequence[int]) -> list[tuple[Source, ...]]:
        """Return how the documents of the snapshot write terms: see `sources_of`."""
        known = self._sources  # replaced, never changed, as other threads read it
        new = [term for term in terms if term not in known]
        if not new:
            return [known[term] for term in terms]
        found = sources_of(self._snapshot, self._analyzer, self._documents_at, new)
        result = dict(zip(new, found, strict=True))
        self._sources = result if len(known) + len(result) > CACHE_SIZE else {**known, **result}
        return [result[term] if term in result else known[term] for term in terms]

    def _stem_beginning(self, beginning: str, evidence: Evidence) -> str:
        """Return a term shorter than a prefix that has words with that prefix, or ""."""
        for length in range(len(beginning) - 1, max(SHORTEST, len(beginning) - ENDING) - 1, -1):
            term = self._snapshot.vocabulary.numbers.get(beginning[:length])
            if term is not None:
                (forms,) = self.forms([term], evidence)
                if any(self._analyzer.folded(form).startswith(beginning) for form in forms):
                    return beginning[:length]
        return ""

    def range(self, beginning: str) -> tuple[int, int]:
        """Return the range of terms with a prefix, among all by code points."""
        names = self.names
        return bisect_left(names, beginning), bisect_left(names, beginning + _LAST)

    def _places(self, term: str) -> list[int]:
        """Return the index of a term among all by code points, if it exists."""
        place = bisect_left(self.names, term)
        return [place] if self.names[place : place + 1] == [term] else []

    @lazy_property
    def frequencies(self) -> npt.NDArray[np.int64]:
        """Number of live documents that contain each term: (V,)."""
        return self._snapshot.query_kernel.frequencies

    @lazy_property
    def _text(self) -> str:
        """All terms, each between line ends."""
        return "\n".join(["", *self.names, ""])

    @lazy_property
    def _with_character(self) -> Mapping[str, Sequence[int]]:
        """Term numbers by the characters of pairs, in order of code points."""
        found: dict[str, list[int]] = {}
        for number, name in zip(self.numbers.tolist(), self.names, strict=True):
            for character in {*characters(name)}:
                found.setdefault(character, []).append(number)
        return found

    @lazy_property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Term numbers in order of code points."""
        terms = list(self._snapshot.vocabulary.terms)  # from arrays, single terms cost more
        return np.array(sorted(range(len(terms)), key=terms.__getitem__), np.int64)

    @lazy_property
    def names(self) -> list[str]:
        """Terms in order of code points."""
        terms = list(self._snapshot.vocabulary.terms)
        return [terms[number] for number in self.numbers.tolist()]
