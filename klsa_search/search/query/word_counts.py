"""In how many documents words are, alone and side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from klsa_search.core.lazy import lazy_property
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import TermNumbers
from klsa_search.search.query.interpretation import Word
from klsa_search.search.query.matching import documents_with
from klsa_search.search.query.stop_words import StopWords

RARER: Final = 4
"""Factor by which a writing may be rarer than the one in the query, at most. Much rarer ones weigh
too much: with any of them, MAP of awsdocs (`S3 bucket`, *S3bucket*) falls by 7%. Parts of names
such as `InvokeEndpoint` must not be rarer at all.
"""


class WordCounts:
    """Counts live documents by words; thread-safe.

    numbers  of the terms of words
    """

    def __init__(self, stop_words: StopWords, numbers: TermNumbers) -> None:
        self._stop_words, self.numbers = stop_words, numbers
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
