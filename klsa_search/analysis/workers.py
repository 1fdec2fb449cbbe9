"""Analyse texts in worker processes, which return term numbers."""

from __future__ import annotations

import pickle
import queue
import subprocess
import threading
from array import array
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple, cast

from klsa_search.analysis.analyzer import CACHED_WORDS, LONGEST_WORD, Analyzer
from klsa_search.core.child_processes import end, pipes_of_worker, read_requests, send, start_worker
from klsa_search.errors import KlsaError

NO_TERM: Final = -1
"""Number of a word that makes no term, such as a stop word."""


class NumberedTexts(NamedTuple):
    """The words of a batch of texts, as numbers of their terms in a dictionary that grows.

    numbering  which dictionary the numbers are of
    numbers    array of int32, one for each word, text after text; LEFT_OUT has its place too
    lengths    array of int32, the words of each text
    terms      those the dictionary did not hold before; they take the next numbers
    """

    numbering: int
    numbers: array[int]
    lengths: array[int]
    terms: list[str]


class TermNumbering:
    """A dictionary of terms that numbers them from 0 in the order they are met.

    Memory: the terms, some 100 bytes each, and `CACHED_WORDS` words. `name` identifies it
    of the same collection.
    """

    def __init__(self, analyzer: Analyzer, name: int = 0) -> None:
        self._analyzer = analyzer
        self._name = name
        self._words = _Words(analyzer)

    def numbered(self, texts: Sequence[str]) -> NumberedTexts:
        """Analyse texts; equal to the terms of `Analyzer.terms`, LEFT_OUT apart."""
        each, word, pair = self._analyzer.each, self._words.__getitem__, self._words.pair
        numbers, lengths = array("i"), array("i")
        met = self._words.met = []
        for text in texts:
            before = len(numbers)
            numbers.extend(each(text, word, pair))
            lengths.append(len(numbers) - before)
        return NumberedTexts(self._name, numbers, lengths, met)


class _Words(dict[str, int]):
    """From a word as written to the number of its term: one look-up a word."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._numbers: dict[str, int] = {}
        self.met: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self._number(self._analyzer.term(word))
        if len(word) <= LONGEST_WORD:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[word] = number
        return number

    def pair(self, pair: str) -> int:
        """Number of a pair of characters."""
        return self._number(self._analyzer.pair(pair))

    def _number(self, term: str) -> int:
        if not term:
            return NO_TERM
        number = self._numbers.get(term)
        if number is None:
            self._numbers[term] = number = len(self._numbers)
            self.met.append(term)
        return number


class AnalysisWorkers:
    """Some processes that analyse; a context manager, which leaves none of them behind.

    Each has its own dictionary of terms, numbered from 1 on: `Numbering` 0 is the caller's. A
    thread of its own hands it batches in the order they were submitted in, or a later one would
    have the terms that an earlier one takes for known. Memory: some 30 MB a process and its
    dictionary. A process of which the parent dies ends by itself, at the end of its pipe.
    """

    def __init__(self, analyzer: Analyzer, processes: int) -> None:
        self._workers: list[subprocess.Popen[bytes]] = []
        self._without_thread: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._of_thread = threading.local()
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
        """End the processes, whatever they do."""
        self.close()

    @property
    def process_ids(self) -> list[int]:
        """Of the processes, as the system knows them."""
        return [worker.pid for worker in self._workers]

    def submit(self, texts: Sequence[str]) -> Future[NumberedTexts]:
        """Have a batch analysed by whichever process is free; KlsaError if that process dies."""
        return self._threads.submit(self._exchange, texts)

    def close(self) -> None:
        """End the processes; what is still under way fails."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.communicate()

    def _start(self, numbering: TermNumbering) -> None:
        worker = start_worker(__name__)
        self._workers.append(worker)
        self._without_thread.put(worker)
        try:
            send(worker, numbering)
        except BrokenPipeError as error:
            raise _died(worker) from error

    def _take_process(self) -> None:
        self._of_thread.worker = self._without_thread.get()

    def _exchange(self, texts: Sequence[str]) -> NumberedTexts:
        worker: subprocess.Popen[bytes] = self._of_thread.worker
        try:
            send(worker, texts)
            assert worker.stdout is not None
            answer = cast(NumberedTexts | KlsaError, pickle.load(worker.stdout))  # noqa: S301 - a child process of ours
        except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
            raise _died(worker) from error
        if isinstance(answer, KlsaError):
            raise answer
        return answer


def serve() -> None:
    """Be such a process: a `Numbering` first, then batches, until the requests end."""
    requests, answers = pipes_of_worker()
    received = read_requests(requests)
    numbering: TermNumbering = next(received)
    for texts in received:
        answer: NumberedTexts | KlsaError
        try:
            answer = numbering.numbered(texts)
        except KlsaError as error:  # of a tokenizer: the parent reports it
            answer = error
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _died(worker: subprocess.Popen[bytes]) -> KlsaError:
    code = end(worker)
    fact = f"signal {-code}" if code < 0 else f"exit code {code}"
    return KlsaError(
        f"a worker process of the analysis ended early ({fact}); make sure that "
        "there is free memory, then build again"
    )
