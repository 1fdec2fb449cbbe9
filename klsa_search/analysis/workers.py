"""Analysis of texts in worker processes, which return term numbers."""

from __future__ import annotations

import pickle
import queue
import subprocess
import threading
from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Final, NamedTuple, cast

from klsa_search import _native
from klsa_search.analysis.analyzer import CACHED_WORDS, LONGEST_WORD, Analyzer
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
    before are analysed. Memory: about 100 bytes per term, and `CACHED_WORDS` words.
    """

    def __init__(self, analyzer: Analyzer, name: int = 0) -> None:
        self._analyzer = analyzer
        self._name = name
        self._words = _Words(analyzer)
        self._forms = _native.WordNumbers(CACHED_WORDS, analyzer.settings.symbols)

    def __reduce__(self) -> tuple[type[TermNumbering], tuple[Analyzer, int]]:
        """Pickle what another process needs to number texts."""
        return TermNumbering, (self._analyzer, self._name)

    def numbered(self, texts: Sequence[str]) -> NumberedTexts:
        """Return texts as term numbers; those from 0 on are those of `Analyzer.terms`."""
        new_terms = self._words.new_terms = []
        if self._analyzer.tokenizes:
            counted = [array("i", self._of_text(text)) for text in texts]
            lengths = array("i", map(len, counted))
            return NumberedTexts(self._name, array("i", chain(*counted)), lengths, new_terms)
        numbered = self._forms.number(list(texts), self._words.of_word, self._of_text)
        numbers, lengths = (array("i", values) for values in numbered)
        return NumberedTexts(self._name, numbers, lengths, new_terms)

    def _of_text(self, text: str) -> Iterable[int]:
        return self._analyzer.map_words(text, self._words.__getitem__, self._words.pair)


class _Words(dict[str, int]):
    """A cache from words as written to term numbers: one lookup per word."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._numbers: dict[str, int] = {}
        self.new_terms: list[str] = []

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
        number = self._numbers.get(term)
        if number is None:
            self._numbers[term] = number = len(self._numbers)
            self.new_terms.append(term)
        return number


class AnalysisWorkers:
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

    def __enter__(self) -> AnalysisWorkers:
        """Return itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End the processes."""
        self.close()

    def submit(self, texts: Sequence[str]) -> Future[NumberedTexts]:
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

    def _exchange(self, texts: Sequence[str]) -> NumberedTexts:
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
