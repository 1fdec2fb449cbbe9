"""What partitions cost: MAP with 1, 2 and 4 of them, and how many of the first ten they share.

Neighbours of a document are looked for in its own partition, so the default finds a little less.
BM25 is the same to the bit: the report counts queries of which a score of the first ten differs.
Queries are read as plain words. Documents are not divided into passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search import Index
from klsa_search.collection.model import Topic
from klsa_search.evaluation.measures import Judge, Ranking, rank_best
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import AS_WORDS, Bench, Task, heading, percent, row

NUMBERS: Final = (2, 4)
LARGE: Final = ("finna-fi",)
"""Collections of many documents, measured if they are named."""

_FIRST: Final = 10


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has the average precision of every query. `names`: only these."""
    found: dict[str, Any] = {}
    columns = [title for p in NUMBERS for title in (f"P = {p}", "change", "first ten", "BM25")]
    heading("", "documents", "queries", "P = 1", *columns)
    for name in checked_names(names):
        task = task_of(name, data)
        found[name] = _measured(bench, task)
        one = found[name]["1"]
        cells = [
            cell
            for number in NUMBERS
            for each in (found[name][str(number)],)
            for cell in (
                f"{each['map']:.4f}",
                percent(each["map"] / one["map"] - 1),
                f"{each['first_ten']:.3f}",
                "same" if not each["bm25_differs"] else f"{each['bm25_differs']} differ",
            )
        ]
        sizes = found[name]["documents"], len(one["precisions"])
        row(name, *sizes, f"{one['map']:.4f}", *cells)
    for number in NUMBERS:
        changes = [each[str(number)]["map"] / each["1"]["map"] - 1 for each in found.values()]
        row(f"mean, P = {number}", percent(float(np.mean(changes))), percent(min(changes)))
    return found


def checked_names(names: Sequence[str]) -> Sequence[str]:
    """Return the named tasks, or `KINDS` if none is named; SystemExit for an unknown name."""
    unknown = sorted(set(names) - {*KINDS, *LARGE})
    if unknown:
        raise SystemExit(
            f"no task {', '.join(unknown)}; the tasks are: {', '.join((*KINDS, *LARGE))}"
        )
    return names or KINDS


def _measured(bench: Bench, task: Task) -> dict[str, Any]:
    """Return the figures of one collection, by number of partitions."""
    judge = Judge(task.judgements, measures=("map",))
    queries = judge.judged(task.queries)
    index = bench.index(task, {})
    found: dict[str, Any] = {"documents": len(index)}
    first, lexical = _runs(index, queries)
    precisions = judge.measure(first).values("map")
    found["1"] = {"map": float(np.mean(precisions)), "precisions": precisions}
    for number in NUMBERS:
        divided = replace(task, corpus=f"{task.name}-{number}")
        index = bench.index(divided, {"partitions": number})
        run, own_lexical = _runs(index, queries)
        precisions = judge.measure(run).values("map")
        found[str(number)] = {
            "map": float(np.mean(precisions)),
            "first_ten": _agreement(first, run),
            "bm25_differs": sum(
                one.scores.tolist() != other.scores.tolist()
                for one, other in zip(lexical, own_lexical, strict=True)
            ),
            "precisions": precisions,
        }
    return found


def _runs(index: Index, queries: Sequence[Topic]) -> tuple[list[Ranking], list[Ranking]]:
    """Return the rankings of the default, and the first ten of BM25."""
    best = list(rank_best(index, queries, **AS_WORDS))
    return best, list(rank_best(index, queries, _FIRST, ranker="bm25", **AS_WORDS))


def _agreement(run: Sequence[Ranking], other: Sequence[Ranking]) -> float:
    """Return the mean share of the first ten of one run that are among those of the other."""
    shares = [
        len({*one.document_ids[:_FIRST]} & {*two.document_ids[:_FIRST]})
        / len(one.document_ids[:_FIRST])
        for one, two in zip(run, other, strict=True)
        if one.document_ids
    ]
    return float(np.mean(shares))
