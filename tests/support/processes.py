"""Child processes of this process."""

from __future__ import annotations

from pathlib import Path


def child_processes(word: str) -> list[int]:
    """Return the process IDs of the children with a word in their command, ascending."""
    lists = Path("/proc/self/task").glob("*/children")
    children = sorted(int(child) for file in lists for child in file.read_text().split())
    return [child for child in children if word in Path(f"/proc/{child}/cmdline").read_text()]
