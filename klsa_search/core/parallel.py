"""Processors and memory of this process, ordered work on threads, and Python child processes.

Limits are read from cgroups. That of an ancestor applies to all groups below it, so the smallest
one counts. Both versions are read: a machine may use one for processors, the other for memory.

`python -m` and `python -c` put the current folder first on the import path, so a file there such as
`resource.py` would be imported. The option -P prevents that; all commands of child processes are
made here.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, TypeVar

from klsa_search.errors import KlsaError

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
    for line in _read(process / "mountinfo").splitlines():
        # The number of fields before the dash varies; see proc(5).
        mount, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        root, point = map(unescaped, mount.split(" ")[3:5])
        for _, controllers, group in groups:
            if kind == "cgroup2":
                matches = not controllers
            else:
                matches = controller in controllers.split(",") and controller in options.split(",")
            if matches:
                yield from _ancestors(Path(point), PurePosixPath(root), PurePosixPath(group))


def _ancestors(point: Path, root: PurePosixPath, group: PurePosixPath) -> Iterator[Path]:
    """Yield the folder of a group and those above it, up to the mount point of a hierarchy."""
    if group.is_relative_to(root) and ".." not in group.parts:
        folder = point / group.relative_to(root)
        while folder != point:
            yield folder
            folder = folder.parent
    yield point  # only this one if the group is outside of the mounted hierarchy


def unescaped(path: str) -> str:
    """Return a path that the kernel escaped, as in mountinfo."""
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


_WORKER: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from importlib import import_module; import_module(sys.argv[1]).serve()"
)


def has_interpreter() -> bool:
    """Return whether child processes can be started; an embedded Python has no executable."""
    return bool(sys.executable)


def command_of(module: str, *arguments: str) -> list[str]:
    """Return the command that runs an installed module, as `python -m` does."""
    return [sys.executable, "-P", "-m", module, *arguments]


def start_worker(module: str) -> subprocess.Popen[bytes]:
    """Start a process that calls `serve()` of a module, with pipes as standard input and output.

    It gets the import path of this process, so modules next to a user's script are found. Unlike
    `multiprocessing`, it does not import that script (spawn, forkserver) or copy locked locks
    (fork). BrokenPipeError if it ends at once; OSError if it cannot be started.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _WORKER, module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        send(process, sys.path)
    except BaseException:
        end(process)
        raise
    return process


def send(process: subprocess.Popen[bytes], value: object) -> None:
    """Write a pickled value to the standard input of a worker."""
    assert process.stdin is not None
    pickle.dump(value, process.stdin, pickle.HIGHEST_PROTOCOL)
    process.stdin.flush()


def call(process: subprocess.Popen[bytes], request: object, name: str) -> object:
    """Send a request to a worker and return its answer, or raise it if it is an exception.

    name  of the worker in the KlsaError that is raised if it ends instead
    """
    try:
        send(process, request)
        assert process.stdout is not None
        answer: object = pickle.load(process.stdout)  # noqa: S301 - our child process
    except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
        raise died(process, name) from error
    if isinstance(answer, Exception):
        raise answer
    return answer


def died(process: subprocess.Popen[bytes], name: str) -> KlsaError:
    """End a worker that does not answer, and return the error that names it."""
    code = end(process)
    fact = f"signal {-code}" if code < 0 else f"exit code {code}"
    advice = (
        "make sure that there is free memory" if code == -signal.SIGKILL else "see its messages"
    )
    return KlsaError(f"{name} ended early ({fact}); {advice}, then build again")


def read_requests(requests: IO[bytes]) -> Iterator[Any]:
    """Yield the values that the parent of a worker sends, until it closes the pipe or ends."""
    while True:
        try:
            yield pickle.load(requests)  # noqa: S301 - of the parent process
        except EOFError:
            return


def end(process: subprocess.Popen[bytes]) -> int:
    """Kill a worker unless it has ended, close its pipes and return its exit code."""
    process.kill()
    process.communicate()
    return process.returncode


def exit_with_parent() -> None:
    """Exit when standard input, a pipe from the parent process, is closed.

    The system closes it however the parent ends. Nothing is read from it.
    """

    def watch() -> None:
        pipe = select.poll()
        pipe.register(0, 0)  # that it was closed is always reported
        pipe.poll()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def stop_with_parent() -> None:
    """Stop this process of `multiprocessing`, as SIGTERM does, when its parent process ends."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def pipes_of_worker() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes of requests and answers; to be called once, by `serve()`.

    Output of other code goes to stderr. SIGINT is ignored: Ctrl-C reaches every process of a
    terminal, and the parent handles it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, answers
