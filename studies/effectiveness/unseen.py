"""The default on tasks that no setting was chosen by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from klsa_search.collection import Document, open_collection
from klsa_search.core.parameters import RankerName
from studies.effectiveness import reuters
from studies.effectiveness.derived_tasks import (
    FILES,
    by_document,
    citation_task,
    sentence_to_rest,
    summary_to_docstring,
    title_to_text,
)
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import (
    FOUR,
    Bench,
    Task,
    chance,
    compared,
    heading,
    percent,
    row,
)


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision. `names`: only these tasks."""
    rivals = tuple(name for name in ("rm3",) if name in get_args(RankerName))
    tasks = tasks_of(data)
    unknown = sorted(set(names) - set(tasks))
    if unknown:
        raise SystemExit(f"no task {', '.join(unknown)}; the tasks are: {', '.join(tasks)}")
    found: dict[str, Any] = {}
    heading("task", "N", "queries", "bm25", *rivals, "default", "gain", "hurt", "worst tenth", "p")
    for name in names or tasks:
        task = tasks[name]()
        base = bench.precisions(task, {"ranker": "bm25"})
        others = {rival: bench.precisions(task, {"ranker": rival}) for rival in rivals}
        best = bench.precisions(task, {})
        measures = compared(best, base)
        p = chance(best, base)
        found[name] = {
            "documents": len(task.documents),
            "precisions": {"bm25": base, **others, "default": best},
            "measures": {**measures, "p": p},
        }
        row(
            name,
            f"{len(task.documents):,}",
            len(base),
            f"{np.mean(base):.4f}",
            *(f"{np.mean(values):.4f}" for values in others.values()),
            f"{measures['map']:.4f}",
            percent(measures["gain"]),
            f"{measures['hurt']:.0%}",
            f"{measures['tenth']:.3f}".replace("-", "−"),
            f"{p:.4f}" if p >= 0.0001 else "< .0001",
        )
    return found


def _by_document(name: str, data: Path) -> Task:
    return by_document(task_of(name, data))


def tasks_of(data: Path) -> dict[str, Callable[[], Task]]:
    """Tasks by name, each made when asked for."""

    def of_documents(make: Callable[[str, list[Document]], Task], name: str, kind: str) -> Task:
        return make(f"{name}-{kind}", list(open_collection(name, data=[data]).documents()))

    tasks: dict[str, Callable[[], Task]] = {"python-docs": summary_to_docstring}
    for name in ("cran", "cisi", "cacm"):  # med has no titles
        tasks[f"{name}-titles"] = partial(of_documents, title_to_text, name, "titles")
    for name in FOUR:
        tasks[f"{name}-sentences"] = partial(of_documents, sentence_to_rest, name, "sentences")
    for name in FILES:
        tasks[f"{name}-citations"] = partial(citation_task, name, data)
    for name in KINDS:
        if name not in ("awsdocs", "cosqa"):  # one answer a query
            tasks[f"{name}-by-document"] = partial(_by_document, name, data)
    try:
        tasks |= reuters.tasks()
    except SystemExit as reason:
        print(f"Reuters-21578 is skipped: {reason}\n")
    return tasks
