"""The systems of the MAP table, and how each is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from klsa_search.collection.model import Collection, Query
from klsa_search.config import RankerName
from klsa_search.evaluation.measures import Judge, Measured
from klsa_search.evaluation.rankings import rank_all
from klsa_search.evaluation.runs import recorded
from klsa_search.search import Index


@dataclass(frozen=True, kw_only=True)
class System:
    """One row of the table: the preset of its index, and the ranker that searches it.

    Everything else is the index's own setting.
    """

    name: str
    preset: str
    ranker: RankerName


SYSTEMS = (
    System(name="bm25", preset="default", ranker="bm25"),
    System(name="lsi", preset="default", ranker="lsi"),
    System(name="paper", preset="paper", ranker="klsa"),
    System(name="klsa", preset="default", ranker="klsa"),
)
"""In the order of the table; the first is what the others are compared with."""


def judge_systems(
    collection: Collection,
    index_of: Callable[[str], Index],
    *,
    run_dir: Path | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> dict[str, Measured]:
    """Measure every system on the judged queries of a collection.

    `index_of` gives the index of a preset over the collection's documents. With `run_dir`, an
    existing folder, each run is also written there as `<collection>.<system>.run`. `progress` is
    told ("<collection> systems", done, total).
    CollectionError if the collection has no judgements, OSError.
    """
    judge = Judge(collection.judgements())
    queries = judged_queries(collection, judge)
    measured = {}
    for number, system in enumerate(SYSTEMS):
        if progress is not None:
            progress(f"{collection.name} systems", number, len(SYSTEMS))
        run = rank_all(index_of(system.preset), queries, ranker=system.ranker)
        if run_dir is not None:
            path = run_dir / f"{collection.name}.{system.name}.run"
            run = recorded(run, path, tag=system.name)
        measured[system.name] = judge.measure(run)
    if progress is not None:
        progress(f"{collection.name} systems", len(SYSTEMS), len(SYSTEMS))
    return measured


def judged_queries(collection: Collection, judge: Judge) -> list[Query]:
    """Select the queries that count, in source order."""
    judged = frozenset(judge.query_ids)
    return [query for query in collection.queries() if query.id in judged]
