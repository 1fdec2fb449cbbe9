"""Python child processes: their commands, workers that answer requests, and pools of them.

`python -m` and `python -c` put the current folder first on the import path, so a file there such as
`resource.py` would be imported. The option -P prevents that; all commands of child processes are
made here.
"""

from __future__ import annotations

import os
import pickle
import queue
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from traceback import format_exc
from typing import IO, Any, Final, Generic, TypeVar

from klsa_search.errors import KlsaError

S = TypeVar("S")
Q = TypeVar("Q")
A = TypeVar("A")

_EXIT_SECONDS: Final = 5.0  # time to end for a worker that has closed its pipes
_WORKER: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from importlib import import_module; import_module(sys.argv[1]).serve()"
)


def has_interpreter() -> bool:
    """Return whether child processes can be started; an embedded Python has no executable."""
    return bool(sys.executable)


def command_of(module: str, *arguments: str) -> list[str]:
    """Return the command that runs an installed module, as `python -m` does."""
    return [sys.executable, "-P", "-m", module, *arguments]


_HARMLESS: Final = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|LD_\w+|DYLD_\w+|PYTHON\w*|VIRTUAL_ENV"
    r"|\w+_NUM_THREADS"
)
"""Names of variables that the interpreter, its libraries and the C library read."""


def start_worker(module: str, *, without_secrets: bool = False) -> subprocess.Popen[bytes]:
    """Start a process that calls `serve()` of a module, with pipes as standard input and output.

    without_secrets  of the environment pass only what Python and its libraries read, since any
                     other variable may be a secret: for parsers of files that may be crafted

    It gets the import path of this process, so modules next to a user's script are found. Unlike
    `multiprocessing`, it does not import that script (spawn, forkserver) or copy locked locks
    (fork). BrokenPipeError if it ends at once; OSError if it cannot be started.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _WORKER, module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={n: v for n, v in os.environ.items() if not without_secrets or _HARMLESS.fullmatch(n)},
    )
    try:
        send(process, sys.path)
    except BaseException:
        end(process)
        raise
    return process


def send(process: subprocess.Popen[bytes], value: object) -> None:
    """Write a pickled value to the standard input of a worker."""
    assert process.stdin is not None
    pickle.dump(value, process.stdin, pickle.HIGHEST_PROTOCOL)
    process.stdin.flush()


def read_requests(requests: IO[bytes]) -> Iterator[Any]:
    """Yield the values that the parent of a worker sends, until it closes the pipe or ends."""
    while True:
        try:
            yield pickle.load(requests)  # noqa: S301 - of the parent process
        except EOFError:
            return


def end(process: subprocess.Popen[bytes]) -> int:
    """Kill a worker unless it has ended, close its pipes and return its exit code."""
    process.kill()
    process.communicate()
    return process.returncode


def end_of(code: int) -> str:
    """Return how a process ended, by its exit code."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def exit_with_parent() -> None:
    """Exit when standard input, a pipe from the parent process, is closed.

    The system closes it however the parent ends. Nothing is read from it.
    """

    def watch() -> None:
        pipe = select.poll()
        pipe.register(0, 0)  # that it was closed is always reported
        pipe.poll()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def stop_with_parent() -> None:
    """Stop this process of `multiprocessing`, as SIGTERM does, when its parent process ends."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def pipes_of_worker() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes of requests and answers; to be called once, by `serve()`.

    Output of other code goes to stderr. SIGINT is ignored: Ctrl-C reaches every process of a
    terminal, and the parent handles it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers


class WorkerPool(AbstractContextManager["WorkerPool[Q, A]"], Generic[Q, A]):
    """Processes of a module that answer requests; a context manager that ends them.

    module  whose `serve` calls `answer_requests`
    states  what each process gets first
    name    of a process, in the KlsaError that is raised if it ends early
    Each has a thread that waits for answers. Processes exit when the parent does.
    """

    def __init__(self, module: str, states: Sequence[object], name: str) -> None:
        self._name = name
        self._workers: list[subprocess.Popen[bytes]] = []
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(len(states))
        try:
            for state in states:
                worker = start_worker(module)
                self._workers.append(worker)
                self._send(worker, state, name)
                self._idle.put(worker)
        except BaseException:
            self.close()
            raise

    def __exit__(self, *failure: object) -> None:
        """End the processes."""
        self.close()

    def submit(self, request: Q, name: str | None = None) -> Future[A]:
        """Answer a request in the next free process; KlsaError if that process dies.

        name  of the process while it answers, instead of that of all
        """
        return self._threads.submit(self._exchange, request, name or self._name)

    def close(self) -> None:
        """End the processes; pending requests fail."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.communicate()

    @staticmethod
    def _send(worker: subprocess.Popen[bytes], value: object, name: str) -> None:
        if worker.returncode is not None:  # it died of an earlier request
            raise _died(worker, name)
        try:
            send(worker, value)
        except BrokenPipeError as error:
            raise _died(worker, name) from error

    def _exchange(self, request: Q, name: str) -> A:
        worker = self._idle.get()
        try:
            self._send(worker, request, name)
            assert worker.stdout is not None
            answer: A = pickle.load(worker.stdout)  # noqa: S301 - our child process
        except (EOFError, pickle.UnpicklingError) as error:
            raise _died(worker, name) from error
        finally:
            self._idle.put(worker)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _died(worker: subprocess.Popen[bytes], name: str) -> KlsaError:
    """End a worker that does not answer, and return the error that names it."""
    with suppress(subprocess.TimeoutExpired):  # it closes its pipes before it ends
        worker.wait(_EXIT_SECONDS)
    code = end(worker)
    advice = (
        "make sure that there is free memory" if code == -signal.SIGKILL else "see its messages"
    )
    return KlsaError(f"{name} ended early ({end_of(code)}); {advice}, then build again")


def answer_requests(begin: Callable[[S], Callable[[Q], object]]) -> None:
    """Run a process of a `WorkerPool`: answer requests until they end.

    begin  gets the state of the process, and returns what answers a request
    """
    requests, answers = pipes_of_worker()
    received = read_requests(requests)
    answer_of = begin(next(received))
    exit_with_parent()
    for request in received:
        try:
            answer = answer_of(request)
        except (KlsaError, OSError, MemoryError) as error:
            answer = error
        except Exception:  # noqa: BLE001 - a bug, or code of a plug-in; raised again in the parent
            answer = RuntimeError(f"a worker process failed:\n{format_exc()}")
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
