"""How hard a query is, told before it is judged: known predictors against what came out.

Of each collection Kendall's τ-b and Pearson's r over its judged queries, between a predictor and
the default's average precision at depth 1,000, and its nDCG@10. One predictor is chosen by the mean
τ with AP on all collections but one, and reported on that one: τ, how many pairs of queries are in
the right order, and the mean AP of the third of the queries said to be hardest, and easiest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.runs import Ranking
from klsa_search.search.searcher import ids_of
from studies.effectiveness import reuters
from studies.effectiveness.kinds import KINDS, interval, task_of
from studies.effectiveness.measuring import Bench, Task, heading, row
from studies.effectiveness.predictors import PREDICTORS, Evidence

MEASURES = ("map", "ndcg@10")
_OF_REUTERS = ("reuters-topics", "reuters-titles")
_DRAWS = 1000

Values = npt.NDArray[np.float64]
Numbers = Sequence[float] | Values
Found = Mapping[str, Mapping[str, list[float]]]


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has what came out and what was foretold, query by query."""
    tasks = _tasks(data)
    unknown = sorted(set(names) - set(tasks))
    if unknown:
        raise SystemExit(f"no task {', '.join(unknown)}; the tasks are: {', '.join(tasks)}")
    found = {name: _of_task(bench, tasks[name]()) for name in names or tasks}
    show(found)
    return found


def show(found: Mapping[str, Found]) -> None:
    """Print the tables of what was measured."""
    for measure in MEASURES:
        _show_taus(found, measure)
    if len(found) > 1:
        _show_left_out(found)


def _tasks(data: Path) -> dict[str, Callable[[], Task]]:
    kinds = {name: partial(task_of, name, data) for name in KINDS}
    return {**kinds, **{name: partial(_reuters, name) for name in _OF_REUTERS}}


def _reuters(name: str) -> Task:
    return reuters.tasks()[name]()


def _of_task(bench: Bench, task: Task) -> dict[str, dict[str, list[float]]]:
    index = bench.index(task, {})
    judge, ids = Judge(task.judgements, measures=MEASURES), ids_of(index)
    came_out: dict[str, list[float]] = {name: [] for name in MEASURES}
    foretold: dict[str, list[float]] = {name: [] for name in PREDICTORS}
    for query in task.queries:
        if query.id not in judge.query_ids:
            continue
        evidence = Evidence(index, query.text)
        positions, scores = evidence.default
        ranking = Ranking(query.id, tuple(ids(positions)), scores)
        values = judge.score(ranking) if len(positions) else dict.fromkeys(MEASURES, 0.0)
        for name in MEASURES:
            came_out[name].append(values[name])
        for name, predict in PREDICTORS.items():
            foretold[name].append(predict(evidence))
    return {"came out": came_out, "foretold": foretold}


def tau(one: Numbers, other: Numbers) -> float:
    """Kendall's τ-b; 0 where one of both is constant."""
    from scipy.stats import kendalltau

    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(kendalltau(one, other).statistic)


def pearson(one: Numbers, other: Numbers) -> float:
    """Pearson's r; 0 where one of both is constant."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _show_taus(found: Mapping[str, Found], measure: str) -> None:
    heading(f"τ with {measure}", *found, "mean τ", "mean r")
    row("queries", *(len(each["came out"][measure]) for each in found.values()), "", "")
    for name in PREDICTORS:
        taus = [tau(each["foretold"][name], each["came out"][measure]) for each in found.values()]
        rs = [pearson(each["foretold"][name], each["came out"][measure]) for each in found.values()]
        low, high = interval(np.array(taus))
        mean = f"{_two(np.mean(taus))} ({_two(low)} to {_two(high)})"
        row(name, *map(_two, taus), mean, _two(np.mean(rs)))


def _show_left_out(found: Mapping[str, Found]) -> None:
    taus = {
        name: np.array(
            [tau(each["foretold"][name], each["came out"]["map"]) for each in found.values()]
        )
        for name in PREDICTORS
    }
    heading(
        "left out",
        "chosen on the others",
        "their mean τ",
        "τ",
        "95 %",
        "pairs",
        "hardest",
        "easiest",
    )
    reached, ends = [], []
    for at, (task, each) in enumerate(found.items()):
        others = {name: float(np.delete(values, at).mean()) for name, values in taus.items()}
        chosen = max(others, key=others.__getitem__)
        foretold, came_out = each["foretold"][chosen], each["came out"]["map"]
        reached.append(taus[chosen][at])
        ends.append((in_order(foretold, came_out), *thirds(foretold, came_out)))
        low, high = drawn(foretold, came_out)
        between = f"{_two(low)} to {_two(high)}"
        row(task, chosen, _two(others[chosen]), _two(reached[-1]), between, *map(_two, ends[-1]))
    low, high = interval(np.array(reached))
    between = f"{_two(low)} to {_two(high)}"
    row("mean", "", "", _two(np.mean(reached)), between, *map(_two, np.mean(ends, axis=0)))


def in_order(foretold: Sequence[float], came_out: Sequence[float]) -> float:
    """Share of the pairs that are told apart and were to be told apart, told right."""
    one, other = (np.sign(np.subtract.outer(values, values)) for values in (foretold, came_out))
    agreed = one * other
    return float((agreed > 0).sum() / max(np.count_nonzero(agreed), 1))


def thirds(foretold: Sequence[float], came_out: Sequence[float]) -> tuple[float, float]:
    """Mean of what came out over the third foretold to be worst, and best."""
    values = np.array(came_out)[np.argsort(foretold, kind="stable")]
    third = max(len(values) // 3, 1)
    return float(values[:third].mean()), float(values[-third:].mean())


def drawn(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """95 % of τ: queries are drawn again with repetition."""
    rng, first, second = np.random.default_rng(0), np.array(one), np.array(other)
    some = (rng.integers(len(first), size=len(first)) for _ in range(_DRAWS))
    low, high = np.quantile([tau(first[at], second[at]) for at in some], (0.025, 0.975))
    return float(low), float(high)


def _two(value: Any) -> str:
    return f"{value:.2f}".replace("-", "−")
