"""Worker processes of a service: they share its socket and the memory-mapped indexes.

uvicorn's supervisor creates its servers itself, and kills a process that does not answer for five
seconds, as one that runs compiled code may not.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final

from klsa_search.core.child_processes import command_of
from klsa_search.service.server import STOP_TIMEOUT
from klsa_search.service.settings import ServiceSettings

MODULE: Final = "klsa_search.cli.worker"

_POLL_INTERVAL: Final = 0.2
"""Seconds between two checks of the processes."""

_RESTART_INTERVAL: Final = 2.0
"""Minimum seconds between the start of a process and that of its replacement."""


class Workers:
    """Runs worker processes on a socket, and replaces those that end.

    Each reads the settings from its stdin, and ends when that is closed, as it is when this process
    ends. Metrics are shared in files of a temporary folder.
    """

    def __init__(
        self, settings: ServiceSettings, listener: socket.socket, report: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._report = report
        self._stopping = False
        self._second_signal: int | None = None
        self._started = [0.0] * settings.workers  # in seconds of `monotonic`
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self) -> None:
        """Run the workers until SIGINT, SIGTERM or SIGHUP, then stop them and wait.

        A second SIGINT or SIGTERM kills them and raises SystemExit.
        """
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, self._on_signal)
        with tempfile.TemporaryDirectory(prefix="klsa-workers-") as folder:
            self._processes = [self._start(number, folder) for number in range(len(self._started))]
            while not self._stopping:
                for number, process in enumerate(self._processes):
                    ended = process.poll() is not None and not self._stopping
                    if ended and time.monotonic() - self._started[number] > _RESTART_INTERVAL:
                        self._report(_ended(number, process.returncode))
                        self._restart(number, folder)
                time.sleep(_POLL_INTERVAL)
            self._listener.close()  # else new connections wait for a process to accept them
            for process in self._processes:
                process.terminate()
            self._wait()

    def _wait(self) -> None:
        """Wait for all workers to end, and kill those that exceed the timeout."""
        end = time.monotonic() + STOP_TIMEOUT
        for number, process in enumerate(self._processes):
            while not _ends(process, _POLL_INTERVAL):
                if self._second_signal is not None:
                    self._kill()
                    raise SystemExit(128 + self._second_signal)
                if time.monotonic() >= end:
                    self._report(
                        f"warning: worker {number} did not stop within {STOP_TIMEOUT:g} s "
                        "and was killed"
                    )
                    process.kill()

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def _restart(self, number: int, folder: str) -> None:
        """Start the replacement of a worker; if that fails, it is retried later."""
        try:
            self._processes[number] = self._start(number, folder)
        except OSError as error:
            self._report(f"warning: worker {number} could not be started ({error}); will retry")

    def _start(self, number: int, folder: str) -> subprocess.Popen[bytes]:
        self._started[number] = time.monotonic()
        descriptor = self._listener.fileno()
        process = subprocess.Popen(
            command_of(MODULE, str(number), str(descriptor), folder),
            stdin=subprocess.PIPE,
            pass_fds=[descriptor],
            env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": folder},
            start_new_session=True,  # Ctrl-C goes to this process only, which stops the workers
        )
        assert process.stdin is not None
        process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
        process.stdin.flush()
        return process

    def _on_signal(self, kind: int, _: Any = None) -> None:
        # A signal may arrive while a process is being started, so it only sets flags.
        if self._stopping and kind != signal.SIGHUP:  # a closing terminal may send it twice
            self._second_signal = kind
        self._stopping = True


def _ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended(number: int, code: int) -> str:
    cause = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
    return f"warning: worker {number} {cause}; starting a new one"
