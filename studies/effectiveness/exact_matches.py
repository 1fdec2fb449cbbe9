"""What `EXACT` of `klsa_search.search.quality` rests on: how good a match is that has every word.

Queries that an index can answer are set against those that it cannot. The first are judged queries,
words of titles that one document contains, and two words of one title; the others are queries of
other collections, two to eight words of as many documents, and invented words. The quality of an
answer is that of its best hit. `EXACT` is fitted by maximum likelihood on all collections but one,
and measured on that one: AUC and the Brier score without it and with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from klsa_search import Index
from studies.effectiveness.kinds import KINDS, task_of
from studies.effectiveness.measuring import Bench, Task, heading, row
from studies.effectiveness.quality import auc

EXACT = "klsa_search.search.quality.EXACT"
EACH = 150
"""Queries of each kind for each collection, at most; a third as many of invented words."""
NOTHING = -40.0
"""Log-odds where there is no such hit."""
WORD = re.compile(r"[^\W\d_]{4,}")

Answers = npt.NDArray[np.float64]
"""A row for each query: log-odds of the best hit with every word, of the best other one; 1 for
queries that the index can answer, else 0."""


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has the answers. `names`: only these, of which there are several."""
    tasks = [task_of(name, data) for name in names or KINDS]
    answers = {task.name: answers_of(bench.index(task, {}), task, tasks) for task in tasks}
    found: dict[str, Any] = {}
    heading("", "AUC without", "with", "Brier without", "with", "EXACT of the others")
    for name, own in answers.items():
        exact = fitted([each for other, each in answers.items() if other != name])
        before, after = measures(own, 0.0), measures(own, exact)
        found[name] = {"exact": exact, "before": before, "after": after, "answers": own.tolist()}
        row(name, *(f"{x:.3f}" for x in (before[0], after[0], before[1], after[1])), f"{exact:.2f}")
    means = [
        np.mean([each[kind][at] for each in found.values()])
        for at in (0, 1)
        for kind in ("before", "after")
    ]
    row("mean", *(f"{each:.3f}" for each in means), f"{fitted([*answers.values()]):.2f}")
    return found


def answers_of(index: Index, task: Task, tasks: Sequence[Task]) -> Answers:
    """Ask an index everything."""
    rng = np.random.default_rng(0)
    asked = [(text, 1.0) for text in _answerable(index, task, rng)]
    asked += [(text, 0.0) for text in _unanswerable(index, task, tasks, rng)]
    return np.array([(*evidence(index, text), label) for text, label in asked])


def evidence(index: Index, text: str) -> tuple[float, float]:
    """Log-odds of the best hit that has every word of a query, and of the best other."""
    with mock.patch(EXACT, 0.0):
        plain = _log_odds(index, text)
    with mock.patch(EXACT, 1.0):
        exact = _log_odds(index, text) > plain + 0.5
    best = (plain[exact].max(initial=NOTHING), plain[~exact].max(initial=NOTHING))
    return float(best[0]), float(best[1])


def fitted(collections: Sequence[Answers]) -> float:
    """Fit `EXACT` by maximum likelihood, each collection counting the same."""

    def loss(exact: float) -> float:
        return float(np.mean([_loss(answers, exact) for answers in collections]))

    return float(minimize_scalar(loss, bounds=(0.0, 8.0), method="bounded").x)


def measures(answers: Answers, exact: float) -> tuple[float, float]:
    """Return AUC and Brier score of the qualities with that value of `EXACT`."""
    held, labels = _chances(answers, exact), answers[:, 2]
    return auc(held[labels > 0], held[labels == 0]), float(np.mean((held - labels) ** 2))


def _chances(answers: Answers, exact: float) -> npt.NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.maximum(answers[:, 0] + exact, answers[:, 1]))))


def _loss(answers: Answers, exact: float) -> float:
    odds = np.maximum(answers[:, 0] + exact, answers[:, 1])
    return float(np.mean(np.logaddexp(0, np.where(answers[:, 2] > 0, -odds, odds))))


def _log_odds(index: Index, text: str) -> npt.NDArray[np.float64]:
    found = index.search(text, 10, quality=True, spelling="off")
    qualities = np.array([hit.quality for hit in found], np.float64)
    inner = np.clip(qualities, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(inner / (1 - inner)))


def _answerable(index: Index, task: Task, rng: np.random.Generator) -> Iterator[str]:
    judged = {one.query_id for one in task.judgements if one.grade > 0}
    yield from [query.text for query in task.queries if query.id in judged][:EACH]
    documents = [task.documents[at] for at in rng.permutation(len(task.documents))[: 10 * EACH]]
    titles = [_words(index, document.title or document.text[:80]) for document in documents]
    pairs = [words for words in titles if len(words) >= 2]
    yield from (" ".join(rng.choice(words, 2, replace=False)) for words in pairs[:EACH])
    rare = (word for words in titles for word in words if _total(index, word) == 1)
    yield from islice(rare, EACH)


def _unanswerable(
    index: Index, task: Task, tasks: Sequence[Task], rng: np.random.Generator
) -> Iterator[str]:
    others = [query.text for other in tasks if other is not task for query in other.queries]
    yield from rng.choice(others, min(EACH, len(others)), replace=False).tolist()
    letters = list("abcdefghijklmnopqrstuvwxyz")
    for number in range(EACH):
        drawn = rng.integers(len(task.documents), size=rng.integers(2, 9))
        words = [_words(index, task.documents[at].text) for at in drawn]
        yield " ".join(str(rng.choice(some)) for some in words if some)
        if number % 3 == 0:
            yield " ".join("".join(rng.choice(letters, 9)) for _ in range(rng.integers(1, 5)))


def _words(index: Index, text: str) -> list[str]:
    """Different words of a text that are neither short nor common."""
    common = index.analyzer.common()
    return sorted({word for word in WORD.findall(text.lower()) if word not in common})


def _total(index: Index, word: str) -> int:
    return index.search(word, 1, ranker="bm25", spelling="off").total
