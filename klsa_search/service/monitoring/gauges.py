"""Gauges: values that are read at each request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from klsa_search.compiling import missing
from klsa_search.service.admission import Admission
from klsa_search.service.catalog import Status
from klsa_search.service.middleware.rates import Rates
from klsa_search.service.refitting import Refits
from klsa_search.service.watching import Watch


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
    watches: Sequence[Watch] = ()


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
    compiling.add_metric((), len(missing()[0]))
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
