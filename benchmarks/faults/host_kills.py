"""Kills of the processes that serve the partitions of a cluster, in each step of their work.

Searches with and without partial answers run during each kill, and writes during some. An answer
is whole and equal, to the bit, to that of the same state without a cluster, or it names the killed
partition. Acknowledged writes are found at once and kept. Needs Ray.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.faults.partition_kills import COUNT, NAME, build_index, text
from benchmarks.faults.tally import Tally
from klsa_search import Index, open_index
from klsa_search.cluster.calls import Call, Reference, count_partitions
from klsa_search.cluster.index import ClusterIndex
from klsa_search.collection.model import Document
from klsa_search.errors import KlsaError, PartitionMissing, StoreError
from klsa_search.search.partitioned_index import PartitionedIndex
from klsa_search.storage.partitions import partition_of

PARTITIONS: Final = 3
QUERIES_DURING: Final = ("begin", "collect", "fetch")
WRITES_DURING: Final = ("write", "publish", "prepare")
_QUERIES: Final = (("w0 w1", "klsa"), ("shared v1", "bm25"), ("v3 w4", "klsa"), ("shared", "klsa"))
_PATIENCE: Final = 90.0  # seconds for a host to come back
_AIM: Final = 10.0  # seconds for the step to occur
_DELAY: Final = 0.004  # most seconds from the start of a call to the kill

Answer = tuple[int, tuple[tuple[str, str, str], ...]]
"""Number of matches; ID, score to the bit and snippet of each hit."""


def can_run() -> bool:
    """Return whether Ray is installed."""
    return find_spec("ray") is not None


def _step(call: Call) -> str:
    """Return the step of a call to a host; the name of the method for calls of `use`."""
    return str(call[2] if call[0] == "use" else call[0])


class _Aimed:
    """Replicas of which one is killed when it is called for a step: see `calls.Replicas`."""

    def __init__(self, replicas: Any) -> None:
        self._replicas = replicas
        self.partitions, self.replicas = replicas.partitions, replicas.replicas
        self.wait, self.result = replicas.wait, replicas.result
        self._lock = threading.Lock()
        self._aim: tuple[int, int, str] | None = None
        self._kill: Callable[[], None] = lambda: None
        self.processes = replicas.processes

    def aim(self, partition: int, replica: int, step: str, kill: Callable[[], None]) -> None:
        """Call a function when this replica is called for this step."""
        with self._lock:
            self._aim, self._kill = (partition, replica, step), kill

    def call(self, partition: int, replica: int, call: Call) -> Reference:
        """Start a call."""
        reference = self._replicas.call(partition, replica, call)
        with self._lock:
            is_aim = self._aim == (partition, replica, _step(call))
            if is_aim:
                self._aim = None
        if is_aim:
            threading.Thread(target=self._kill).start()
        return reference


class _Cluster:
    """A cluster of local Ray processes that can be killed: see `index.Cluster`."""

    def __init__(self, replicas: int) -> None:
        from klsa_search.cluster.ray import RayCluster

        self._cluster = RayCluster("local", replicas)
        self.started: _Aimed | None = None

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> _Aimed:
        """Start the replicas of partitions."""
        self.started = _Aimed(self._cluster.replicas(generations, tokenizer))
        return self.started


class _Search(NamedTuple):
    """A search during a trial.

    floor  number of the last acknowledged state when it began
    """

    began: float
    ended: float
    query: int
    floor: int
    is_partial: bool
    answer: Answer | None
    failed: tuple[int, ...]
    error: str | None


@dataclass
class _World:
    """An index that a cluster serves, and the states that it had.

    states      answers to all queries of each state
    acked       number of the last acknowledged state
    documents   texts by ID after the last write
    """

    index: ClusterIndex
    here: Index
    replicas: _Aimed
    states: list[tuple[Answer, ...]] = field(default_factory=list)
    acked: int = 0
    documents: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    writes: int = 0
    errors: list[str] = field(default_factory=list)

    def note(self, *, is_acked: bool) -> None:
        """Remember the answers of the present state, read without the cluster."""
        self.here.refresh()
        answers = tuple(_answer(self.here, number) for number in range(len(_QUERIES)))
        self.states.append(answers)
        if is_acked:
            self.acked = len(self.states) - 1


def _answer(index: Index, number: int) -> Answer:
    query, ranker = _QUERIES[number]
    found = index.search(query, 20, ranker=ranker, spelling="off")
    return found.total, tuple((hit.id, hit.score.hex(), hit.snippet or "") for hit in found.hits)


def run(folder: Path, *, times: int = 5, replicas: Sequence[int] = (1, 2)) -> list[Tally]:
    """Kill a host so many times in each step of queries and writes, and at random moments."""
    from klsa_search.cluster import ray

    ray.connect("local", 2)
    tallies: list[Tally] = []
    try:
        for number in replicas:
            tallies += _with_replicas(folder / f"{number}", times, number)
    finally:
        ray.leave()
    return tallies


def _with_replicas(folder: Path, times: int, replicas: int) -> list[Tally]:
    build_index(folder, PARTITIONS)
    path, cluster = folder / NAME, _Cluster(replicas)
    tallies = []
    with closing(ClusterIndex.open(path, cluster)) as index, closing(open_index(path)) as here:
        assert cluster.started is not None
        texts = {f"d{each}": text(each, 0) for each in range(COUNT)}
        world = _World(index, here, cluster.started, documents=texts)
        world.note(is_acked=True)
        chance = random.Random(f"hosts {replicas}")
        for step in (*QUERIES_DURING, *WRITES_DURING, "any"):
            what = "one replica" if replicas > 1 else "the only process"
            tally = Tally(
                f"cluster, {replicas} per partition: host killed",
                f"SIGKILL of {what} in step `{step}`"
                if step != "any"
                else f"SIGKILL of {what} at a random moment of searches and writes",
            )
            seconds = [_trial(world, tally, step, number, chance) for number in range(times)]
            _measure(tally, [each for each in seconds if each is not None])
            tallies.append(tally)
    return tallies


def _measure(tally: Tally, seconds: Sequence[float]) -> None:
    if seconds:
        tally.notes["median s to a whole answer"] = round(statistics.median(seconds), 3)
        tally.notes["longest s to a whole answer"] = round(max(seconds), 3)


def _trial(
    world: _World, tally: Tally, step: str, number: int, chance: random.Random
) -> float | None:
    """Kill one host; return the seconds until the first whole answer that began afterwards."""
    where = f"{step} {number}"
    processes = _processes(world)
    partition = chance.randrange(PARTITIONS)
    # The first replica alone writes.
    replica = 0 if step in {"write", "publish"} else chance.randrange(world.replicas.replicas)
    stop, killed = threading.Event(), threading.Event()
    searches: list[_Search] = []
    moment: list[float] = []
    lock = threading.Lock()
    delay = chance.random() * _DELAY

    def kill() -> None:
        with lock:
            if moment:
                return
            time.sleep(delay)
            moment.append(time.monotonic())
            os.kill(processes[partition][replica], signal.SIGKILL)
        killed.set()

    world.refused = world.writes = 0
    threads = [
        threading.Thread(target=_search, args=(world, stop, searches, is_partial))
        for is_partial in (False, True)
    ]
    threads.append(threading.Thread(target=_refresh, args=(world, stop)))
    if step not in QUERIES_DURING:
        threads.append(threading.Thread(target=_write, args=(world, stop, random.Random(where))))
    for thread in threads:
        thread.start()
    time.sleep(0.3 * chance.random())
    if step == "any":
        kill()
    else:
        world.replicas.aim(partition, replica, step, kill)
        if not killed.wait(_AIM):
            tally.fail("the step did not occur", where)
            kill()
    recovered = _recovery(searches, moment[0])
    stop.set()
    for thread in threads:
        thread.join(_PATIENCE)
    faults = [*world.errors, *_faults(world, searches, partition)]
    if recovered is None:
        faults.append(f"no whole answer within {_PATIENCE:g} s")
    faults += _end(world)
    world.errors.clear()
    for name, value in (
        ("answers", len(searches)),
        ("errors that name the partition", sum(each.error is not None for each in searches)),
        ("partial answers", sum(bool(each.failed) and each.error is None for each in searches)),
        ("acknowledged writes", world.writes),
        ("refused writes, repeated", world.refused),
    ):
        tally.notes[name] = tally.notes.get(name, 0) + value
    del world.states[: world.acked]
    world.acked = 0
    if faults:
        tally.fail(faults[0].partition(":")[0][:40], f"{where}: {faults[0]}")
    else:
        tally.survive("whole or partial, then whole")
    return recovered


def _processes(world: _World) -> list[list[int]]:
    """Return the process IDs of all hosts, when they are back."""
    from ray.exceptions import RayError

    end = time.monotonic() + _PATIENCE
    while True:
        try:
            found: list[list[int]] = world.replicas.processes()
        except RayError:  # refused while a process restarts
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return found


def _recovery(searches: list[_Search], moment: float) -> float | None:
    """Wait for a whole answer of each thread that began after the kill; return the first."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        whole = [
            each
            for each in list(searches)
            if each.began > moment and each.error is None and not each.failed
        ]
        if {each.is_partial for each in whole} == {False, True}:
            return min(each.ended for each in whole) - moment
        time.sleep(0.005)
    return None


def _search(world: _World, stop: threading.Event, kept: list[_Search], is_partial: bool) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        query, floor, began = number % len(_QUERIES), world.acked, time.monotonic()
        answer, error = None, None
        with count_partitions(partial=is_partial) as tally:
            try:
                answer = _answer(world.index, query)
            except PartitionMissing as missing:
                error = str(missing)
            except Exception as other:  # noqa: BLE001 - whatever it is, it is a fault
                world.errors.append(f"a search failed: {type(other).__name__}: {other}")
                return
        ended, failed = time.monotonic(), tuple(tally.failed)
        kept.append(_Search(began, ended, query, floor, is_partial, answer, failed, error))
        if error is not None:
            time.sleep(0.01)


def _refresh(world: _World, stop: threading.Event) -> None:
    """Refresh the index in the background, as the service does."""
    while not stop.wait(0.1):
        with suppress(PartitionMissing, StoreError):
            world.index.refresh()


def _write(world: _World, stop: threading.Event, chance: random.Random) -> None:
    """Write batches until the end; repeat one that is refused."""
    while not stop.is_set():
        ids = chance.sample(range(COUNT + 20), 6)
        puts = {f"d{each}": text(each, chance.randrange(100)) for each in ids[1:]}
        documents = [Document(id=id_, text=text_) for id_, text_ in puts.items()]
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                world.index.write(documents, [f"d{ids[0]}"])
            except (PartitionMissing, StoreError) as refused:
                world.refused += 1
                world.note(is_acked=False)
                if time.monotonic() > end:
                    world.errors.append(f"writes are refused: {refused}")
                    return
                time.sleep(0.01)
            except Exception as other:  # noqa: BLE001 - whatever it is, it is a fault
                world.errors.append(f"a write failed: {type(other).__name__}: {other}")
                return
            else:
                break
        world.documents.pop(f"d{ids[0]}", None)
        world.documents |= puts
        world.writes += 1
        world.note(is_acked=True)


def _faults(world: _World, searches: Sequence[_Search], killed: int) -> list[str]:
    """Return what was wrong in the answers of a trial."""
    found = []
    for each in searches:
        if each.error is not None:
            if f"1 of {PARTITIONS} partitions do not answer (partition {killed}:" not in each.error:
                found.append(f"an error names others: {each.error}")
        elif each.failed:
            assert each.answer is not None
            if each.failed != (killed,) or not each.is_partial:
                found.append(f"a partial answer names others: {each.failed}, not {killed}")
            if any(partition_of(hit[0], PARTITIONS) == killed for hit in each.answer[1]):
                found.append("a partial answer has hits of the killed partition")
        elif each.answer not in [state[each.query] for state in world.states[each.floor :]]:
            states = [n for n, state in enumerate(world.states) if state[each.query] == each.answer]
            if states:
                found.append(
                    f"a whole answer is stale: state {states} after {each.floor} was acknowledged"
                )
            elif not world.refused:
                found.append(f"a whole answer is of no state: {_QUERIES[each.query]}")
    return found


def _end(world: _World) -> list[str]:
    """Return what is wrong when all hosts are back."""
    end = time.monotonic() + _PATIENCE
    _processes(world)
    while True:
        try:
            world.index.refresh()
            answers = tuple(_answer(world.index, number) for number in range(len(_QUERIES)))
            break
        except KlsaError as error:
            if time.monotonic() > end:
                return [f"not served at the end: {error}"]
            time.sleep(0.05)
    world.note(is_acked=True)
    found = []
    if answers != world.states[-1]:
        found.append("other answers at the end")
    assert isinstance(world.here, PartitionedIndex)
    kept = {each.id: each.text for each in world.here.live_documents()}
    if kept != world.documents:
        different = sorted(kept.items() ^ world.documents.items())[:3]
        found.append(f"other documents at the end: {different}")
    return found
