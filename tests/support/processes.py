"""Child processes of this process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.waiting import PATIENCE, wait_until


def started_children(word: str, count: int) -> list[int]:
    """Return what `child_processes` does, once there are so many: a new one has no command yet."""
    wait_until(lambda: len(child_processes(word)) >= count)
    return child_processes(word)


def child_processes(word: str) -> list[int]:
    """Return the process IDs of the children with a word in their command, ascending."""
    lists = Path("/proc/self/task").glob("*/children")
    children = sorted(int(child) for file in lists for child in file.read_text().split())
    return [child for child in children if word in Path(f"/proc/{child}/cmdline").read_text()]


def run(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it printed."""
    options = {"capture_output": True, "text": True, "timeout": 2 * PATIENCE, **options}
    return subprocess.run([str(word) for word in command], **options)


def run_python(
    program: str, *arguments: object, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program of Python likewise."""
    return run(sys.executable, "-c", program, *arguments, **options)
