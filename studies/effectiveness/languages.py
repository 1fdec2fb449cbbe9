"""What a language for each document changes, on collections of two languages joined in one index.

MAP of the queries of each: in an index of their own collection, in the joined index with the rules
of one language for all (that of most of the text, and English), and with those of each document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search.collection.model import Document, Judgement
from studies.effectiveness.kinds import task_of
from studies.effectiveness.measuring import Bench, Settings, Task, heading, percent, row

PAIRS: Final = (
    "lohelp-de+lohelp-fi",
    "lohelp-de+lohelp-ja",
    "lohelp-fi+lohelp-ko",
    "cisi+lohelp-de",
)


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; `names`: only these pairs."""
    found: dict[str, Any] = {}
    heading("pair", "queries of", "alone", "one language", "English", "each its own", "change")
    for pair in names or PAIRS:
        alone = [task_of(name, data) for name in pair.split("+")]
        joined = list(_joined(alone))
        own = _means(bench, alone, {})
        each = _means(bench, joined, {})
        language = bench.index(joined[0], {}).settings.language
        first = _means(bench, joined, {"language": language.split(",")[0]})
        english = _means(bench, joined, {"language": "english"})
        for number, task in enumerate(alone):
            values = [own[number], first[number], english[number], each[number]]
            found[f"{pair} {task.name}"] = {"language": language, "map": values}
            shown = [f"{value:.4f}" for value in values]
            row(pair, task.name, *shown, percent(each[number] / first[number] - 1))
    return found


def _means(bench: Bench, tasks: Sequence[Task], settings: Settings) -> list[float]:
    return [float(np.mean(bench.precisions(task, settings))) for task in tasks]


def _joined(tasks: Sequence[Task]) -> Iterator[Task]:
    """Yield each task with the documents of all, whose IDs begin with the name of theirs."""
    documents = [_named(document, task) for task in tasks for document in task.documents]
    corpus = "_".join(task.name for task in tasks)
    for task in tasks:
        judgements = [_judged(judgement, task) for judgement in task.judgements]
        yield replace(task, documents=documents, judgements=judgements, corpus=corpus)


def _named(document: Document, task: Task) -> Document:
    return replace(document, id=f"{task.name}/{document.id}")


def _judged(judgement: Judgement, task: Task) -> Judgement:
    return replace(judgement, document_id=f"{task.name}/{judgement.document_id}")
