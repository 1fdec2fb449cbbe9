"""The terms of a query: from text to term numbers and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.search.engine.evidence import DerivedValues, bucket_of

if TYPE_CHECKING:
    from scipy import sparse

UNKNOWN: Final = -1
"""Number of a term that the index does not contain."""

NO_TERM: Final = -2
"""Number of a word without a term, such as a stop word."""

CACHE_SIZE: Final = 2**16
_LONGEST: Final = 64  # characters of a cached word


class TermNumbers:
    """Term numbers of single words; caches 65,536 words of queries, at most 14 MB.

    Unknown words are UNKNOWN; words without a term are NO_TERM. Thread-safe: threads that look up a
    new word at once find the same number.

    derived  gets the terms that are looked up
    """

    def __init__(self, analyzer: Analyzer, vocabulary: Vocabulary, derived: DerivedValues) -> None:
        self._analyzer, self._numbers, self._derived = analyzer, vocabulary.numbers, derived
        self.cache: dict[str, tuple[int, tuple[int, ...]]] = {}

    def __getitem__(self, word: str) -> int:
        """Return the number of a word."""
        number, buckets = self.cache.get(word) or self._find(word)
        self._derived.note(buckets)
        return number

    def _find(self, word: str) -> tuple[int, tuple[int, ...]]:
        """Find the number and the terms of a word, and cache them unless the word is very long."""
        # A single word for a custom tokenizer; plain letters are one for any.
        analyzer = self._analyzer
        is_word = analyzer.tokenizes or (word.isascii() and word.isalpha())
        terms = [analyzer.term(word)] if is_word else analyzer.terms(word)
        number = self._numbers.get(terms[0], UNKNOWN) if any(terms) else NO_TERM
        readings: Iterable[str] = terms[:1]
        # Which of the languages a word is in depends on which of its terms there are.
        if len(analyzer.languages) > 1 and is_word:  # a tokenizer may find others in it alone
            readings = (analyzer.in_language(one).term(word) for one in analyzer.languages)
        elif len(analyzer.languages) > 1:
            readings = chain(*analyzer.readings(word))
        looked_up = number, tuple(map(bucket_of, readings))
        if len(word) <= _LONGEST:
            if len(self.cache) >= CACHE_SIZE:
                self.cache.clear()
            self.cache[word] = looked_up
        return looked_up


@dataclass(frozen=True)
class QueryTerms:
    """The known terms of a query.

    numbers  (n,) term numbers, ascending
    counts   (n,) float32, f(t, q)
    """

    numbers: npt.NDArray[np.int64]
    counts: npt.NDArray[np.float32]

    @classmethod
    def of(cls, numbers: Iterable[int]) -> QueryTerms:
        """Count term numbers, without UNKNOWN and NO_TERM."""
        counted = sorted(Counter(number for number in numbers if number >= 0).items())
        return cls(
            np.array([number for number, _ in counted], dtype=np.int64),
            np.array([count for _, count in counted], dtype=np.float32),
        )


def distinct_known(numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the distinct terms of a query that documents contain, in its order: (n,).

    Partitions number some terms differently, but these are the same words in all of them.
    """
    return np.array(list(dict.fromkeys(term for term in numbers if term >= 0)), np.int64)


def counts_of_texts(
    texts: Iterable[Sequence[str]], analyzer: Analyzer, vocabulary: Vocabulary
) -> sparse.csr_array:
    """Return f(t,d) of documents given as parts, such as title and text: (n, V) sparse float32.

    Cost: the analysis of the texts.
    """
    from scipy import sparse

    counted = [
        QueryTerms.of(
            vocabulary.numbers.get(term, UNKNOWN)
            for in_language in [analyzer.for_document(parts)]
            for part in parts
            for term in in_language.terms(part)
        )
        for parts in texts
    ]
    starts = np.cumsum([0, *(len(one.numbers) for one in counted)])
    numbers = np.concatenate([np.zeros(0, np.int64), *(one.numbers for one in counted)])
    counts = np.concatenate([np.zeros(0, np.float32), *(one.counts for one in counted)])
    return sparse.csr_array((counts, numbers, starts), shape=(len(counted), len(vocabulary)))
