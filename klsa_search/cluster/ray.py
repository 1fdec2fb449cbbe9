"""Ray: processes of a cluster, which serve partitions and build them.

This is the only module that uses Ray.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import signal
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from klsa_search.cluster.calls import Call, CallFailed, Reference
from klsa_search.core.installation import require
from klsa_search.errors import ClusterFailed

if TYPE_CHECKING:
    from klsa_search.cluster.host import FollowedBuild

LOCAL: Final = "local"
"""Address for processes of this machine, which end with this process."""

START: Final = 600.0
"""Seconds that partitions have to open their files."""

MAX_RETRIES: Final = 3
"""Times that a task runs again if its process dies."""

_MAX_CONCURRENCY: Final = 4  # concurrent calls of an actor
_ACTOR_MEMORY: Final = 2**20  # bytes; without a request Ray may use any machine
_CONNECT_TIMEOUT: Final = 5.0  # seconds for a connection
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
    try:
        head = urlsplit(f"//{address.rpartition('//')[2]}")
        if head.hostname and head.port:
            socket.create_connection((head.hostname, head.port), _CONNECT_TIMEOUT).close()
    except (OSError, ValueError) as error:
        raise ClusterFailed(
            f"no cluster at `{address}` ({error}); check `ray status` there, or "
            "use processes of this machine with --cluster local"
        ) from error


def leave() -> None:
    """Disconnect from the cluster; a local one ends, and its logs are removed."""
    import ray

    ray.shutdown()
    _CLEANUP.close()


def machines_of(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the IDs of the machines for partitions, sorted: those that offer processors, if any.

    A machine without joined as head or client.
    """
    alive = [node for node in nodes if node["Alive"]]
    able = [node for node in alive if node["Resources"].get("CPU", 0) > 0]
    return sorted(node["NodeID"] for node in able or alive)


def placements(partitions: int, replicas: int, machines: Sequence[str]) -> list[list[str]]:
    """Return the machine of each replica of each partition, evenly distributed.

    Replicas of a partition are on different machines, if there are enough.
    """
    return [
        [machines[(partition + replica) % len(machines)] for replica in range(replicas)]
        for partition in range(partitions)
    ]


class RayCluster:
    """Starts actors that serve partitions: see `cluster.remote.Cluster`.

    replicas      replicas of each partition
    follow        repository of backups from which a machine restores the partitions that it does
                  not have
    follow_every  seconds between two looks for later writes in it
    """

    def __init__(
        self, address: str, replicas: int = 1, follow: str | None = None, follow_every: float = 5
    ) -> None:
        self._ray, self._replicas = connect(address), replicas
        self._follow, self._follow_every = follow, follow_every

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> RayReplicas:
        """Start the replicas of partitions and wait until all are ready; they end with the object.

        ClusterFailed with the reason of the first failure.
        """
        followed = None
        if self._follow is not None:
            from klsa_search.cluster.host import followed_builds

            followed = followed_builds(generations, self._follow, self._follow_every)
        return RayReplicas(self._ray, generations, self._replicas, tokenizer, followed)


class RayReplicas:
    """Actors that serve partitions: see `calls.Replicas`. Ray restarts an actor that dies."""

    def __init__(
        self,
        ray: Any,
        generations: Sequence[Path],
        replicas: int,
        tokenizer: str | None,
        followed: Sequence[FollowedBuild] | None = None,
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from klsa_search.cluster.host import PartitionHost

        self._ray, self.partitions, self.replicas = ray, len(generations), replicas
        # The size of a partition decides how long a copy takes.
        self._start = START if followed is None else None
        sources: Sequence[FollowedBuild | None] = followed or [None for _ in generations]
        kind = ray.remote(
            # A machine may have more partitions than processors.
            num_cpus=0,
            memory=_ACTOR_MEMORY,
            max_restarts=-1,
            max_concurrency=_MAX_CONCURRENCY,
        )(PartitionHost)
        rows = placements(self.partitions, replicas, machines_of(ray.nodes()))
        self._actors = [
            [
                kind.options(
                    scheduling_strategy=NodeAffinitySchedulingStrategy(machine, soft=True)
                ).remote(str(generation.absolute()), tokenizer, source)
                for machine in row
            ]
            for generation, source, row in zip(generations, sources, rows, strict=True)
        ]
        try:
            self.processes()
        except ray.exceptions.RayError as error:
            raise ClusterFailed(
                f"the partitions in `{generations[0].parent.parent}` do not start "
                f"({_brief(error)}); check that every machine of the cluster has that folder, or "
                "can read the repository of --follow, and has this version of klsa-search"
            ) from error

    def processes(self) -> list[list[int]]:
        """Return the process IDs, by partition and replica, when all are ready."""
        ready = [[actor.ready.remote() for actor in row] for row in self._actors]
        return [self._ray.get(row, timeout=self._start) for row in ready]

    def call(self, partition: int, replica: int, call: Call) -> Reference:
        """Start a call."""
        packed = pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
        return self._actors[partition][replica].packed_answer.remote(packed)

    def wait(self, running: Sequence[Reference], seconds: float) -> Sequence[Reference]:
        """Wait for all calls, at most so many seconds; return those that ended."""
        done, _ = self._ray.wait(list(running), num_returns=len(running), timeout=seconds)
        return list(done)

    def result(self, reference: Reference) -> Any:
        """Return the result of a call that ended; CallFailed if it failed."""
        try:
            return pickle.loads(self._ray.get(reference))  # noqa: S301 - of the cluster
        except self._ray.exceptions.RayError as error:
            raise CallFailed(_brief(error)) from None


def run_tasks(address: str, function: Callable[[Any], None], tasks: Sequence[Any]) -> Iterator[int]:
    """Call a function with each task in a process of a cluster; yield their numbers as they end.

    A task whose process dies runs again, up to `MAX_RETRIES` times; ClusterFailed then. An
    exception of a task is raised, and the others are ended.
    """
    ray = connect(address)
    # Counted here, as Ray's own limit ignores processes that its memory monitor killed.
    remote = ray.remote(num_cpus=1, max_retries=0)(function)
    died: Counter[int] = Counter()
    running = {remote.remote(task): number for number, task in enumerate(tasks)}
    try:
        while running:
            (done,), _ = ray.wait(list(running), num_returns=1)
            number = running.pop(done)
            try:
                ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.RayError as error:
                died[number] += 1
                if died[number] <= MAX_RETRIES:
                    running[remote.remote(tasks[number])] = number
                    continue
                raise ClusterFailed(
                    f"a process that built partition {number} ended early {died[number]} times "
                    f"({_brief(error)}); use more partitions, or machines with more memory, and "
                    "build again"
                ) from error
            yield number
    finally:
        for reference in running:  # of a failed build
            ray.cancel(reference, force=True)


def _brief(error: BaseException) -> str:
    """Return the reason of an error of Ray in one line, without the traceback that Ray adds."""
    error = getattr(error, "cause", None) or error
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    if any(line.startswith("  File ") for line in lines):
        return lines[-1].rpartition("errors.")[2][:500]
    return f"{type(error).__name__}: {lines[0][:200]}"
