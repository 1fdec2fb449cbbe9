"""Several processes that answer at one address: they share its socket and the mapped indexes.

uvicorn's own supervisor makes its servers itself and ends a process that is silent for five
seconds; ours are made of a catalog, and one at work in compiled code is no dead one.
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
from klsa_search.service.server import LONGEST_STOP
from klsa_search.service.settings import ServiceSettings

MODULE: Final = "klsa_search.cli.worker"

_LOOK: Final = 0.2
"""Seconds between two looks at the processes."""

_REST: Final = 2.0
"""Seconds at least from the start of a process to that of the one in its place."""


class Workers:
    """Keeps so many processes at work on a socket, until it is stopped.

    Each gets the settings on its standard input, which stays open as long as this process lives:
    it ends with it. What is counted for /metrics, and known of refits, goes to files of a folder
    that all share.
    """

    def __init__(
        self, settings: ServiceSettings, listener: socket.socket, tell: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._tell = tell
        self._leaving = False
        self._at_once: int | None = None  # the second signal
        self._begun = [0.0] * settings.workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self) -> None:
        """Start them, and again whichever ends, until SIGINT, SIGTERM or SIGHUP; then wait for
        all, as long as they may take. SystemExit at a second SIGINT or SIGTERM, with none left.
        """
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, self._leave)
        with tempfile.TemporaryDirectory(prefix="klsa-workers-") as folder:
            self._processes = [self._start(number, folder) for number in range(len(self._begun))]
            while not self._leaving:
                for number, process in enumerate(self._processes):
                    ended = process.poll() is not None and not self._leaving
                    if ended and time.monotonic() - self._begun[number] > _REST:
                        self._tell(_how(number, process.returncode))
                        self._start_again(number, folder)
                time.sleep(_LOOK)
            self._listener.close()  # or new connections would wait for a process to accept them
            for process in self._processes:
                process.terminate()
            self._wait()

    def _wait(self) -> None:
        """Wait for all, as long as one may take to end, and end those that take longer."""
        end = time.monotonic() + LONGEST_STOP
        for number, process in enumerate(self._processes):
            while not _ends(process, _LOOK):
                if self._at_once is not None:
                    self._kill()
                    raise SystemExit(128 + self._at_once)
                if time.monotonic() >= end:
                    self._tell(
                        f"warning: worker {number} did not stop within {LONGEST_STOP:g} s "
                        "and was killed"
                    )
                    process.kill()

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def _start_again(self, number: int, folder: str) -> None:
        """Start one in the place of one that ended; where there is no room, it is for later."""
        try:
            self._processes[number] = self._start(number, folder)
        except OSError as error:
            self._tell(f"warning: worker {number} could not be started ({error}); will retry")

    def _start(self, number: int, folder: str) -> subprocess.Popen[bytes]:
        self._begun[number] = time.monotonic()
        descriptor = self._listener.fileno()
        process = subprocess.Popen(
            command_of(MODULE, str(number), str(descriptor), folder),
            stdin=subprocess.PIPE,
            pass_fds=[descriptor],
            env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": folder},
            start_new_session=True,  # Ctrl-C is for this process, which stops them
        )
        assert process.stdin is not None
        process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
        process.stdin.flush()
        return process

    def _leave(self, kind: int, _: Any = None) -> None:
        # It may come at any moment, as while a process is being started: it is only noted.
        if self._leaving and kind != signal.SIGHUP:  # which a terminal may send twice as it closes
            self._at_once = kind
        self._leaving = True


def _ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _how(number: int, code: int) -> str:
    ended = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
    return f"warning: worker {number} {ended}; starting a new one"
