"""How the charts of a reproduction are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from klsa_search.core.drawing import GREY, save_figure
from studies.reproduce.report import Chart

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
            axes.set_title(panel.title, loc="left", fontsize="medium")
            axes.set_xlabel(chart.x_label)
            if chart.logarithmic:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
        drawings[0].set_ylabel(chart.y_label)
        figure.suptitle(chart.title, x=0.01, horizontalalignment="left", fontweight="bold")
        names = lines + levels
        figure.legend(
            [shown[name] for name in names],
            names,
            loc="outside lower center",
            ncols=min(len(names), int(width / _ENTRY)),
            frameon=False,
        )
