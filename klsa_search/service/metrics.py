"""Metrics of the service in the Prometheus format.

No content of a request becomes a label: labels are declared routes, and known methods and rankers.
Cost: about 4 µs of processor time for each search, 12 ms for each exposition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import Scope

from klsa_search.core.compiling import missing_functions
from klsa_search.errors import StoreError
from klsa_search.service.admission import Admission
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.background import PeriodicTask
from klsa_search.service.catalog import Status
from klsa_search.service.jobs import Jobs
from klsa_search.service.middleware.limits import Rates
from klsa_search.service.replication import Replication

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_OTHER = "other"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bucket bounds of the histograms, in seconds."""


class _Children(dict[tuple[str, ...], Any]):
    """Cache of the children of a metric by labels; a lookup takes a third of that of `labels`."""

    def __init__(self, metric: Counter | Histogram) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels)
        return child


class _Collected:
    """A fixed collection of metrics with the interface that encoders need."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


class Metrics:
    """The metrics of one service; safe to share between threads.

    sources  sources of the gauges, which are read at each exposition
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
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
        self._requests, self._seconds = _Children(requests), _Children(seconds)
        self._phases = _Children(phases)

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answered request: see `RequestObserver`."""
        route = getattr(scope.get("route"), "path_format", _OTHER)
        known = scope["method"] if scope["method"] in _METHODS else _OTHER
        self._requests[route, known, str(status)].inc()
        self._seconds[route,].observe(seconds)

    def observe_search(
        self, ranker: str, received: float, started: float, searched: float, written: float
    ) -> None:
        """Count a search; the times are those between its phases, in seconds of `perf_counter`."""
        self._phases[ranker, "queue"].observe(started - received)
        self._phases[ranker, "search"].observe(searched - started)
        self._phases[ranker, "serialisation"].observe(written - searched)

    def exposition(self, statuses: Sequence[Status], accept: str) -> tuple[bytes, str]:
        """Return all metrics in an accepted format, and its content type."""
        encode, kind = choose_encoder(accept)
        counted = self._registry
        if self._sources.worker is not None:  # the sums over all processes, from their files
            counted = CollectorRegistry()
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call]  # it has no types
        metrics = [*counted.collect(), *gauges(statuses, self._sources)]
        return encode(_Collected(metrics)), kind


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Sources of the gauges.

    pools    admission of requests, by name
    jobs     refits, if the service runs any
    rates    rate limit of each client, if any
    recorder  of analytics, if they are on
    worker   number of this process among several, a label of its own metrics
    watches  periodic tasks
    replications  backups and following
    """

    pools: Mapping[str, Admission]
    jobs: Jobs | None = None
    rates: Rates | None = None
    recorder: Recorder | None = None
    worker: int | None = None
    watches: Sequence[PeriodicTask] = ()
    replications: Sequence[Replication] = ()


def gauges(statuses: Sequence[Status], sources: Sources) -> Iterator[Metric]:
    """Yield the gauges of indexes, refits and this process."""
    yield from _of_indexes(statuses)
    if sources.jobs is not None:
        with suppress(StoreError):  # which /health reports
            yield _of_refits(sources.jobs, {status.name for status in statuses})
    for replication in sources.replications:
        yield from _of_replication(replication)
    own = _of_process(sources)
    if sources.worker is None:
        yield from own
        return
    for metric in own:
        for place, sample in enumerate(metric.samples):
            labels = sample.labels | {"worker": str(sources.worker)}
            metric.samples[place] = sample._replace(labels=labels)
        yield metric


def _of_process(sources: Sources) -> Iterator[Metric]:
    """Yield the metrics of this process."""
    yield from _of_pools(sources)
    if sources.rates is not None:
        limited = CounterMetricFamily("klsa_rate_refusals", "Requests refused by the rate limit")
        limited.add_metric((), sources.rates.refused)
        yield limited
    if sources.recorder is not None:
        lost = CounterMetricFamily(
            "klsa_analytics_lost", "Searches and events that analytics lost, as the queue was full"
        )
        lost.add_metric((), sources.recorder.lost)
        queued = GaugeMetricFamily(
            "klsa_analytics_queued", "Searches and events that analytics have not stored yet"
        )
        queued.add_metric((), sources.recorder.waiting)
        yield from (lost, queued)
    compiling = GaugeMetricFamily(
        "klsa_compiling_parts", "Parts of the query engine that are being compiled"
    )
    compiling.add_metric((), len(missing_functions()[0]))
    yield compiling
    failed = CounterMetricFamily(
        "klsa_background_failures",
        "Failures of background work that were retried",
        labels=("work",),
    )
    for watch in sources.watches:
        failed.add_metric((watch.name,), watch.failures)
    yield failed


def _of_indexes(statuses: Sequence[Status]) -> Iterator[Metric]:
    up, documents, built, position, changed = (
        GaugeMetricFamily(f"klsa_index_{name}", help_, labels=("index",))
        for name, help_ in (
            ("up", "1 if the newest generation is served and not damaged, else 0"),
            ("documents", "Live documents"),
            ("built_timestamp_seconds", "Time at which the served generation was built"),
            ("log_position", "Position in the log of writes up to which it is searchable"),
            (
                "changed_share",
                "Drift: share of the documents added, replaced or deleted after the build",
            ),
        )
    )
    for status in statuses:
        up.add_metric((status.name,), status.failure is None)
        if status.index is None:
            continue
        index = status.index
        created = datetime.fromisoformat(index.manifest.build.created)
        documents.add_metric((status.name,), len(index))
        built.add_metric((status.name,), created.timestamp())
        position.add_metric((status.name,), index.last_write.seq)
        changed.add_metric((status.name,), index.drift.changed_share(len(index)))
    yield from (up, documents, built, position, changed)


def _of_refits(jobs: Jobs, seen: set[str]) -> Metric:
    ended = CounterMetricFamily(
        "klsa_refits", "Finished refits by outcome", labels=("index", "outcome")
    )
    for (name, outcome), count in jobs.ended().items():
        if name in seen:
            ended.add_metric((name, outcome), count)
    return ended


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
    yield _gauge("klsa_follower_lag_seconds", lag, state.age() or 0.0)


def _gauge(name: str, help_: str, value: float) -> Metric:
    metric = GaugeMetricFamily(name, help_)
    metric.add_metric((), value)
    return metric


def _of_pools(sources: Sources) -> Iterator[Metric]:
    running = GaugeMetricFamily("klsa_running", "Running requests", labels=("pool",))
    waiting = GaugeMetricFamily("klsa_waiting", "Waiting requests", labels=("pool",))
    refused = CounterMetricFamily(
        "klsa_refusals", "Requests refused or cancelled", labels=("pool", "reason")
    )
    for name, pool in sources.pools.items():
        running_now, waiting_now = pool.load()
        running.add_metric((name,), running_now)
        waiting.add_metric((name,), waiting_now)
        for reason, count in pool.refused().items():
            refused.add_metric((name, reason), count)
    yield from (running, waiting, refused)
