"""Metrics of the service in the Prometheus format.

No content of a request becomes a label: labels are declared routes, known methods and rankers, and
indexes that the request for metrics may see.

If a service has several processes, they share their metrics in files of the folder that the
variable PROMETHEUS_MULTIPROC_DIR names before this module is imported, and each process answers for
all of them.
Cost: about 4 µs of processor time for each search, 12 ms for each exposition.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.types import Scope

from klsa_search.errors import StoreError
from klsa_search.search.index import Index
from klsa_search.service.admission import Admission
from klsa_search.service.background import PeriodicTask, Replication
from klsa_search.service.resources import Resources
from klsa_search.service.served_index import Status

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_OTHER = "other"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bucket bounds of the histograms, in seconds."""

_FOLDER: Final = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
"""Folder of the metrics of all processes of the service; None if this is the only one."""

_INTERVAL: Final = 1.0
"""Seconds after which the other processes see a change of a counter or gauge of this one."""

_FAILING: Final = "klsa_index_writes_failing"

_DISK_FULL: Final = 2.0
"""Value of a write that failed for lack of room, for other processes; an exposition has 1."""

_MODES: Final[Mapping[str, Literal["livemax", "livemin"]]] = {
    "process_open_fds": "livemax",
    "process_max_fds": "livemin",
    "process_start_time_seconds": "livemin",
}
"""How a gauge combines the values of processes; others are sums."""


class _Children(dict[tuple[str, ...], Any]):
    """Cache of the children of a metric by labels; a lookup takes a third of that of `labels`."""

    def __init__(self, metric: Counter | Histogram) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels)
        return child


class _SharedMetrics:
    """Copies metrics of this process to the files that all processes of a service share."""

    def __init__(self) -> None:
        self._metrics: dict[str, Counter | Gauge] = {}
        self._counts: defaultdict[tuple[str, ...], float] = defaultdict(float)

    def update(self, families: Iterable[Metric]) -> None:
        """Set counters and gauges to the values of some families."""
        for family in families:
            for sample in family.samples:
                labels = tuple(sample.labels.values())
                metric = self._metric(family, tuple(sample.labels))
                child = metric.labels(*labels) if labels else metric
                if isinstance(child, Gauge):
                    child.set(sample.value)
                else:
                    before = self._counts[family.name, *labels]
                    self._counts[family.name, *labels] = sample.value
                    child.inc(sample.value - before)

    def _metric(self, family: Metric, labels: tuple[str, ...]) -> Counter | Gauge:
        name = family.name
        if name not in self._metrics:
            self._metrics[name] = (
                Counter(name, family.documentation, labels, registry=None)
                if family.type == "counter"
                else Gauge(
                    name,
                    family.documentation,
                    labels,
                    registry=None,
                    multiprocess_mode=_MODES.get(name, "livesum"),
                )
            )
        return self._metrics[name]


class Metrics:
    """The metrics of one service; safe to share between threads.

    resources  sources of the gauges, which are read at each exposition
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._registry = CollectorRegistry()
        self._process = ProcessCollector(registry=None)
        requests = Counter(
            "klsa_requests",
            "Answered requests",
            ("route", "method", "status"),
            registry=self._registry,
        )
        seconds = Histogram(
            "klsa_request_seconds",
            "Time from the head of a request to the last byte of its response",
            ("route",),
            registry=self._registry,
            buckets=_BOUNDS,
        )
        phases = Histogram(
            "klsa_search_seconds",
            "Time of the phases of answered searches: waiting for a thread, "
            "searching, writing JSON",
            ("ranker", "phase"),
            registry=self._registry,
            buckets=_BOUNDS,
        )
        self._failing = Gauge(
            _FAILING,
            "1 if the last write failed, else 0; index is blank for creating and deleting indexes",
            ("index",),
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._requests, self._seconds = _Children(requests), _Children(seconds)
        self._phases = _Children(phases)
        self._update_lock = threading.Lock()
        if _FOLDER is not None:
            self._shared = _SharedMetrics()
            PeriodicTask("metrics", self._share, _INTERVAL).start()

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answered request: see `RequestObserver`."""
        route = getattr(scope.get("route"), "path_format", _OTHER)
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        self._requests[route, method, str(status)].inc()
        self._seconds[route,].observe(seconds)

    def observe_search(
        self, ranker: str, received: float, started: float, searched: float, written: float
    ) -> None:
        """Count a search; the times are those between its phases, in seconds of `perf_counter`."""
        self._phases[ranker, "queue"].observe(started - received)
        self._phases[ranker, "search"].observe(searched - started)
        self._phases[ranker, "serialisation"].observe(written - searched)

    def observe_write(self, index: str, *, failed: bool, disk_full: bool = False) -> None:
        """Note whether a write to an index failed; blank for creating and deleting indexes.

        disk_full  whether it failed for lack of room
        """
        self._failing.labels(index).set(_DISK_FULL if disk_full else failed)

    def failing_writes(self) -> dict[str, bool]:
        """Return the indexes whose last write failed, in any process, and if for lack of room."""
        return {
            sample.labels["index"]: sample.value == _DISK_FULL
            for metric in self._counted("gauge_mostrecent_*.db")
            for sample in metric.samples
            if metric.name == _FAILING and sample.value
        }

    def exposition(self, statuses: Sequence[Status], accept: str) -> tuple[bytes, str]:
        """Return all metrics in an accepted format, and its content type.

        statuses  of the indexes that the answer may name
        """
        encode, kind = choose_encoder(accept)
        metrics = list(gauges(statuses, self._resources))
        if _FOLDER is None:
            metrics += self._of_process()
        else:
            self._share()
            _forget_dead_processes(Path(_FOLDER))
        visible = {"", *(status.name for status in statuses)}
        for metric in self._counted("*.db"):
            if metric.name == _FAILING:
                metric.samples = [
                    sample._replace(value=min(sample.value, 1.0))
                    for sample in metric.samples
                    if sample.labels["index"] in visible
                ]
            metrics.append(metric)
        return encode(SimpleNamespace(collect=lambda: metrics)), kind

    def _counted(self, files: str) -> Iterable[Metric]:
        """Return the metrics of the registry; those of all processes if there are several."""
        if _FOLDER is None:
            return self._registry.collect()
        # The package has no types.
        return MultiProcessCollector.merge(map(str, Path(_FOLDER).glob(files)))  # type: ignore[no-any-return,no-untyped-call]

    def _of_process(self) -> Iterator[Metric]:
        yield from self._process.collect()
        yield from _of_process(self._resources)

    def _share(self) -> None:
        with self._update_lock:
            self._shared.update(self._of_process())


def _forget_dead_processes(folder: Path) -> None:
    """Remove the gauges of processes that ended."""
    for pid in {int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*.db")}:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            with suppress(FileNotFoundError):  # another process removed them
                mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def gauges(statuses: Sequence[Status], resources: Resources) -> Iterator[Metric]:
    """Yield the gauges of indexes, refits and backups, which all processes see alike."""
    up = {(status.name,): status.failure is None for status in statuses}
    help_ = "1 if the newest generation is served and not damaged, else 0"
    yield _gauge("klsa_index_up", help_, up, labels=("index",))
    served = {(status.name,): status.index for status in statuses if status.index is not None}
    for figure, (help_, value_of) in _FIGURES.items():
        values = {name: value_of(index) for name, index in served.items()}
        yield _gauge(f"klsa_index_{figure}", help_, values, labels=("index",))
    if resources.jobs is not None:
        with suppress(StoreError):  # which /health reports
            seen, counts = {status.name for status in statuses}, resources.jobs.history().ended
            ended = {labels: counts[labels] for labels in sorted(counts) if labels[0] in seen}
            help_ = "Finished refits by outcome"
            yield _counter("klsa_refits", help_, ended, labels=("index", "outcome"))
    for replication in resources.replications:
        yield from _of_replication(replication)


def _of_process(resources: Resources) -> Iterator[Metric]:
    """Yield the metrics of this process."""
    yield from _of_pools(resources.pools)
    if resources.rates is not None:
        refused = "Requests refused by the rate limit"
        yield _counter("klsa_rate_refusals", refused, resources.rates.refused)
    if resources.recorder is not None:
        recorder = resources.recorder
        lost = "Searches and events that analytics lost, as the queue was full"
        yield _counter("klsa_analytics_lost", lost, recorder.lost)
        queued = "Searches and events that analytics have not stored yet"
        yield _gauge("klsa_analytics_queued", queued, recorder.waiting)
    failures = {(watch.name,): watch.failures for watch in resources.watches}
    failed = "Failures of background work that were retried"
    yield _counter("klsa_background_failures", failed, failures, labels=("work",))


_FIGURES: Final[Mapping[str, tuple[str, Callable[[Index], float]]]] = {
    "documents": ("Live documents", len),
    "built_timestamp_seconds": (
        "Time at which the served generation was built",
        lambda index: datetime.fromisoformat(index.manifest.build.created).timestamp(),
    ),
    "log_position": (
        "Position in the log of writes up to which it is searchable",
        lambda index: index.last_write.seq,
    ),
    "changed_share": (
        "Drift: share of the documents added, replaced or deleted after the build",
        lambda index: index.drift.changed_share(len(index)),
    ),
}
"""Gauges of a served index."""


def _of_replication(replication: Replication) -> Iterator[Metric]:
    state = None
    with suppress(StoreError):  # which /health reports
        state = replication.state()
    if replication.work == "backup":
        # Also before the first backup, or no alert would fire if there never is one.
        number, time = (0, 0.0) if state is None else (state.number or 0, state.timestamp())
        yield _gauge("klsa_backup_number", "Number of the last backup; 0 for none", number)
        timestamp = "klsa_backup_timestamp_seconds"
        yield _gauge(timestamp, "Time of the content of the last backup; 0 for none", time)
        return
    if state is None or state.number is None:
        return
    yield _gauge("klsa_follower_number", "Number of the backup that is served", state.number)
    newest = state.newest or state.number
    yield _gauge("klsa_follower_source_number", "Number of the newest backup followed", newest)
    lag = "Seconds since the served content was current at its source"
    yield _gauge("klsa_follower_lag_seconds", lag, state.seconds or 0.0)


def _of_pools(pools: Mapping[str, Admission]) -> Iterator[Metric]:
    loads = {name: pool.load() for name, pool in pools.items()}
    running = {(name,): load[0] for name, load in loads.items()}
    waiting = {(name,): load[1] for name, load in loads.items()}
    yield _gauge("klsa_running", "Running requests", running, labels=("pool",))
    yield _gauge("klsa_waiting", "Waiting requests", waiting, labels=("pool",))
    refused = {
        (name, reason): count
        for name, pool in pools.items()
        for reason, count in pool.refused().items()
    }
    help_ = "Requests refused or cancelled"
    yield _counter("klsa_refusals", help_, refused, labels=("pool", "reason"))


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    help_: str,
    values: float | Mapping[Any, float],
    *,
    labels: Sequence[str] = (),
) -> Metric:
    """Return a metric with a value, or with one for each combination of labels."""
    family = kind(name, help_, labels=labels)
    for of_labels, value in (values if isinstance(values, Mapping) else {(): values}).items():
        family.add_metric(of_labels, value)
    return family


_gauge = partial(_family, GaugeMetricFamily)
_counter = partial(_family, CounterMetricFamily)
