"""What each step of the default is worth on eleven collections: one taken back at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from studies.effectiveness.kinds import FIRST, KINDS, task_of
from studies.effectiveness.measuring import (
    FOUR,
    Bench,
    Settings,
    compared,
    heading,
    percent,
    row,
)

STEPS: dict[str, Settings] = {
    "default": {},
    "nothing held back": {"hold_back": 0.0},
    "nothing held back, α = .5": {"hold_back": 0.0, "alpha": 0.5},
    "long stop list left out": {"stop_words": "long"},
    "common words in full": {"common_weight": 1.0},
    "titles once": {"search": "title,text"},
    "no bursts": {"burstiness": 1.0},
}


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision."""
    found: dict[str, Any] = {label: {} for label in STEPS}
    for name in KINDS:
        task = task_of(name, data)
        for label, settings in STEPS.items():
            base = bench.precisions(task, {**settings, "ranker": "bm25"})
            best = bench.precisions(task, settings)
            found[label][name] = {"bm25": base, "default": best, **compared(best, base)}
    heading("", "BM25", "the four", "the others", "worst", "over own BM25, worst", "hurt", "most")
    for label, measured in found.items():
        first = {name: measured[name]["map"] / FIRST[name] - 1 for name in KINDS}
        base = [float(np.mean(measured[name]["bm25"])) / FIRST[name] - 1 for name in KINDS]
        hurt = [measured[name]["hurt"] for name in KINDS]
        row(
            label,
            percent(float(np.mean(base))),
            percent(float(np.mean([first[name] for name in FOUR]))),
            percent(float(np.mean([first[name] for name in KINDS if name not in FOUR]))),
            percent(min(first.values())),
            percent(min(measured[name]["gain"] for name in KINDS)),
            *(f"{share:.0%}".replace("%", " %") for share in (float(np.mean(hurt)), max(hurt))),
        )
    return found
