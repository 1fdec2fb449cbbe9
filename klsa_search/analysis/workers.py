"""Analysis in processes of its own: texts go out in batches, numbers of terms come back."""

from __future__ import annotations

import pickle
import queue
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.numbering import NumberedTexts, Numbering
from klsa_search.child_processes import (
    end,
    pipes_of_worker,
    read_requests,
    send,
    start_worker,
)
from klsa_search.errors import KlsaError


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
                self._start(Numbering(analyzer, name))
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

    def _start(self, numbering: Numbering) -> None:
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
    numbering: Numbering = next(received)
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
