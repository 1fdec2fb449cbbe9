"""Processors and memory of this process, and work on several threads in order.

A limit of any ancestor applies to all groups below it, so the smallest one counts. Both versions of
cgroups are read, as a machine may use one for processors and the other for memory.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

_PROCESS: Final = Path("/proc/self")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def processor_limit(process: Path = _PROCESS) -> float | None:
    """Return how many processors' time this process may use; None without a limit.

    process  its folder in /proc
    """
    limits = []
    for folder in _folders("cpu", process):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if not quota:
            quota = _read(folder / "cpu.cfs_quota_us")  # -1 without a limit
            period = _read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def memory_limit(process: Path = _PROCESS) -> int | None:
    """Return how many bytes of memory this process and its group may use; None without a limit.

    process  its folder in /proc
    """
    limits = [
        int(limit)
        for folder in _folders("memory", process)
        for name in ("memory.max", "memory.limit_in_bytes")
        if (limit := _read(folder / name)).isdigit()
    ]
    return min(limits, default=None)


def _folders(controller: str, process: Path) -> Iterator[Path]:
    """Yield the folders of the groups of a process that a controller limits, ancestors too."""
    groups = [line.split(":", 2) for line in _read(process / "cgroup").splitlines()]
    for line in _read(process / "mountinfo").splitlines():
        # The fields before the dash vary in number, see proc(5).
        mount, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        root, point = map(_unescaped, mount.split(" ")[3:5])
        for _, controllers, group in groups:
            if kind == "cgroup2":
                fits = not controllers
            else:
                fits = controller in controllers.split(",") and controller in options.split(",")
            if fits:
                yield from _ancestors(Path(point), PurePosixPath(root), PurePosixPath(group))


def _ancestors(point: Path, root: PurePosixPath, group: PurePosixPath) -> Iterator[Path]:
    """Yield the folder of a group and those above it, up to the mount point of a hierarchy."""
    if group.is_relative_to(root) and ".." not in group.parts:
        folder = point / group.relative_to(root)
        while folder != point:
            yield folder
            folder = folder.parent
    yield point  # alone if the group lies outside of what is mounted here


def _unescaped(path: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), path)


def _read(path: Path) -> str:
    """Return the text of a small file without its line end; "" if there is no such file."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:  # no cgroups on this system, or no such limit
        return ""


T = TypeVar("T")
R = TypeVar("R")

_quota: Final = cache(processor_limit)  # reading it takes a tenth of the time of a write


def processors() -> int:
    """Return how many processors this process may use, by its affinity and its CPU quota.

    A quota is rounded up, and read once a process.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    limit = _quota()
    return count if limit is None else min(count, math.ceil(limit))


def exit_with_parent(last: Callable[[], object] | None = None) -> None:
    """End this process as soon as its standard input does: a pipe from the one that started it.

    That closes when its other end does, however that process ends.
    last  what is done then, such as removing what the other can no longer remove
    """

    def watch() -> None:
        os.read(0, 1)  # not by sys.stdin, whose lock could not be taken at the end
        try:
            if last is not None:
                last()
        finally:  # whatever it raises
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def map_in_order(
    submit: Callable[[T], Future[R]], items: Iterable[T], *, ahead: int
) -> Iterator[R]:
    """Yield the result of each item in the order of the items, `ahead` of them under way.

    Unlike `Executor.map` it takes an item only when there is room for it, so that memory stays
    bounded however many there are. What a task raises is raised here, at its place.
    """
    under_way: deque[Future[R]] = deque()
    for item in items:
        under_way.append(submit(item))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
