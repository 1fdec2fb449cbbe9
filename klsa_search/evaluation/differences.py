"""The figure of a comparison: what a system gains and loses, query by query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search.drawing import GREY, PALE, drawn
from klsa_search.evaluation.comparison import TIE, Comparison

_WIN = "#1b6ca8"
_LOSS = "#b23a2e"
_TIE = "#9ca3af"
_FEW = 80
_PANEL = (7.2, 2.1)  # inches


def draw_differences(comparisons: Sequence[Comparison], system: str, path: Path) -> None:
    """Draw the differences of one system to the baseline, largest first, one panel per target.

    All panels have the same scale; p is the corrected one of the randomisation test. KeyError if a
    comparison does not have the system; OSError; MissingExtra without matplotlib (extra `figures`).
    """
    width, height = _PANEL
    with drawn(path, width, height * len(comparisons) + 0.5) as figure:
        panels = figure.subplots(len(comparisons), sharey=True, squeeze=False)[:, 0]
        for axes, comparison in zip(panels, comparisons, strict=True):
            _draw_panel(axes, comparison, system)
        first = comparisons[0]
        figure.suptitle(
            f"{system} against {first.baseline}, query by query",
            x=0.01,
            horizontalalignment="left",
            fontweight="bold",
        )
        figure.supylabel(f"difference in {first.measure}", fontsize="medium")
        panels[-1].set_xlabel(
            f"queries, largest gain first; grey: at most {TIE:g} either way; dashed: the mean"
        )


def _draw_panel(axes: Any, comparison: Comparison, system: str) -> None:
    differences = np.sort(comparison.differences(system))[::-1]
    count = len(differences)
    contrast = comparison.systems[system].contrast
    assert contrast is not None, "the baseline has no contrast"
    colours = np.repeat(
        [_WIN, _TIE, _LOSS], [contrast.wins, contrast.ties, contrast.losses]
    ).tolist()
    places = (np.arange(count) + 0.5) / count
    # Many thin bars with gaps would flicker.
    width = (0.86 if count <= _FEW else 1) / count
    axes.bar(places, differences, width=width, color=colours, linewidth=0, zorder=2)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=3)
    mean = float(differences.mean())
    axes.axhline(mean, color=GREY, linewidth=0.8, linestyle=(0, (5, 3)), zorder=3)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.grid(axis="y", color=PALE, linewidth=0.8, zorder=0)
    axes.set_title(comparison.target, loc="left", fontsize="medium", fontweight="bold")
    p = contrast.randomisation_test.holm
    facts = (
        f"mean {mean:+.3f}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'};  "
        f"{contrast.wins} won, {contrast.ties} tied, {contrast.losses} lost"
    )
    axes.set_title(facts, loc="right", fontsize="small", color=GREY)
