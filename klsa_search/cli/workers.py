"""Worker processes of a service: they share its socket and the memory-mapped indexes.

uvicorn's supervisor creates its servers itself, and kills a process that does not answer for five
seconds, as one that runs compiled code may not.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from klsa_search.cli.hangup import Hangup
from klsa_search.cli.main import explain
from klsa_search.cli.systemd import notify_ready, notify_reloading, notify_stopping
from klsa_search.core.child_processes import command_of
from klsa_search.errors import KlsaError
from klsa_search.service.server import STOP_TIMEOUT
from klsa_search.service.settings import ServiceSettings
from klsa_search.service.tls import tls_of

MODULE: Final = "klsa_search.cli.worker"

RETIRE: Final = signal.SIGQUIT
"""Signal for a worker to finish its requests, its connections and its refit, and then to exit."""

_POLL_INTERVAL: Final = 0.2
"""Seconds between two checks of the processes."""

_RESTART_INTERVAL: Final = 2.0
"""Minimum seconds between the start of a process and that of its replacement."""


class Worker:
    """One worker process.

    number  its number in metrics
    folder  folder of the shared metrics
    It reads the settings from its stdin, and ends when that is closed, as it is when this process
    ends. OSError if it cannot be started.
    """

    def __init__(
        self, number: int, settings: ServiceSettings, listener: socket.socket, folder: str
    ) -> None:
        self.number = number
        self._started = time.monotonic()
        self._is_ready = False
        descriptor = listener.fileno()
        # Only this process reports to systemd.
        environment = {k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"}
        self._ready, written = os.pipe()
        try:
            self.process = subprocess.Popen(
                command_of(MODULE, str(number), str(descriptor), str(written), folder),
                stdin=subprocess.PIPE,
                pass_fds=[descriptor, written],
                env=environment | {"PROMETHEUS_MULTIPROC_DIR": folder},
                start_new_session=True,  # Ctrl-C goes to this process only, which stops the workers
            )
        except OSError:
            os.close(self._ready)
            raise
        finally:
            os.close(written)
        assert self.process.stdin is not None
        self.process.stdin.write(settings.model_dump_json().encode() + b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """Free the pipes of an ended process."""
        os.close(self._ready)
        assert self.process.stdin is not None
        self.process.stdin.close()

    @property
    def is_ready(self) -> bool:
        """Whether it answers requests, or did until it ended."""
        if not self._is_ready and select.select([self._ready], [], [], 0)[0]:
            self._is_ready = bool(os.read(self._ready, 1))  # nothing if it ended before
        return self._is_ready

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self.process.poll()

    @property
    def may_be_replaced(self) -> bool:
        """Whether it ended, and not directly after its start."""
        return self.exit_code is not None and time.monotonic() - self._started > _RESTART_INTERVAL


class Workers:
    """Runs worker processes on a socket, and replaces those that end.

    reread  reads the settings again for a rolling restart
    Metrics are shared in files of a temporary folder.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        listener: socket.socket,
        report: Callable[[str], None],
        reread: Callable[[], ServiceSettings],
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._report = report
        self._reread = reread
        self._hangup = Hangup()
        self._stopping = False
        self._second_signal: int | None = None
        self._reload_requested = False
        self._workers: list[Worker] = []
        self._outdated: deque[int] = deque()  # numbers of the workers to restart
        self._successor: Worker | None = None
        self._retired: list[Worker] = []

    def run(self) -> None:
        """Run the workers until SIGINT or SIGTERM, then stop them and wait.

        SIGHUP restarts one after another, or stops all if the terminal was closed. A second SIGINT
        or SIGTERM kills them and raises SystemExit.
        """
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, self._on_signal)
        with tempfile.TemporaryDirectory(prefix="klsa-workers-") as folder:
            count = self._settings.workers
            self._workers = [self._start(number, folder) for number in range(count)]
            is_starting = True
            while not self._stopping:
                if is_starting and all(worker.is_ready for worker in self._workers):
                    is_starting = False
                    notify_ready()
                self._replace_ended(folder)
                if self._reload_requested:
                    self._begin_restart()
                self._continue_restart(folder)
                time.sleep(_POLL_INTERVAL)
            notify_stopping()
            self._listener.close()  # else new connections wait for a process to accept them
            for worker in self._all():
                worker.process.terminate()
            self._wait()

    def _replace_ended(self, folder: str) -> None:
        """Replace workers that ended; if that fails, it is retried later."""
        for place, worker in enumerate(self._workers):
            if worker.may_be_replaced and not self._stopping:
                self._report(f"warning: {_ended(worker)}; starting a new one")
                try:
                    self._workers[place] = self._start(worker.number, folder)
                except OSError as error:
                    self._report(
                        f"warning: worker {worker.number} could not be started ({error}); "
                        "will retry"
                    )
                else:
                    worker.close()

    def _begin_restart(self) -> None:
        """Begin a rolling restart, if the settings and the certificate are valid."""
        self._reload_requested = False
        notify_reloading()
        try:
            settings = self._reread()
            tls_of(settings.tls_certificate, settings.tls_key)
        except (KlsaError, OSError) as failure:
            self._report(f"warning: nothing was restarted: {explain(failure)}")
            notify_ready()
            return
        self._settings = settings
        self._report("Restarting the workers one after another")
        self._outdated = deque(range(len(self._workers)))

    def _continue_restart(self, folder: str) -> None:
        """Start the next successor, or retire the worker whose successor is ready."""
        for worker in self._retired[:]:
            if worker.exit_code is not None:
                worker.close()
                self._retired.remove(worker)
        if self._successor is not None:
            self._check_successor(self._successor)
        elif self._outdated:
            try:
                self._successor = self._start(self._outdated[0], folder)
            except OSError as error:
                self._abandon_restart(f"worker {self._outdated[0]} could not be started ({error})")
            else:
                self._outdated.popleft()

    def _check_successor(self, successor: Worker) -> None:
        if successor.exit_code is not None:
            successor.close()
            self._abandon_restart(_ended(successor))
        elif successor.is_ready:
            former = self._workers[successor.number]
            self._workers[successor.number] = successor
            self._retired.append(former)
            self._successor = None
            former.process.send_signal(RETIRE)
            if not self._outdated:
                self._report("Restarted all workers")
                notify_ready()

    def _abandon_restart(self, cause: str) -> None:
        self._report(f"warning: the restart was abandoned: {cause}; the other workers continue")
        self._successor = None
        self._outdated.clear()
        notify_ready()

    def _all(self) -> list[Worker]:
        return [*self._workers, *self._retired, *([self._successor] if self._successor else [])]

    def _wait(self) -> None:
        """Wait for all workers to end, and kill those that exceed the timeout."""
        end = time.monotonic() + STOP_TIMEOUT
        for worker in self._all():
            while not _ends(worker.process, _POLL_INTERVAL):
                if self._second_signal is not None:
                    self._kill()
                    raise SystemExit(128 + self._second_signal)
                if time.monotonic() >= end:
                    self._report(
                        f"warning: worker {worker.number} did not stop within {STOP_TIMEOUT:g} s "
                        "and was killed"
                    )
                    worker.process.kill()

    def _kill(self) -> None:
        for worker in self._all():
            worker.process.kill()
        for worker in self._all():
            worker.process.wait()

    def _start(self, number: int, folder: str) -> Worker:
        return Worker(number, self._settings, self._listener, folder)

    def _on_signal(self, kind: int, _: Any = None) -> None:
        # A signal may arrive while a process is being started, so it only sets flags.
        if kind == signal.SIGHUP:
            # A closing terminal may send it twice.
            if self._hangup.is_reload():
                self._reload_requested = True
            else:
                self._stopping = True
        else:
            if self._stopping:
                self._second_signal = kind
            self._stopping = True


def _ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended(worker: Worker) -> str:
    code = worker.exit_code
    assert code is not None
    cause = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
    return f"worker {worker.number} {cause}"
