"""Worker processes that are forked from one which has imported what they need."""

import os
import sys
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection

_FORKING = get_context("forkserver")
_FORKING.set_forkserver_preload(["klsa_search.service.file_reading"])


def prepare() -> None:
    """Start the process that forks, with a socket in the folder of temporary files."""
    process = _FORKING.Process(target=int)
    process.start()
    process.join()


class ForkedWorker:
    """What the parent uses of the `Popen` of a worker.

    It is ready after 10 ms of processor time, not half a second.
    """

    def __init__(self, module: str, *, without_secrets: bool) -> None:
        requests, written = _FORKING.Pipe(duplex=False)
        read, answers = _FORKING.Pipe(duplex=False)
        self._process = _FORKING.Process(target=_serve, args=(module, requests, answers))
        self._process.start()
        self.stdin, self.stdout = (
            os.fdopen(os.dup(end.fileno()), mode) for end, mode in ((written, "wb"), (read, "rb"))
        )
        for end in (requests, written, read, answers):
            end.close()

    @property
    def returncode(self) -> int | None:
        """Return the exit code, None while the worker runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """Kill the worker."""
        self._process.kill()

    def wait(self) -> int | None:
        """Wait for its end and return the exit code."""
        self._process.join()
        return self._process.exitcode

    def communicate(self) -> None:
        """Close the pipes and wait for the end."""
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        self.wait()


def _serve(module: str, requests: Connection, answers: Connection) -> None:
    for end, number in ((requests, 0), (answers, 1)):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    import_module(module).serve()
