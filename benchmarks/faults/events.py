"""File events of a process, as Python's audit hooks see them, just before each happens."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

_KINDS = (
    "open", "os.chmod", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
    "os.scandir", "os.symlink", "os.truncate", "os.utime", "sqlite3.connect",
)  # fmt: skip


def watch(folder: Path, happens: Callable[[str], None]) -> None:
    """Call with each file event below the folder from now on; there is no way back.

    An event is its name and path, with numbers of generations made equal.
    """
    inside = str(folder)
    within = False

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal within
        if within or not (event in _KINDS or event.startswith("shutil.")):
            return
        path = arguments[0] if arguments else None
        if not isinstance(path, str | bytes | os.PathLike):
            # A file by its descriptor: it may well be one of ours.
            path = "descriptor"
        name = os.fsdecode(path)
        if os.path.isabs(name) and not name.startswith(inside):
            return
        within = True
        try:
            happens(f"{event} {re.sub(r'[0-9]{6}', 'generation', name.removeprefix(inside))}")
        finally:
            within = False

    sys.addaudithook(hook)


def at_event(folder: Path, number: int, act: Callable[[str], None]) -> None:
    """Do something just before the event of that number, from 0."""
    count = -1

    def happens(event: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            act(event)

    watch(folder, happens)


def telling(events: list[str]) -> list[int]:
    """Choose the first and the last event of every kind: of arrays, one stands for all."""
    kinds: dict[str, list[int]] = {}
    for number, event in enumerate(events):
        kind = re.sub(r"\w+\.npy", "array", event)
        kinds.setdefault(kind, []).append(number)
    return sorted({number for found in kinds.values() for number in (found[0], found[-1])})
