"""klsa-index plan, and builds by worker processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.describe import unread_text
from klsa_search.cli.main import debug_option
from klsa_search.cli.options import (
    chosen_settings,
    config_option,
    json_option,
    memory_option,
    preset_option,
    settings_options,
    source_options,
)
from klsa_search.cli.output import Column, echo, in_bytes, write_facts, write_json, write_table
from klsa_search.core.progress import format_duration

if TYPE_CHECKING:
    from klsa_search.collection.opened_collection import OpenedCollection
    from klsa_search.indexing.plan import Plan
    from klsa_search.search.index import Index


def by_workers(
    source: object,
    reading: Mapping[str, Any],
    address: str,
    shards: int | None,
    workers: int | None,
    memory: str | None,
) -> tuple[OpenedCollection, Callable[..., Index]]:
    """Return the collection of a source, and a function that builds its index by workers.

    memory  limit of one worker; by default local workers share the limit of a build
    """
    from klsa_search.cluster.ray import LOCAL, RayWorkers
    from klsa_search.core.parallel import processors
    from klsa_search.indexing.checks import memory_budget

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
    from klsa_search.cluster.source import SharedSource

    given = SharedSource(source, reading)
    build_it = partial(
        build, given, workers=RayWorkers(address, workers), shards=shards, memory=budget
    )
    return given.collection, build_it


@click.command("plan")
@click.argument("source", required=False)
@click.option(
    "--documents", type=click.IntRange(1), help="Plan for this many documents, without SOURCE"
)
@click.option(
    "--words", type=click.IntRange(1), help="Assume this many words in a document, on average"
)
@memory_option
@config_option
@preset_option
@source_options
@click.option(
    "--shards",
    type=click.IntRange(1),
    help="Also estimate the memory of a worker of a build with --cluster and this many shards",
)
@settings_options()
@json_option
@debug_option
def plan(
    source: Any,
    documents: int | None,
    words: int | None,
    memory: str | None,
    shards: int | None,
    config: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the memory, time and disk that a build takes, and the service of its index.

    Reads the first documents of SOURCE and times every phase on them; other arguments are those of
    klsa-index build. Without SOURCE, give --documents and --words: sizes are then those of English
    news, and phases are timed on other texts. Builds nothing.
    """
    settings = chosen_settings(config, options)
    from klsa_search.indexing.plan import plan as planned
    from klsa_search.indexing.plan import plan_of_size

    if source is not None and (documents or words):
        raise click.UsageError("--documents and --words replace SOURCE; give one or the other")
    if source is not None:
        found = planned(source, memory=memory, **reading, **settings)
    elif documents and words:
        found = plan_of_size(documents, words, memory=memory, **reading, **settings)
    else:
        raise click.UsageError("give SOURCE, or --documents and --words")
    worker: Mapping[str, int] = {}
    if shards is not None:
        from klsa_search.cluster.build import worker_memory
        from klsa_search.core.config import Settings

        preset = settings.pop("preset", "default")
        worker = worker_memory(found.shape, Settings.of_preset(preset, **settings), shards)
    if as_json:
        write_json(found.as_json() | ({"worker": worker} if worker else {}))
    else:
        _write(found, worker)


def _write(found: Plan, worker: Mapping[str, int]) -> None:
    shape = found.shape
    about = "" if shape.documents == found.sampled else "about "
    write_facts(
        [
            ("source", found.source),
            (
                "documents",
                f"{about}{shape.documents:,}, {found.sampled:,} of them read"
                if found.sampled
                else f"{shape.documents:,}",
            ),
            *([("passages", f"about {found.passages.documents:,}")] if found.passages else []),
            ("terms", f"{about}{shape.terms:,}"),
            ("non-zeros", f"{about}{shape.non_zeros:,}"),
            ("pairs", f"{about}{shape.pair_non_zeros:,}"),
            ("processors", str(found.processes)),
            *([("not read", unread_text(found.unread))] if found.unread.count else []),
        ]
    )
    echo()
    names = ["time", "memory", *(["per worker"] if worker else [])]
    columns = [Column("phase"), *(Column(name, right=True) for name in names)]
    times = {phase.phase: phase.seconds for phase in found.phases}
    phases = list(dict.fromkeys([*found.memory, *times]))
    write_table(
        columns,
        [
            (
                phase,
                format_duration(times[phase]) if phase in times else "",
                in_bytes(found.memory[phase]) if phase in found.memory else "",
                *([in_bytes(worker[phase]) if phase in worker else ""] if worker else []),
            )
            for phase in phases
        ]
        + [
            (
                "total",
                format_duration(found.seconds),
                in_bytes(found.peak_memory),
                *([in_bytes(max(worker.values()))] if worker else []),
            )
        ],
    )
    echo()
    write_table(
        [Column("kept"), Column("disk", right=True)],
        [(name, in_bytes(size)) for name, size in found.disk.items() if size]
        + [("total", in_bytes(found.size))],
    )
    echo()
    write_facts(
        [
            ("memory of the service", f"{in_bytes(found.serving_memory)} for one process"),
            ("searches per second", f"about {found.searches_per_second:,}"),
        ]
    )
    if not found.fits:
        echo()
        echo(
            f"warning: the memory limit of {in_bytes(found.budget)} is too small for a build; "
            "raise --memory"
        )
