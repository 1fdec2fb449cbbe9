"""Processors and memory of this process, ordered work on threads, and BLAS on one.

Limits are read from cgroups. That of an ancestor applies to all groups below it, so the smallest
one counts. Both versions are read: a machine may use one for processors, the other for memory.
"""

from __future__ import annotations

import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_PROCESS: Final = Path("/proc/self")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def processor_limit(process: Path = _PROCESS) -> float | None:
    """Return the CPU quota of this process in processors; None without a limit.

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
    """Return the memory limit of this process and its group in bytes; None without a limit.

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
    """Yield the folders of the cgroups of a process for a controller, ancestors included."""
    groups = [line.split(":", 2) for line in _read(process / "cgroup").splitlines()]
    for root, point, kind, options in mounts(process / "mountinfo"):
        for _, controllers, group in groups:
            is_v1 = controller in controllers.split(",") and controller in options.split(",")
            if (kind == "cgroup" and is_v1) or (kind == "cgroup2" and not controllers):
                yield from _ancestors(Path(point), PurePosixPath(root), PurePosixPath(group))


def _ancestors(point: Path, root: PurePosixPath, group: PurePosixPath) -> Iterator[Path]:
    """Yield the folder of a group and those above it, up to the mount point of a hierarchy."""
    if group.is_relative_to(root) and ".." not in group.parts:
        folder = point / group.relative_to(root)
        while folder != point:
            yield folder
            folder = folder.parent
    yield point  # only this one if the group is outside of the mounted hierarchy


class Mount(NamedTuple):
    """A mounted file system: the folder of it that is mounted, where, its type and its options."""

    root: str
    point: str
    kind: str
    options: str


def mounts(mountinfo: Path) -> Iterator[Mount]:
    """Yield the file systems of a mountinfo file, in order; none if there is no such file."""
    for line in _read(mountinfo).splitlines():
        # The number of fields before the dash varies; see proc(5).
        mount, _, system = (part.split(" ") for part in line.partition(" - "))
        if len(mount) > 4 and len(system) > 2:
            yield Mount(_unescaped(mount[3]), _unescaped(mount[4]), system[0], system[2])


def _unescaped(path: str) -> str:
    """Return a path that the kernel escaped."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), path)


def _read(path: Path) -> str:
    """Return the text of a small file without its line end; "" if there is no such file."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:  # no cgroups on this system, or no such limit
        return ""


T = TypeVar("T")
R = TypeVar("R")

processor_quota: Final = cache(processor_limit)  # reading it would add 10% to a write


def processors() -> int:
    """Return the number of processors this process may use, by its affinity and CPU quota.

    The quota is read once per process and rounded up.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    limit = processor_quota()
    return count if limit is None else min(count, math.ceil(limit))


@cache
def _blas() -> ThreadpoolController:
    """Find the BLAS of NumPy and that of SciPy, which takes 0.4 ms."""
    import scipy.linalg  # noqa: F401 - only libraries that are loaded are found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: sums, whose order depends on the number, are the same bits."""
    limit: AbstractContextManager[object] = _blas().limit(limits=1)
    return limit


def map_in_order(
    submit: Callable[[T], Future[R]], items: Iterable[T], *, ahead: int
) -> Iterator[R]:
    """Yield the results in the order of the items, with up to `ahead` further tasks pending.

    Unlike `Executor.map` it consumes items lazily, so memory stays bounded. An exception of a task
    is raised in the place of its result.
    """
    pending: deque[Future[R]] = deque()
    for item in items:
        pending.append(submit(item))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
