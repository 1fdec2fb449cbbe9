"""Analysis of texts in worker processes, which return term numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import attrgetter
from typing import Final, NamedTuple

from klsa_search import _native
from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.searched_text import AnalysedTexts
from klsa_search.analysis.terms import CACHED_WORDS, LONGEST_WORD
from klsa_search.core.child_processes import WorkerPool, answer_requests

NO_TERM: Final = -1
"""Number of a word without a term; that of a stop word is less by its `TermOf.stop_code`."""


class NumberedTexts(NamedTuple):
    """A batch of texts as term numbers of a growing dictionary.

    numbering  name of the dictionary
    numbers    array of int32, one for each word, text after text; NO_TERM and less included
    lengths    array of int32, number of words of each text
    terms      terms new to the dictionary, which have the next numbers
    """

    numbering: int
    numbers: array[int]
    lengths: array[int]
    terms: list[str]


class TermNumbering:
    """A dictionary that numbers terms from 0 in the order they occur; pickled empty.

    name  distinguishes the dictionaries of a collection
    Words of ASCII texts are found and looked up in native code; only forms that did not occur
    before are analysed. Memory: about 100 bytes per term, and `CACHED_WORDS` words in each of the
    languages.
    """

    def __init__(self, analyzer: Analyzer, name: int = 0) -> None:
        self._analyzer = analyzer
        self._name = name
        self._terms = _Terms()
        self._words = {
            language: _Words(analyzer.in_language(language), self._terms)
            for language in analyzer.languages
        }

    def __reduce__(self) -> tuple[type[TermNumbering], tuple[Analyzer, int]]:
        """Pickle what another process needs to number texts."""
        return TermNumbering, (self._analyzer, self._name)

    def numbered(self, texts: AnalysedTexts) -> NumberedTexts:
        """Return the parts of documents as term numbers, each document in its language."""
        new_terms = self._terms.new = []
        numbers, lengths = array("i"), array("i")
        for language, parts in self._by_language(texts):
            of_parts, sizes = self._words[language].numbered(parts)
            numbers.frombytes(of_parts)
            lengths.frombytes(sizes)
        return NumberedTexts(self._name, numbers, lengths, new_terms)

    def _by_language(self, texts: AnalysedTexts) -> Iterator[tuple[str, list[str]]]:
        """Yield the parts of consecutive documents of the same language."""
        parts, number = texts.parts, len(texts.languages)
        if len(self._words) == 1 or not number:
            yield self._analyzer.languages[0], parts
            return
        size = len(parts) // number  # parts of a document
        languages = [
            self._analyzer.language_of(parts[first : first + size], stated)
            for first, stated in zip(range(0, len(parts), size), texts.languages, strict=True)
        ]
        first = 0
        for language, same in groupby(languages):
            after = first + size * len(list(same))
            yield language, parts[first:after]
            first = after


class _Terms:
    """Numbers of terms, in the order they occur.

    new  terms of the texts that are analysed
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.new: list[str] = []

    def number(self, term: str) -> int:
        """Return the number of a term, the next if it is new."""
        number = self._numbers.get(term)
        if number is None:
            self._numbers[term] = number = len(self._numbers)
            self.new.append(term)
        return number


class _Words(dict[str, int]):
    """A cache from words of a language as written to term numbers: one lookup per word."""

    def __init__(self, analyzer: Analyzer, terms: _Terms) -> None:
        super().__init__()
        self._analyzer, self._terms = analyzer, terms
        self._forms = _native.WordNumbers(CACHED_WORDS, analyzer.settings.symbols)

    def numbered(self, texts: list[str]) -> tuple[bytes, bytes]:
        """Return the numbers of the words of all texts, and how many each has, as int32."""
        if self._analyzer.tokenizes:
            counted = [list(self._of_text(text)) for text in texts]
            numbers, lengths = array("i", chain(*counted)), array("i", map(len, counted))
            return numbers.tobytes(), lengths.tobytes()
        return self._forms.number(texts, self.of_word, self._of_text)

    def _of_text(self, text: str) -> Iterable[int]:
        return self._analyzer.map_words(text, self.__getitem__, self.pair)

    def __missing__(self, word: str) -> int:
        number = self.of_word(word)
        if len(word) <= LONGEST_WORD:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[word] = number
        return number

    def of_word(self, word: str) -> int:
        """Return the number of a word, without the cache."""
        return self._number(self._analyzer.term_of.uncached(word), word)

    def pair(self, pair: str) -> int:
        """Return the number of a pair of characters."""
        return self._number(self._analyzer.term_of.pair(pair), pair)

    def _number(self, term: str, written: str) -> int:
        if not term:
            return NO_TERM - self._analyzer.term_of.stop_code(written)
        return self._terms.number(term)


class AnalysisWorkers(WorkerPool[AnalysedTexts, NumberedTexts]):
    """A pool of processes that analyse texts.

    Each has its own dictionary, named from 1 on; 0 is that of the caller. A batch returns only
    terms that earlier ones of its process did not have. Memory: about 30 MB per process and its
    dictionary.
    """

    def __init__(self, analyzer: Analyzer, processes: int) -> None:
        numberings = [TermNumbering(analyzer, name) for name in range(1, processes + 1)]
        super().__init__(__name__, numberings, "a worker process of the analysis")


def serve() -> None:
    """Run a worker process, which gets a `TermNumbering`, then batches."""
    answer_requests(attrgetter("numbered"))
