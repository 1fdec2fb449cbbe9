"""Analysis in processes of its own: texts go out in batches, numbers of terms come back.

The processes are started with nothing but the interpreter and two pipes. `multiprocessing` would
run the caller's script a second time in each (start methods spawn and forkserver), which a script
without a `__main__` guard does not survive, or copy locks that other threads hold (fork).
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, cast

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.numbering import NumberedTexts, Numbering
from klsa_search.errors import KlsaError

_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from klsa_search.analysis.workers import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)


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
        command = [sys.executable, "-P", "-c", _START]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._workers.append(worker)
        self._without_thread.put(worker)
        try:
            # Where to import from: a caller may have added to it.
            _send(worker, sys.path)
            _send(worker, numbering)
        except BrokenPipeError as error:
            raise _died(worker) from error

    def _take_process(self) -> None:
        self._of_thread.worker = self._without_thread.get()

    def _exchange(self, texts: Sequence[str]) -> NumberedTexts:
        worker: subprocess.Popen[bytes] = self._of_thread.worker
        try:
            _send(worker, texts)
            answer = cast(NumberedTexts | KlsaError, pickle.load(_stream(worker.stdout)))
        except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
            raise _died(worker) from error
        if isinstance(answer, KlsaError):
            raise answer
        return answer


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Be such a process: a `Numbering` first, then batches, until the requests end."""
    # Ctrl-C reaches every process of a terminal; it is the parent who decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What code of users prints is not for the parent to read.
    answers = os.fdopen(os.dup(answers.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    numbering: Numbering = pickle.load(requests)
    while True:
        try:
            texts = pickle.load(requests)
        except EOFError:
            return
        answer: NumberedTexts | KlsaError
        try:
            answer = numbering.numbered(texts)
        except KlsaError as error:  # of a tokenizer: the parent tells it
            answer = error
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _died(worker: subprocess.Popen[bytes]) -> KlsaError:
    worker.kill()  # without effect on one that has ended, whose code stays
    code = worker.wait()
    fact = f"signal {-code}" if code < 0 else f"exit code {code}"
    return KlsaError(
        f"a process that analysed documents ended early ({fact}): see that the machine has memory "
        "to spare, then build again"
    )


def _send(worker: subprocess.Popen[bytes], value: object) -> None:
    stream = _stream(worker.stdin)
    pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _stream(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process was started without this pipe")
    return pipe
