"""Ray: the processes of a cluster, as workers of a build and as replicas of shards.

The one module that knows the engine. A step whose process dies is retried, and Ray restarts an
actor that dies; what either returns follows from files alone.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from klsa_search.cluster.calls import CallFailed, Reference
from klsa_search.core.extras import require
from klsa_search.errors import ClusterFailed

LOCAL: Final = "local"
"""The address that stands for processes of this machine, which end with this one."""

START: Final = 600.0
"""Seconds that shards have to open their files, compile what is not and say so."""

MAX_RETRIES: Final = 5
"""Retries of a step whose process died. One that needs more memory than there is dies each time."""

_PATIENCE: Final = 5.0  # seconds for a connection
_AHEAD: Final = 4  # calls handed over for each process that is there
_AT_ONCE: Final = 4  # calls that an actor answers at the same time
_ASKED: Final = 2**20  # bytes: Ray puts an actor that asks for nothing on any machine it likes
_STORE: Final = 256 * 2**20  # bytes for what is on its way between processes of this machine
_BEHIND: Final = ExitStack()  # removes what a local cluster leaves behind, which has ended by then


def connect(address: str, processes: int | None = None) -> Any:
    """Join a cluster, or start one here; returns the engine. What is joined already stays.

    address    "local", "auto", or HOST:PORT of the head; "ray://HOST:PORT" from outside
    processes  of a local one; as many as processors by default
    MissingExtra; ClusterFailed where there is none at the address. Cost: seconds.
    """
    require("cluster")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the machine
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        return ray
    _refuse_silent(address)
    local: dict[str, Any] = {}
    if address == LOCAL:
        behind = tempfile.TemporaryDirectory(prefix="klsa-ray-", ignore_cleanup_errors=True)
        local = {
            "num_cpus": processes,
            "include_dashboard": False,
            "object_store_memory": _STORE,
            "_temp_dir": _BEHIND.enter_context(behind),  # Ray's own fills with a folder a start
        }
        atexit.register(leave)  # before the handlers of what is imported by now
        # Ray makes its processes give way to all others of a machine.
        os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        with _own_handlers():
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                namespace="klsa",
                **local,
            )
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ClusterFailed(
            f"no cluster at `{address}` ({str(error).splitlines()[0]}); check `ray "
            "status` there, or use processes of this machine with --cluster local"
        ) from error
    return ray


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Keep what this process does at a signal: Ray puts in its place what aborts at SIGTERM."""
    handlers = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # no other can
            for kind, handler in handlers.items():
                signal.signal(kind, handler)


def _refuse_silent(address: str) -> None:
    """ClusterFailed where nothing listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ClusterFailed(
            f"no cluster at `{address}` ({error}); check `ray status` there, or "
            "use processes of this machine with --cluster local"
        ) from error


def leave() -> None:
    """Leave the cluster; a local one ends, and its logs go."""
    import ray

    ray.shutdown()
    _BEHIND.close()


class _Task(NamedTuple):
    """A call that was handed over.

    number   among all calls
    retries  how often its process died
    """

    number: int
    call: tuple[Any, ...]
    retries: int


class RayWorkers:
    """Workers of a build: see `work.Workers`.

    Each call runs in a process of its own, and again if that dies, up to `MAX_RETRIES` times; a
    step that ended is not done again.
    """

    def __init__(self, address: str, processes: int | None = None) -> None:
        self._ray = connect(address, processes)

    def each(
        self, function: Callable[..., None], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[int]:
        """Make all calls; what one raises is raised here.

        ClusterFailed names the step if its process died too often.
        """
        ray = self._ray
        # Retries are counted here: Ray's own limit leaves out those that its memory monitor killed.
        remote = ray.remote(num_cpus=1, max_retries=0)(function)
        under_way: dict[Any, _Task] = {}
        most = _AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        for number, call in enumerate(calls):
            if len(under_way) >= most:
                yield from self._ended(remote, under_way)
            under_way[remote.remote(*call)] = _Task(number, call, 0)
        while under_way:
            yield from self._ended(remote, under_way)

    def _ended(self, remote: Any, under_way: dict[Any, _Task]) -> Iterator[int]:
        """Wait for a task to end, and yield its number; submit it again if its process died."""
        exceptions = self._ray.exceptions
        died = (
            exceptions.OutOfMemoryError,
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.LocalRayletDiedError,
        )
        done, _ = self._ray.wait(list(under_way), num_returns=1)
        for reference in done:
            task = under_way.pop(reference)
            try:
                self._ray.get(reference)
            except exceptions.RayTaskError as error:
                raise error.cause from None
            except died as error:
                if task.retries == MAX_RETRIES:
                    raise ClusterFailed(
                        f"step `{_step_of(task.call)}` of the build failed: its worker process "
                        f"died {MAX_RETRIES + 1} times ({_brief(error)}), most likely because "
                        "it ran out of memory; give more `--shards`, fewer workers a machine or "
                        "machines with more memory, and set `--memory` (in Python `memory=`) to "
                        "what a worker has, so that a build that needs more is refused; then "
                        "start it again: finished steps are kept"
                    ) from error
                retried = task._replace(retries=task.retries + 1)
                under_way[remote.remote(*task.call)] = retried
                continue
            except exceptions.RayError as error:
                raise ClusterFailed(
                    f"a step of the build failed ({_brief(error)}); check memory "
                    "and disk of the cluster, and start the build again: finished "
                    "steps are kept"
                ) from error
            yield task.number


class RayFleet:
    """Processes that answer for shards: see `index.Fleet`.

    shards    of each index; `replicas` of each shard
    """

    def __init__(self, address: str, shards: int, replicas: int = 1) -> None:
        self._ray = connect(address)
        self._shards, self._replicas = shards, replicas

    def replicas(self, generation: Path, tokenizer: str | None) -> RayReplicas:
        """Start those of one generation, and wait until each is there; they end with their last
        user. ClusterFailed, with what the first of those that failed said.
        """
        return RayReplicas(
            self._ray, str(generation.absolute()), self._shards, self._replicas, tokenizer
        )


def machines_of(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the machines for shards, in an order of their own: those that have processors to give.

    One without joined to lead the cluster, or to ask. Where there is no other, it has to do.
    """
    alive = [node for node in nodes if node["Alive"]]
    able = [node for node in alive if node["Resources"].get("CPU", 0) > 0]
    return sorted(node["NodeID"] for node in able or alive)


def places(shards: int, replicas: int, machines: Sequence[str]) -> list[list[str]]:
    """Return the machine of each replica of each shard.

    Those of a shard are on different ones, as far as there are so many; each has as many as others.
    """
    return [
        [machines[(shard + replica) % len(machines)] for replica in range(replicas)]
        for shard in range(shards)
    ]


class RayReplicas:
    """Actors that have shards: see `asking.Replicas`."""

    def __init__(
        self, ray: Any, generation: str, shards: int, replicas: int, tokenizer: str | None
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from klsa_search.cluster.host import Host

        self._ray, self.shards, self.replicas = ray, shards, replicas
        kind = ray.remote(
            # Waiting costs a host nothing, and a machine may have more shards than processors.
            num_cpus=0,
            memory=_ASKED,
            max_restarts=-1,
            max_concurrency=_AT_ONCE,
        )(Host)
        mark = secrets.token_hex(4)
        self._actors = [
            [
                kind.options(
                    name=f"klsa-{mark}-{shard}-{replica}",
                    scheduling_strategy=NodeAffinitySchedulingStrategy(machine, soft=True),
                ).remote(generation, shard, shards, tokenizer)
                for replica, machine in enumerate(row)
            ]
            for shard, row in enumerate(places(shards, replicas, machines_of(ray.nodes())))
        ]
        ready = [actor.ready.remote() for row in self._actors for actor in row]
        try:
            networks = ray.get(ready, timeout=START)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            raise ClusterFailed(
                f"the shards of `{generation}` do not start ({_brief(cause)}); "
                "check that every machine of the cluster has that folder and this "
                "version of klsa-search"
            ) from error
        self.network = next(filter(None, networks), None)

    def processes(self) -> list[list[int]]:
        """Process numbers, by shard and replica."""
        return [
            self._ray.get([actor.process.remote() for actor in row], timeout=START)
            for row in self._actors
        ]

    def call(self, shard: int, replica: int, method: str, arguments: Sequence[Any]) -> Reference:
        """Begin a call."""
        return getattr(self._actors[shard][replica], method).remote(*arguments)

    def wait(self, under_way: Sequence[Reference], seconds: float) -> Sequence[Reference]:
        """Wait until one of them ends, so long at most."""
        done, _ = self._ray.wait(list(under_way), num_returns=1, timeout=seconds)
        return list(done)

    def result(self, reference: Reference) -> Any:
        """What a call that ended gave; CallFailed."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            raise CallFailed(_brief(getattr(error, "cause", None) or error)) from None


def _step_of(call: tuple[Any, ...]) -> str:
    """Return the name of the step that a call of `work.perform` does."""
    step = call[0] if call else None
    return getattr(step, "__name__", "unknown").strip("_")


def _brief(error: BaseException) -> str:
    """The sentence that says why, of what may come with a whole traceback."""
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    if any(line.startswith("  File ") for line in lines):
        return lines[-1].rpartition("errors.")[2][:500]
    return f"{type(error).__name__}: {lines[0][:200]}"
