"""What a reproduction says: published and measured figures side by side, choices, charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from klsa_search.core.array_types import Matrix
from studies.reproduce.dimensions import Curves, Protocol


@dataclass(frozen=True)
class Value:
    """Mean over the splits and standard deviation."""

    mean: float
    sd: float

    @classmethod
    def of(cls, scores: Sequence[float] | Matrix) -> Value:
        """Summarise one score a split: (splits,); the deviation is 0 for one split."""
        values = np.asarray(scores)
        return cls(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0)


@dataclass(frozen=True)
class Row:
    """One line of a table; `published` is None where the source has no such figure."""

    task: str
    method: str
    measure: str
    published: Value | None
    measured: Value


@dataclass(frozen=True)
class Line:
    """One line of a panel: y against x, with what it is called."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """Lines over one x axis, and levels that do not depend on it: name → y."""

    title: str
    lines: tuple[Line, ...]
    levels: dict[str, float]


@dataclass(frozen=True)
class Chart:
    """Panels side by side; `name` becomes the name of the file.

    logarithmic  whether the x axis is
    """

    name: str
    title: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    logarithmic: bool


@dataclass(frozen=True)
class Reproduction:
    """An experiment of a source done again.

    choices  what the source leaves open and how it was decided here, a sentence each
    """

    name: str
    source: str
    splits: int
    rows: tuple[Row, ...]
    choices: tuple[str, ...]
    charts: tuple[Chart, ...]

    def as_json(self) -> dict[str, Any]:
        """Give everything as a value for JSON."""
        return asdict(self)


def curve_rows(
    task: str, curves: Curves, protocol: Protocol, published: dict[str, Value]
) -> list[Row]:
    """Rows of one target: the full space, and each method at its best and its chosen dimension.

    published  "full" or a method → the figure of the source, whose dimension was the best one
    """
    measure = protocol.measure
    full = f"full space, C = {curves.capacity:g}"
    rows = [Row(task, full, measure.name, published.get("full"), Value.of(curves.full))]
    for method, scores in curves.reduced.items():
        best, chosen = measure.best(scores.mean(axis=0)), curves.chosen[method]
        for how, at, said in (
            ("best", best, published.get(method)),
            ("chosen", chosen, None),
        ):
            name = f"{method}, {how} k = {protocol.dimensions[at]}"
            rows.append(Row(task, name, measure.name, said, Value.of(scores[:, at])))
    return rows


def curve_panel(title: str, named: dict[str, Curves], protocol: Protocol) -> Panel:
    """Panel of score against dimension; the level of each full space is dashed."""
    dimensions = tuple(map(float, protocol.dimensions))
    lines, levels = [], {}
    for name, curves in named.items():
        for method, scores in curves.reduced.items():
            means = tuple(scores.mean(axis=0).tolist())
            lines.append(Line(f"{method}{name}", dimensions, means))
        levels[f"full space{name}"] = float(curves.full.mean())
    return Panel(title, tuple(lines), levels)
