"""The default, with one thing changed at a time, and the other rankers beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np

from klsa_search.core.parameters import RankerName
from studies.effectiveness.measuring import (
    FOUR,
    TARGETS,
    Bench,
    Settings,
    Task,
    compared,
    heading,
    percent,
    row,
)

RANKERS: dict[str, Settings] = {
    name: {"ranker": name} for name in get_args(RankerName) if name not in ("klsa", "bm25")
}

ALONE: Settings = {"alpha": 1.0, "hold_back": 0.0}  # nothing of the lexical part, ever

# Changes of a search share the index; changes of the kernel come last, one build each.
VARIANTS: dict[str, Settings] = {
    **RANKERS,
    "lsi-cosine, 100 dimensions": {"ranker": "lsi-cosine", "dimensions": 100},
    "default": {},
    "without coverage": {"coverage": 0.0},
    "without the latent cosine": {"latent": 0.0},
    "without coverage and latent cosine": {"coverage": 0.0, "latent": 0.0},
    "without the expansion": {"coverage": 2 / 3, "latent": 1 / 3},
    "coverage alone": {"coverage": 1.0, "latent": 0.0, **ALONE},
    "latent cosine alone": {"coverage": 0.0, "latent": 1.0, **ALONE},
    "without the lexical part (α = 1)": ALONE,
    "lexical part not sharpened": {"lexical_sharpness": 1.0},
    "seeds not sharpened": {"sharpness": 1.0},
    "parts not scaled to length 1": {"unit_length": False},
    **{f"z = {z}": {"z": z} for z in (1, 5, 10, 40, 100)},
    "truncation, 300": {"spectral": "truncation"},
    "truncation, 100": {"spectral": "truncation", "dimensions": 100},
    **{f"squashing, γ = {g:g}": {"spectral": "squashing", "gamma": g} for g in (0.1, 0.3, 1.0)},
    **{f"von Neumann, γ = {g:g}": {"spectral": "von-neumann", "gamma": g} for g in (0.5, 0.9)},
    **{f"exponential, γ = {g:g}": {"spectral": "exponential", "gamma": g} for g in (1.0, 3.0)},
    "λ, first eigenvector out": {"head": 1},
    "λ, first three out": {"head": 3},
    "squashing, γ = 0.3, first out": {"spectral": "squashing", "gamma": 0.3, "head": 1},
    "exponential, γ = 1, first out": {"spectral": "exponential", "gamma": 1.0, "head": 1},
    "without pairs": {"pairs": 0.0},
    "kernel not centred": {"centred": False},
    "kernel not normalised": {"normalised": False},
    "kernel neither": {"centred": False, "normalised": False},
    "p = 0.5 (published)": {"idf_power": 0.5},
    "kernel k1 = 1.2": {"kernel_k1": 1.2},
    "published": {"preset": "paper"},
}


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has every query's average precision."""
    tasks = [Task.of_target(name, data) for name in TARGETS]
    base = {task.name: bench.precisions(task, {"ranker": "bm25"}) for task in tasks}
    heading("", *TARGETS, "mean of four", "hurt, most", "worst tenth")
    row("bm25", *(f"{np.mean(base[name]):.4f}" for name in TARGETS), "", "", "")
    found: dict[str, Any] = {"bm25": {"precisions": base}}
    for label, settings in VARIANTS.items():
        precisions = {task.name: bench.precisions(task, settings) for task in tasks}
        measures = {name: compared(precisions[name], base[name]) for name in TARGETS}
        found[label] = {"settings": settings, "measures": measures, "precisions": precisions}
        row(label, *cells(measures))
    return found


def cells(measures: dict[str, dict[str, float]]) -> list[str]:
    """MAP and gain by target; mean gain of the four, largest share hurt, lowest worst tenth."""
    return [
        *(f"{measures[name]['map']:.4f} {percent(measures[name]['gain'])}" for name in TARGETS),
        percent(float(np.mean([measures[name]["gain"] for name in FOUR]))),
        f"{max(measures[name]['hurt'] for name in TARGETS):.0%}".replace("%", " %"),
        f"{min(measures[name]['tenth'] for name in TARGETS):.3f}".replace("-", "−"),
    ]
