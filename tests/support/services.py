"""Commands that serve, each in a process group of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.shown import end
from tests.support.waiting import PATIENCE

COMMANDS = Path(sys.executable).parent  # the folder of `klsa-serve` and the other commands


def clean_environment(**variables: str) -> dict[str, str]:
    """Return the environment of a user's shell: the commands on PATH, no setting of a service."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("KLSA_") and name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return kept | {"PATH": f"{COMMANDS}{os.pathsep}{kept['PATH']}"} | variables


@dataclass
class Service:
    """A command that serves at an address."""

    process: subprocess.Popen[str]
    address: str

    def stop(self) -> tuple[int, str]:
        """Send SIGTERM to the process; return its exit code and what it printed since."""
        self.process.send_signal(signal.SIGTERM)
        printed, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, printed


@contextmanager
def served_by(command: Sequence[str], folder: Path, **variables: str) -> Iterator[Service]:
    """Start a command in a folder; yield once it serves, and kill what is left at the end."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=clean_environment(KLSA_PORT="0", **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        printed = ""
        try:
            assert process.stdout is not None
            for line in process.stdout:
                printed += line
                if serving := re.match(r"Serving .* at (http://\S+) ", line):
                    yield Service(process, serving[1])
                    break
            else:
                raise AssertionError(f"{command} serves nothing:\n{printed}")
        finally:
            end(process.pid)
