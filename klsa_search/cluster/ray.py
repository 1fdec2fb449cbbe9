"""Ray: processes of a cluster, as workers of a build and as replicas of shards.

This is the only module that uses Ray. A step whose process dies is retried, and Ray restarts an
actor that dies; the results of both depend on files only.
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
"""Address for processes of this machine, which end with this process."""

START: Final = 600.0
"""Seconds that shards have to open their files and compile the engine."""

MAX_RETRIES: Final = 5
"""Retries of a step whose process died; out of memory, it dies each time."""

_CONNECT_TIMEOUT: Final = 5.0  # seconds for a connection
_TASKS_PER_PROCESSOR: Final = 4  # calls submitted at a time
_MAX_CONCURRENCY: Final = 4  # concurrent calls of an actor
_ACTOR_MEMORY: Final = 2**20  # bytes; without a request Ray may use any machine
_STORE: Final = 256 * 2**20  # bytes of Ray's object store on this machine
_CLEANUP: Final = ExitStack()  # removes files of a local cluster after its end


def connect(address: str, processes: int | None = None) -> Any:
    """Connect to a cluster, or start a local one, unless this process is connected; return Ray.

    address    "local", "auto", or HOST:PORT of the head; "ray://HOST:PORT" from outside
    processes  number of processes of a local one; by default that of processors
    MissingExtra; ClusterFailed if there is no cluster at the address. Cost: seconds.
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
            "_temp_dir": _CLEANUP.enter_context(behind),  # Ray does not clean up its default folder
        }
        atexit.register(leave)  # runs before the handlers registered so far
        # By default Ray runs its workers at low priority.
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
    """Restore the signal handlers, as Ray installs one that aborts at SIGTERM."""
    handlers = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # others cannot set handlers
            for kind, handler in handlers.items():
                signal.signal(kind, handler)


def _refuse_silent(address: str) -> None:
    """Raise ClusterFailed if nothing listens at the address; Ray itself would retry for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise ClusterFailed(
            f"no cluster at `{address}` ({error}); check `ray status` there, or "
            "use processes of this machine with --cluster local"
        ) from error


def leave() -> None:
    """Disconnect from the cluster; a local one ends, and its logs are removed."""
    import ray

    ray.shutdown()
    _CLEANUP.close()


class _Task(NamedTuple):
    """A submitted call.

    number   number of the call
    retries  how often its process died
    """

    number: int
    call: tuple[Any, ...]
    retries: int


class RayWorkers:
    """Workers of a build: see `work.Workers`.

    Each call runs in its own process, and is retried up to `MAX_RETRIES` times if that dies;
    finished steps are not repeated.
    """

    def __init__(self, address: str, processes: int | None = None) -> None:
        self._ray = connect(address, processes)

    def each(
        self, function: Callable[..., None], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[int]:
        """Make all calls and yield their numbers as they end; an exception of a call is raised.

        ClusterFailed names the step if its process died too often.
        """
        ray = self._ray
        # Counted here, as Ray's own limit ignores processes that its memory monitor killed.
        remote = ray.remote(num_cpus=1, max_retries=0)(function)
        under_way: dict[Any, _Task] = {}
        most = _TASKS_PER_PROCESSOR * max(int(ray.cluster_resources().get("CPU", 1)), 1)
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


class RayShardCluster:
    """Starts actors that serve shards: see `index.ShardCluster`.

    shards    shards of each index
    replicas  replicas of each shard
    """

    def __init__(self, address: str, shards: int, replicas: int = 1) -> None:
        self._ray = connect(address)
        self._shards, self._replicas = shards, replicas

    def replicas(self, generation: Path, tokenizer: str | None) -> RayReplicas:
        """Start the replicas of a generation and wait until all are ready; they end with the
        object. ClusterFailed with the reason of the first failure.
        """
        return RayReplicas(
            self._ray, str(generation.absolute()), self._shards, self._replicas, tokenizer
        )


def shard_machines(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the IDs of the machines for shards, sorted: those that offer processors, if any.

    A machine without joined as head or client.
    """
    alive = [node for node in nodes if node["Alive"]]
    able = [node for node in alive if node["Resources"].get("CPU", 0) > 0]
    return sorted(node["NodeID"] for node in able or alive)


def places(shards: int, replicas: int, machines: Sequence[str]) -> list[list[str]]:
    """Return the machine of each replica of each shard, evenly distributed.

    Replicas of a shard are on different machines, if there are enough.
    """
    return [
        [machines[(shard + replica) % len(machines)] for replica in range(replicas)]
        for shard in range(shards)
    ]


class RayReplicas:
    """Actors that serve shards: see `calls.Replicas`."""

    def __init__(
        self, ray: Any, generation: str, shards: int, replicas: int, tokenizer: str | None
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from klsa_search.cluster.host import Host

        self._ray, self.shards, self.replicas = ray, shards, replicas
        kind = ray.remote(
            # A machine may have more shards than processors.
            num_cpus=0,
            memory=_ACTOR_MEMORY,
            max_restarts=-1,
            max_concurrency=_MAX_CONCURRENCY,
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
            for shard, row in enumerate(places(shards, replicas, shard_machines(ray.nodes())))
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
        """Return the process IDs, by shard and replica."""
        return [
            self._ray.get([actor.process.remote() for actor in row], timeout=START)
            for row in self._actors
        ]

    def call(self, shard: int, replica: int, method: str, arguments: Sequence[Any]) -> Reference:
        """Start a call."""
        return getattr(self._actors[shard][replica], method).remote(*arguments)

    def wait(self, running: Sequence[Reference], seconds: float) -> Sequence[Reference]:
        """Wait for a call to end, at most so many seconds; return those that ended."""
        done, _ = self._ray.wait(list(running), num_returns=1, timeout=seconds)
        return list(done)

    def result(self, reference: Reference) -> Any:
        """Return the result of a call that ended; CallFailed if it failed."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            raise CallFailed(_brief(getattr(error, "cause", None) or error)) from None


def _step_of(call: tuple[Any, ...]) -> str:
    """Return the name of the step that a call of `work.run_step` does."""
    step = call[0] if call else None
    return getattr(step, "__name__", "unknown").strip("_")


def _brief(error: BaseException) -> str:
    """Return the reason of an error in one line, without the traceback that Ray adds."""
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    if any(line.startswith("  File ") for line in lines):
        return lines[-1].rpartition("errors.")[2][:500]
    return f"{type(error).__name__}: {lines[0][:200]}"
