"""What a reproduction says: published and measured figures side by side, choices, charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search.core.array_types import Matrix
from klsa_search.core.drawing import GREY, save_figure
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


_COLOURS = ("#1b6ca8", "#b23a2e", "#1f8a70", "#a8681c")
_DASHES: tuple[Any, ...] = ((0, (5, 3)), (0, (1, 2)))
_WIDTH, _HEIGHT, _LEGEND, _ENTRY = 2.9, 3.0, 0.6, 1.9  # inches; the last of one in the legend


def draw_chart(chart: Chart, path: Path) -> None:
    """Draw the panels of a chart side by side on one y axis; errors are those of `drawn`.

    A line or level looks the same in every panel, so that one legend serves all.
    """
    lines = list(dict.fromkeys(line.name for panel in chart.panels for line in panel.lines))
    levels = list(dict.fromkeys(name for panel in chart.panels for name in panel.levels))
    colours = dict(zip(lines, _COLOURS, strict=False))
    dashes = dict(zip(levels, _DASHES, strict=False))
    width = max(2, len(chart.panels)) * _WIDTH
    with save_figure(path, width, _HEIGHT + _LEGEND) as figure:
        drawings = figure.subplots(1, len(chart.panels), sharey=True, squeeze=False)[0]
        shown: dict[str, Any] = {}
        for axes, panel in zip(drawings, chart.panels, strict=True):
            for line in panel.lines:
                (shown[line.name],) = axes.plot(
                    line.x, line.y, color=colours[line.name], linewidth=1.6
                )
            for name, height in panel.levels.items():
                shown[name] = axes.axhline(
                    height, color=GREY, linewidth=1.2, linestyle=dashes[name], zorder=1
                )
            axes.set_title(panel.title, fontsize="medium", weight="normal")
            axes.set_xlabel(chart.x_label)
            if chart.logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
        drawings[0].set_ylabel(chart.y_label)
        figure.suptitle(chart.title, x=0.01, ha="left")
        names = lines + levels
        figure.legend(
            [shown[name] for name in names],
            names,
            loc="outside lower center",
            ncols=min(len(names), int(width / _ENTRY)),
            frameon=False,
        )
