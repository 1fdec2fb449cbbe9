"""Analysis of texts in worker processes, which return term numbers."""

from __future__ import annotations

import pickle
import queue
import subprocess
import threading
from array import array
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import chain, groupby
from typing import Final, NamedTuple, cast

from klsa_search import _native
from klsa_search.analysis.analyzer import CACHED_WORDS, LONGEST_WORD, Analyzer
from klsa_search.collection.searched_text import AnalysedTexts
from klsa_search.core.child_processes import (
    call,
    died,
    pipes_of_worker,
    read_requests,
    send,
    start_worker,
)
from klsa_search.errors import KlsaError

_NAME: Final = "a worker process of the analysis"

NO_TERM: Final = -1
"""Number of a word without a term; that of a stop word is less by its `Analyzer.stop_code`."""


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
        return self._number(self._analyzer.term(word), word)

    def pair(self, pair: str) -> int:
        """Return the number of a pair of characters."""
        return self._number(self._analyzer.pair(pair), pair)

    def _number(self, term: str, written: str) -> int:
        if not term:
            return NO_TERM - self._analyzer.stop_code(written)
        return self._terms.number(term)


class AnalysisWorkers(AbstractContextManager["AnalysisWorkers"]):
    """A pool of processes that analyse texts; a context manager that ends them.

    Each process has its own dictionary, named from 1 on; 0 is that of the caller. One thread per
    process sends it batches in the order of submission, because a batch returns only terms that
    earlier ones did not have. Memory: about 30 MB per process and its dictionary. Processes exit
    when the parent does, because their pipe is closed.
    """

    def __init__(self, analyzer: Analyzer, processes: int) -> None:
        self._workers: list[subprocess.Popen[bytes]] = []
        self._unassigned: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(processes, initializer=self._take_process)
        try:
            for name in range(1, processes + 1):
                self._start(TermNumbering(analyzer, name))
        except BaseException:
            self.close()
            raise

    def __exit__(self, *failure: object) -> None:
        """End the processes."""
        self.close()

    def submit(self, texts: AnalysedTexts) -> Future[NumberedTexts]:
        """Analyse a batch in the next free process; KlsaError if that process dies."""
        return self._threads.submit(self._exchange, texts)

    def close(self) -> None:
        """End the processes; pending batches fail."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.communicate()

    def _start(self, numbering: TermNumbering) -> None:
        worker = start_worker(__name__)
        self._workers.append(worker)
        self._unassigned.put(worker)
        try:
            send(worker, numbering)
        except BrokenPipeError as error:
            raise died(worker, _NAME) from error

    def _take_process(self) -> None:
        self._local.worker = self._unassigned.get()

    def _exchange(self, texts: AnalysedTexts) -> NumberedTexts:
        return cast(NumberedTexts, call(self._local.worker, texts, _NAME))


def serve() -> None:
    """Run a worker process: read a `TermNumbering`, then batches, until the requests end."""
    requests, answers = pipes_of_worker()
    received = read_requests(requests)
    numbering: TermNumbering = next(received)
    for texts in received:
        answer: NumberedTexts | KlsaError
        try:
            answer = numbering.numbered(texts)
        except KlsaError as error:  # of a tokenizer; raised again in the parent
            answer = error
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
