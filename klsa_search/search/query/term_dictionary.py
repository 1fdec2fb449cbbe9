"""The words of one snapshot: the terms that begin so, and how documents write them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.core.cached import lazy_property
from klsa_search.search.query.word_forms import written_forms
from klsa_search.search.snapshot import Snapshot

SHORTEST: Final = 2
"""Characters of a prefix at least."""

ENDING: Final = 5
"""Letters that a stem may be shorter than its word."""

_LAST: Final = "\U0010ffff"
_REMEMBERED: Final = 4096


class TermDictionary:
    """Looks up words of a snapshot by how they begin; safe to share between threads.

    The first look sorts the terms of documents that came later among the others. The written forms
    of up to 4,096 terms are remembered.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        documents_at: Callable[[Iterable[int]], list[Document]],
    ) -> None:
        self._snapshot, self._analyzer, self._documents_at = snapshot, analyzer, documents_at
        self._forms: Mapping[int, Counter[str]] = {}

    def beginning_with(self, text: str, most: int | None = None) -> list[int]:
        """Terms that begin so, and that of the text as a word, the most frequent first.

        most  how many at most
        A stem may be shorter than what it is the stem of: `computer*` has to find `comput`. Where
        there is none, the longest that documents write with that beginning: `universit*`.
        """
        beginning = self._analyzer.folded(text)
        first, after = self._range(beginning)
        own = [place for term in self._analyzer.terms(text) for place in self._places(term)]
        places = np.union1d(np.arange(first, after), np.array(own, np.int64))
        if not len(places):
            stem = self._stem_beginning(beginning)
            places = np.array(self._places(stem) if stem else [], np.int64)
        terms = self._numbers[places]
        held = self.frequencies[terms]
        # Stable, so that terms of the same frequency stand as they do in the alphabet.
        order = np.argsort(-held, kind="stable")[: np.count_nonzero(held)]
        found: list[int] = terms[order[:most]].tolist()
        return found

    def names_beginning_with(self, beginning: str) -> Sequence[str]:
        """Terms that begin so, by code points, those that no document holds any more among them."""
        return self._names[slice(*self._range(beginning))]

    def forms(self, terms: Sequence[int]) -> list[Counter[str]]:
        """How documents write each of some terms: see `written_forms`."""
        known = self._forms  # never changed, only replaced: other threads do that meanwhile
        new = [term for term in terms if term not in known]
        if not new:
            return [known[term] for term in terms]
        found = written_forms(self._snapshot, self._analyzer, self._documents_at, new)
        given = dict(zip(new, found, strict=True))
        self._forms = given if len(known) + len(given) > _REMEMBERED else {**known, **given}
        return [given[term] if term in given else known[term] for term in terms]

    def _stem_beginning(self, beginning: str) -> str:
        """Term that is shorter than a beginning of words, and has words that begin so; or ""."""
        for length in range(len(beginning) - 1, max(SHORTEST, len(beginning) - ENDING) - 1, -1):
            term = self._snapshot.vocabulary.numbers.get(beginning[:length])
            if term is not None:
                (forms,) = self.forms([term])
                if any(self._analyzer.folded(form).startswith(beginning) for form in forms):
                    return beginning[:length]
        return ""

    def _range(self, beginning: str) -> tuple[int, int]:
        """Where the terms that begin so are among all by code points."""
        names = self._names
        return bisect_left(names, beginning), bisect_left(names, beginning + _LAST)

    def _places(self, term: str) -> list[int]:
        """Where a term is among all by code points, if it is there."""
        place = bisect_left(self._names, term)
        return [place] if self._names[place : place + 1] == [term] else []

    @lazy_property
    def frequencies(self) -> npt.NDArray[np.int64]:
        """How many documents that count hold each term: (V,)."""
        return self._snapshot.bm25.frequencies

    @lazy_property
    def _numbers(self) -> npt.NDArray[np.int64]:
        """Numbers of the terms by code points: those of later documents are behind the others."""
        terms = self._snapshot.vocabulary.terms
        return np.array(sorted(range(len(terms)), key=terms.__getitem__), np.int64)

    @lazy_property
    def _names(self) -> list[str]:
        terms = self._snapshot.vocabulary.terms
        return [terms[number] for number in self._numbers.tolist()]
