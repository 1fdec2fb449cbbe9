"""The terms of a query: from text to term numbers and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.kernels.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy import sparse

UNKNOWN: Final = -1
"""Number of a term that the index does not contain."""

NO_TERM: Final = -2
"""Number of a word without a term, such as a stop word."""

_CACHE_SIZE: Final = 2**16
_LONGEST: Final = 64  # bytes of a cached word
_SEPARATED: Final = bytes(c if chr(c).isalnum() and c < 128 else ord(" ") for c in range(256))
"""Maps all of ASCII but letters and digits to blanks, as the analyser does."""
_BARE: Final = bytes(set(range(128)) - set(b"\"*:\\+-'.#"))
"""ASCII that is neither an operator nor joins words."""


class TermNumbers(dict[bytes, int]):
    """Finds term numbers; caches 65,536 words of queries, at most 9 MB.

    ASCII words are split and looked up as bytes: all in C, 1 µs for a query of ten words. Words
    with an apostrophe and other scripts are analysed. Thread-safe: threads that look up a new word
    at once find the same number.
    """

    def __init__(self, analyzer: Analyzer, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._analyzer, self._numbers = analyzer, vocabulary.numbers

    def of(self, text: str) -> list[int]:
        """Return the term numbers of a text, in order, repetitions included.

        Unknown terms are UNKNOWN; words without a term are left out, or NO_TERM.
        """
        if self._is_simple(text):
            return [*map(self.__getitem__, text.encode().translate(_SEPARATED).split())]
        return [self._numbers.get(term, UNKNOWN) for term in self._analyzer.terms(text)]

    def of_bare(self, text: str) -> list[int] | None:
        """Return what `of` does for a text that cannot have operators, or None for other texts.

        Most queries are such texts; the test takes 0.2 µs.
        """
        written = text.encode(errors="surrogatepass")
        if written.translate(None, _BARE) or self._analyzer.tokenizes:
            return None
        return [*map(self.__getitem__, written.translate(_SEPARATED).split())]

    def words(self, text: str) -> list[str]:
        """Return the words of a text as written, one for each number of `of`."""
        if self._is_simple(text):
            return text.encode().translate(_SEPARATED).decode().split()
        words = self._analyzer.each(text, str, str)
        return [word for word in words if self.of_word(word) != NO_TERM]

    def _is_simple(self, text: str) -> bool:
        if self._analyzer.tokenizes:
            return False
        return text.isascii() and "'" not in text and not self._analyzer.has_names(text)

    def of_word(self, word: str) -> int:
        """Return the number of one word."""
        return self[word.encode()]

    def __missing__(self, word: bytes) -> int:
        """Find the number of a word, and cache it unless the word is very long."""
        text = word.decode()
        whole = self._analyzer.tokenizes  # a single word for a custom tokenizer
        terms = [self._analyzer.term(text)] if whole else self._analyzer.terms(text)
        number = self._numbers.get(terms[0], UNKNOWN) if any(terms) else NO_TERM
        if len(word) <= _LONGEST:
            if len(self) >= _CACHE_SIZE:
                self.clear()
            self[word] = number
        return number


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


def counts_of_texts(
    texts: Iterable[Sequence[str]], analyzer: Analyzer, vocabulary: Vocabulary
) -> sparse.csr_array:
    """Return f(t,d) of documents given as parts, such as title and text: (n, V) sparse float32.

    Cost: the analysis of the texts.
    """
    from scipy import sparse

    counted = [
        QueryTerms.of(
            vocabulary.numbers.get(term, UNKNOWN) for part in parts for term in analyzer.terms(part)
        )
        for parts in texts
    ]
    starts = np.cumsum([0, *(len(one.numbers) for one in counted)])
    numbers = np.concatenate([np.zeros(0, np.int64), *(one.numbers for one in counted)])
    counts = np.concatenate([np.zeros(0, np.float32), *(one.counts for one in counted)])
    return sparse.csr_array((counts, numbers, starts), shape=(len(counted), len(vocabulary)))
