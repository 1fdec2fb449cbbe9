"""Choose the settings on three collections, report on the fourth.

The grid is three values of each of nine settings, the default in the middle. Of its 19,683 points
81 are measured, such that any three settings take all 27 combinations of their values, three times
each: an orthogonal array of strength 3, so the mean over the points with one value of a setting is
free of the influence of the others, two at a time.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

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

# Index settings first: points that share them share an index.
GRID: dict[str, tuple[float, float, float]] = {
    "kernel_k1": (3.0, 2.0, 5.0),
    "neighbours": (20, 10, 40),
    "z": (20, 10, 40),
    "sharpness": (5.0, 3.0, 8.0),
    "coverage": (0.4, 0.3, 0.5),
    "latent": (0.2, 0.1, 0.3),
    "alpha": (0.7, 0.6, 0.8),
    "hold_back": (0.7, 0.5, 0.9),
    "lexical_sharpness": (8.0, 4.0, 16.0),
}
MOST_HURT = 0.25


def points() -> list[Settings]:
    """The 81 points, the default first.

    Ten vectors over the field of three elements, the points of x² + y² + zw = 0, of which any
    three are independent, make the columns; the first two come out so that an index is rebuilt
    as rarely as can be.
    """
    quadric = [(0, 0, 0, 1)]
    quadric += [(1, x, y, -(x * x + y * y)) for x, y in product(range(3), repeat=2)]
    found = []
    for number in product(range(3), repeat=4):
        levels = (int(np.dot(number, column)) % 3 for column in quadric)
        found.append({name: values[next(levels)] for name, values in GRID.items()})
    return sorted(found, key=lambda point: [GRID[n].index(point[n]) for n in GRID])


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure all points, choose, print."""
    tasks = [Task.of_target(name, data) for name in TARGETS]
    base = {task.name: bench.precisions(task, {"ranker": "bm25"}) for task in tasks}
    measured = []
    for point in points():
        measures = {t.name: compared(bench.precisions(t, point), base[t.name]) for t in tasks}
        measured.append({"settings": point, "measures": measures})
    heading("left out", "chosen", "mean of the three", "gain", "hurt", "default", "best point")
    chosen = {name: _choice(measured, name) for name in FOUR}
    for name, choice in chosen.items():
        gains = [point["measures"][name]["gain"] for point in measured]
        row(
            name,
            _differences(choice["settings"]),
            percent(_mean_gain(choice, tuple(other for other in FOUR if other != name))),
            percent(choice["measures"][name]["gain"]),
            f"{choice['measures'][name]['hurt']:.0%}".replace("%", " %"),
            percent(measured[0]["measures"][name]["gain"]),
            percent(max(gains)),
        )
    held_out = float(np.mean([c["measures"][name]["gain"] for name, c in chosen.items()]))
    row("mean", "", "", percent(held_out), "", percent(_mean_gain(measured[0], FOUR)), "")
    print()
    _print_spread(measured)
    print()
    _print_effects(measured)
    return {"points": measured, "chosen": chosen, "held_out_mean": held_out}


def _choice(measured: list[dict[str, Any]], left_out: str) -> dict[str, Any]:
    """The best mean gain on the other three, among the points that hurt few queries there."""
    others = tuple(name for name in FOUR if name != left_out)
    allowed = [
        point
        for point in measured
        if all(point["measures"][name]["hurt"] <= MOST_HURT for name in others)
    ]
    return max(allowed, key=lambda point: _mean_gain(point, others))


def _mean_gain(point: dict[str, Any], names: tuple[str, ...]) -> float:
    return float(np.mean([point["measures"][name]["gain"] for name in names]))


def _differences(settings: Settings) -> str:
    changed = [f"{n} {settings[n]:g}" for n, values in GRID.items() if settings[n] != values[0]]
    return ", ".join(changed) or "the default"


def _print_spread(measured: list[dict[str, Any]]) -> None:
    heading("81 points", *TARGETS, "mean of four")
    gains = np.array([[p["measures"][n]["gain"] for n in TARGETS] for p in measured])
    means = np.array([_mean_gain(point, FOUR) for point in measured])
    table = np.column_stack((gains, means))
    for label, values in (
        ("default", table[0]),
        ("mean", table.mean(axis=0)),
        ("standard deviation", table.std(axis=0)),
        ("lowest", table.min(axis=0)),
        ("highest", table.max(axis=0)),
    ):
        row(label, *map(percent, values.tolist()))
    hurt = [max(p["measures"][n]["hurt"] for n in TARGETS) for p in measured]
    few = sum(share <= MOST_HURT for share in hurt)
    print(f"\n{few} of {len(measured)} points hurt at most 25 % of the queries everywhere.")


def _print_effects(measured: list[dict[str, Any]]) -> None:
    """Mean gain over the 27 points with each value, less that over the 27 with the default's."""
    heading("setting", "default", "mean of four", "other values: change of it")
    for name, values in GRID.items():
        means = [
            np.mean([_mean_gain(p, FOUR) for p in measured if p["settings"][name] == value])
            for value in values
        ]
        others = [
            f"{value:g}: {percent(float(mean - means[0]))}"
            for value, mean in zip(values[1:], means[1:], strict=True)
        ]
        row(name, f"{values[0]:g}", percent(float(means[0])), ", ".join(others))
