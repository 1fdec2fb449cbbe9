"""Metrics: counters and gauges of the service, in the format of Prometheus at /metrics.

What a request brings never becomes a label: routes are labelled as they are declared, methods and
rankers by the names there are. Cost: some 4 µs of a processor a search, 12 ms to write all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import Scope

from klsa_search.service.catalog import Status
from klsa_search.service.monitoring.gauges import Sources, gauges

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
