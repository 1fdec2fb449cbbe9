"""The bridge from commands to builds by workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from klsa_search.collection import OpenedCollection
    from klsa_search.search.index import Index


def by_workers(
    source: object,
    reading: Mapping[str, Any],
    address: str,
    shards: int | None,
    workers: int | None,
    memory: str | None,
) -> tuple[OpenedCollection, Callable[..., Index]]:
    """Open a source for workers, and give what builds an index of it, as `cluster.build` does.

    memory  that one of them may use; those of this machine share what one build may use
    """
    from klsa_search.cluster.ray import LOCAL, RayWorkers
    from klsa_search.indexing.budget import memory_budget
    from klsa_search.processors import processors

    budget: str | int | None = memory
    if address == LOCAL:
        workers = workers or processors()
        shards = shards or workers
        budget = memory or memory_budget(None) // workers
    elif workers:
        raise click.UsageError(
            "--workers needs --cluster local: another cluster has its own workers"
        )
    elif not shards:
        raise click.UsageError("--cluster ADDRESS needs --shards N; one for each worker is best")
    from klsa_search.cluster.build import build
    from klsa_search.cluster.source import Source

    given = Source(source, reading)
    build_it = partial(
        build, given, workers=RayWorkers(address, workers), shards=shards, memory=budget
    )
    return given.collection, build_it
