"""Child processes of this process."""

from pathlib import Path

from tests.support.waiting import wait_until


def started_children(word: str, count: int) -> list[int]:
    """Return what `child_processes` does, once there are so many: a new one has no command yet."""
    wait_until(lambda: len(child_processes(word)) >= count)
    return child_processes(word)


def child_processes(word: str) -> list[int]:
    """Return the process IDs of the children with a word in their command, ascending."""
    lists = Path("/proc/self/task").glob("*/children")
    children = sorted(int(child) for file in lists for child in file.read_text().split())
    return [child for child in children if word in Path(f"/proc/{child}/cmdline").read_text()]
