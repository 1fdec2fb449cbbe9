"""Tasks, the bench that measures settings on them, and what a setting changes query by query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search import Index, build
from klsa_search.collection import Document, open_collection
from klsa_search.collection.model import Judgement, Topic
from klsa_search.core.parameters import ParsingSettings, RankingSettings
from klsa_search.evaluation.comparison import TIE, randomisation_test
from klsa_search.evaluation.measures import Judge, Ranking, rank_best

TARGETS = ("cran", "cran-1837", "cisi", "cacm", "med")
FOUR = ("cran", "cisi", "cacm", "med")
"""The collections a mean is taken of; cran-1837 is cran once more."""

_OF_SEARCH = {*ParsingSettings.model_fields, *RankingSettings.model_fields, "dimensions"}

AS_WORDS: dict[str, Any] = {"operators": False, "spelling": "off", "synonyms": False}
"""Parameters that read queries as plain words."""

Settings = Mapping[str, Any]
Precisions = list[float]


@dataclass(frozen=True)
class Task:
    """Documents to index, and queries with judgements to measure with.

    corpus    tasks with the same one have the same documents, and share an index
    left_out  query → the document it was made of, which is not ranked for it
    """

    name: str
    documents: Sequence[Document]
    queries: Sequence[Topic]
    judgements: Sequence[Judgement]
    corpus: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_target(cls, name: str, data: Path) -> Task:
        collection = open_collection(name, data=[data])
        return cls(
            name,
            list(collection.documents()),
            collection.queries(),
            collection.judgements(),
            corpus=name.removesuffix("-1837"),
        )


class Bench:
    """Measures settings on tasks; keeps the last index of each corpus."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._indexes: dict[str, tuple[Settings, Index]] = {}

    def precisions(self, task: Task, settings: Settings | None = None) -> Precisions:
        """Average precision of each judged query at depth 1,000, in the order of the judgements.

        Settings of a search are handed to the search, the others (and `preset`) to the build.
        """
        given = dict(settings or {})
        index = self.index(task, {k: v for k, v in given.items() if k not in _OF_SEARCH})
        search = {k: v for k, v in given.items() if k in _OF_SEARCH}
        return precisions_of(index, task, **search)

    def index(self, task: Task, settings: Settings) -> Index:
        corpus = task.corpus or task.name
        held = self._indexes.get(corpus)
        if held is not None and held[0] == settings:
            return held[1]
        if held is not None:
            held[1].close()
        whole = {"passages": "off", **settings}  # documents by themselves, unless asked otherwise
        index = build(task.documents, name=corpus, home=self._home, **whole)
        self._indexes[corpus] = (settings, index)
        return index


def precisions_of(index: Index, task: Task, **search: Any) -> Precisions:
    """Average precision of each judged query of a task in an index: see `Bench.precisions`."""
    judge = Judge(task.judgements, measures=("map",))
    run = rank_best(index, judge.judged(task.queries), **search)
    return judge.measure(_without(run, task.left_out)).values("map")


def _without(run: Iterator[Ranking], left_out: Mapping[str, str]) -> Iterator[Ranking]:
    for ranking in run:
        own = left_out.get(ranking.query_id)
        if own is None or own not in ranking.document_ids:
            yield ranking
        else:
            place = ranking.document_ids.index(own)
            ids = ranking.document_ids[:place] + ranking.document_ids[place + 1 :]
            yield Ranking(ranking.query_id, ids, np.delete(ranking.scores, place))


def compared(precisions: Precisions, base: Precisions) -> dict[str, float]:
    """Say what the precisions are against those of BM25.

    map, gain  mean, and its relative change
    hurt       share of the queries that lose more than `TIE`
    tenth      mean change over the tenth of the queries that come off worst, as in `compare`
    """
    values, before = np.array(precisions), np.array(base)
    change = np.sort(values - before)
    return {
        "map": float(values.mean()),
        "gain": float(values.mean() / before.mean() - 1),
        "hurt": float((change < -TIE).mean()),
        "tenth": float(change[: -(-len(change) // 10)].mean()),
    }


def chance(precisions: Precisions, base: Precisions) -> float:
    """p of the paired randomisation test."""
    return randomisation_test(np.array(precisions) - np.array(base))


def percent(share: float) -> str:
    return f"{share:+.1%}".replace("-", "−")


def row(*cells: object) -> None:
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def heading(*cells: object) -> None:
    row(*cells)
    row(*("---" for _ in cells))
