"""The default on eleven collections, against BM25 as it is and as it once was.

Figures are at depth 1,000. `EARLIER_BM25` has the MAP of an earlier BM25 of this project, which
left out a long stop list, counted titles once and had no burstiness: gains over it count a better
BM25 as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.effectiveness.measuring import (
    FOUR,
    Bench,
    Settings,
    Task,
    compared,
    heading,
    percent,
    row,
)

EARLIER_BM25 = {
    "cran": 0.3056, "cisi": 0.2342, "cacm": 0.3729, "med": 0.5219, "npl": 0.2855, "lisa": 0.3473,
    "time": 0.6254, "adi": 0.4033, "awsdocs": 0.6985, "medquad": 0.3282, "cosqa": 0.3175,
}  # fmt: skip
KINDS = tuple(EARLIER_BM25)
_DRAWS = 20_000


def report(bench: Bench, data: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision. `names`: only these."""
    unknown = sorted(set(names) - set(KINDS))
    if unknown:
        raise SystemExit(f"no task {', '.join(unknown)}; the tasks are: {', '.join(KINDS)}")
    found: dict[str, Any] = {}
    heading(
        "", "queries", "earlier BM25", "BM25", "default", "gain over earlier", "over own", "hurt"
    )
    for name in names or KINDS:
        task = task_of(name, data)
        base = bench.precisions(task, {"ranker": "bm25"})
        best = bench.precisions(task, {})
        measures = compared(best, base)
        measures["over_earlier"] = float(np.mean(best)) / EARLIER_BM25[name] - 1
        found[name] = {"bm25": base, "default": best, "measures": measures}
        row(
            name,
            len(base),
            f"{EARLIER_BM25[name]:.4f}",
            f"{np.mean(base):.4f}",
            f"{measures['map']:.4f}",
            percent(measures["over_earlier"]),
            percent(measures["gain"]),
            f"{measures['hurt']:.0%}",
        )
    for label, members in _groups(list(found)):
        first, own, hurt = (
            np.array([found[name]["measures"][measure] for name in members])
            for measure in ("over_earlier", "gain", "hurt")
        )
        low, high = interval(first)
        row(
            label, "", "", "", "", f"{percent(first.mean())} ({percent(low)} to {percent(high)})",
            percent(own.mean()), f"{hurt.mean():.0%}",
        )  # fmt: skip
    return found


def interval(gains: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Of the mean over collections, 95 %: collections are drawn again with repetition."""
    rng = np.random.default_rng(0)
    drawn = rng.choice(gains, (_DRAWS, len(gains))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def task_of(name: str, data: Path) -> Task:
    """The four by their names, the others from the folder `more` beside them."""
    task = Task.of_target(name if name in FOUR else str(data / "more" / name), data)
    return replace(task, name=name, corpus=name)


def _groups(names: list[str]) -> list[tuple[str, list[str]]]:
    groups = {
        "mean of the four": [name for name in names if name in FOUR],
        "mean of the others": [name for name in names if name not in FOUR],
        "mean of all": names,
    }
    return [(label, members) for label, members in groups.items() if members]


STEPS: dict[str, Settings] = {
    "default": {},
    "nothing held back": {"hold_back": 0.0},
    "nothing held back, α = .5": {"hold_back": 0.0, "alpha": 0.5},
    "long stop list left out": {"stop_words": "long"},
    "common words in full": {"common_weight": 1.0},
    "titles once": {"search": "title,text"},
    "no bursts": {"burstiness": 1.0},
}


def report_steps(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print what each step is worth: one taken back at a time."""
    found: dict[str, Any] = {label: {} for label in STEPS}
    for name in KINDS:
        task = task_of(name, data)
        for label, settings in STEPS.items():
            base = bench.precisions(task, {**settings, "ranker": "bm25"})
            best = bench.precisions(task, settings)
            found[label][name] = {"bm25": base, "default": best, **compared(best, base)}
    heading("", "BM25", "the four", "the others", "worst", "over own BM25, worst", "hurt", "most")
    for label, measured in found.items():
        first = {name: measured[name]["map"] / EARLIER_BM25[name] - 1 for name in KINDS}
        base = [float(np.mean(measured[name]["bm25"])) / EARLIER_BM25[name] - 1 for name in KINDS]
        hurt = [measured[name]["hurt"] for name in KINDS]
        row(
            label,
            percent(float(np.mean(base))),
            percent(float(np.mean([first[name] for name in FOUR]))),
            percent(float(np.mean([first[name] for name in KINDS if name not in FOUR]))),
            percent(min(first.values())),
            percent(min(measured[name]["gain"] for name in KINDS)),
            *(f"{share:.0%}" for share in (float(np.mean(hurt)), max(hurt))),
        )
    return found
