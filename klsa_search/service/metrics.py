"""Metrics of the service, in the format of Prometheus.

What a request brings never becomes a label: routes are labelled as they are declared, methods and
rankers by the names there are. Cost: some 4 µs of a processor a search, 12 ms to write all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from klsa_search.service.admission import Admission
from klsa_search.service.background import PeriodicTask
from klsa_search.service.catalog import Status
from klsa_search.service.middleware.limits import Rates
from klsa_search.service.refits import Refits

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"))
_OTHER = "other"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Of the histograms, in seconds."""


class _Children(dict[tuple[str, ...], Any]):
    """The children of a metric by their labels: to look one up here takes a third of the time."""

    def __init__(self, metric: Counter | Histogram) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels)
        return child


class _Collected:
    """A fixed collection of metrics, in the form that encoders need."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


class Metrics:
    """What one service counts; safe to share between threads.

    sources  sources of the gauges, which are read at each request
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

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request. See `timing.Tell`."""
        route = getattr(scope.get("route"), "path_format", _OTHER)
        known = scope["method"] if scope["method"] in _METHODS else _OTHER
        self._requests[route, known, str(status)].inc()
        self._seconds[route,].observe(seconds)

    def searched(
        self, ranker: str, asked: float, begun: float, found: float, written: float
    ) -> None:
        """Count a search by the times, of `perf_counter`, at which its phases began and ended."""
        self._phases[ranker, "queue"].observe(begun - asked)
        self._phases[ranker, "search"].observe(found - begun)
        self._phases[ranker, "serialisation"].observe(written - found)

    def exposition(self, statuses: Sequence[Status], accept: str) -> tuple[bytes, str]:
        """Return all metrics in an accepted format, and its content type."""
        encode, kind = choose_encoder(accept)
        counted = self._registry
        if self._sources.worker is not None:  # what all of them keep in files, together
            counted = CollectorRegistry()
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call]  # it has no types
        metrics = [*counted.collect(), *gauges(statuses, self._sources)]
        return encode(_Collected(metrics)), kind


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where it is looked up.

    pools        what runs requests, by name
    refits       automatic refits, if enabled
    worker       which of several processes this is: its number is a label of what is its own
    rates        how often each client may ask, if that is limited
    watches      that repeat work in the background
    """

    pools: Mapping[str, Admission]
    refits: Refits | None = None
    rates: Rates | None = None
    worker: int | None = None
    watches: Sequence[PeriodicTask] = ()


def gauges(statuses: Sequence[Status], sources: Sources) -> Iterator[Metric]:
    """Tell of these indexes, and of what all requests share."""
    yield from _of_indexes(statuses)
    if sources.refits is not None:
        yield _of_refits(sources.refits, {status.name for status in statuses})
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
    """What only this process knows."""
    yield from _of_pools(sources)
    if sources.rates is not None:
        limited = CounterMetricFamily("klsa_rate_refusals", "Requests refused by the rate limit")
        limited.add_metric((), sources.rates.refused)
        yield limited
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


def _of_refits(refits: Refits, seen: set[str]) -> Metric:
    ended = CounterMetricFamily(
        "klsa_refits", "Finished refits by outcome", labels=("index", "outcome")
    )
    for (name, outcome), count in refits.ended().items():
        if name in seen:
            ended.add_metric((name, outcome), count)
    return ended


def _of_pools(sources: Sources) -> Iterator[Metric]:
    running = GaugeMetricFamily("klsa_running", "Running requests", labels=("pool",))
    waiting = GaugeMetricFamily("klsa_waiting", "Waiting requests", labels=("pool",))
    refused = CounterMetricFamily(
        "klsa_refusals", "Requests refused or cancelled", labels=("pool", "reason")
    )
    for name, pool in sources.pools.items():
        at_work, in_line = pool.load()
        running.add_metric((name,), at_work)
        waiting.add_metric((name,), in_line)
        for reason, count in pool.refused().items():
            refused.add_metric((name, reason), count)
    yield from (running, waiting, refused)
